'use strict';
// Energy of a call and mean power, where tuning could measure them.

function energyRows() {
  return state.results
    .winnersOf(state.gpu)
    .filter((winner) => winner.energyMj > 0 && winner.us > 0)
    .map((winner) => ({
      operator: winner.problem.family,
      problem: winner.problem.text,
      us: winner.us,
      time: formatTime(winner.us),
      watts: (winner.energyMj / winner.us) * 1000,
      power: `${((winner.energyMj / winner.us) * 1000).toFixed(0)} W`,
      energyMj: winner.energyMj,
      energy: `${digits(winner.energyMj, 3)} mJ`,
      perJoule: winner.problem.flops ? (winner.problem.flops / winner.energyMj) * 1000 : null,
      perJouleText: winner.problem.flops
        ? formatRate((winner.problem.flops / winner.energyMj) * 1000, 'FLOP/J')
        : missing,
      candidate: winner.candidate,
    }));
}

function drawEnergy() {
  const rows = energyRows();
  if (rows.length === 0)
    return {
      notice:
        'No winner of this GPU has its energy stored: hone tune measures it where NVML has the GPU’s energy counter.',
    };
  const times = rows.map((row) => row.us);
  const domain = [Math.min(...times) * 0.85, Math.max(...times) * 1.15];
  const powers = rows.map((row) => row.watts);
  const best = rows.filter((row) => row.perJoule).reduce((a, b) => (a && a.perJoule > b.perJoule ? a : b), null);
  return {
    spec: {
      height: 340,
      data: {values: rows},
      mark: {type: 'point', filled: true, size: 52, opacity: 0.85, stroke: colour('card'), strokeWidth: 0.5},
      encoding: {
        x: {
          field: 'us',
          type: 'quantitative',
          title: 'time of a call, µs',
          scale: logScale({domain}),
          axis: {format: '~g', values: logTicks(...domain)},
        },
        y: {field: 'watts', type: 'quantitative', title: 'mean power, W', scale: {zero: false, nice: true}},
        color: {field: 'operator', type: 'nominal', title: null, scale: colourOf(state.results, rows)},
        tooltip: [
          tip('operator', 'Operator'),
          tip('problem', 'Problem'),
          tip('time', 'Time'),
          tip('energy', 'Energy of a call'),
          tip('power', 'Mean power'),
          tip('perJouleText', 'Work of a joule'),
          tip('candidate', 'Winner'),
        ],
      },
    },
    label: sentences(
      `Mean power of ${plural(rows.length, 'winner')}:`,
      `${Math.min(...powers).toFixed(0)} to ${Math.max(...powers).toFixed(0)} W.`,
      best && `The most work of a joule is ${best.perJouleText}, of ${best.operator} ${best.problem}.`,
    ),
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.operator},
      {title: 'Problem', value: (row) => row.problem, text: 'text'},
      {title: 'Time', value: (row) => row.us, cell: (row) => row.time, number: true},
      {title: 'Energy of a call', value: (row) => row.energyMj, cell: (row) => row.energy, number: true},
      {title: 'Mean power', value: (row) => row.watts, cell: (row) => row.power, number: true},
      {
        title: 'Work of a joule',
        value: (row) => row.perJoule,
        cell: (row) => row.perJouleText,
        number: true,
        first: 'descending',
      },
    ],
  };
}

function startEnergy() {
  const host = section(
    'energy',
    'Energy',
    'What a call of each winner takes of the whole GPU, and the power at which it runs.',
  );
  const chart = new Chart(host, drawEnergy);
  gpuListeners.push(() => chart.update());
}
