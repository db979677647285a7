'use strict';
// The race: a problem's trials in the order in which they were stored, and the best time so far.

/** Trials with the best time so far; seconds since the first. */
function raceRows() {
  let best = Infinity;
  const trials = trialsOf(search.problem);
  return trials.map((trial) => {
    best = trial.us > 0 ? Math.min(best, trial.us) : best;
    return {
      ...trial,
      seconds: (trial.at - trials[0].at) / 1000,
      best: Number.isFinite(best) ? best : null,
      kind: trial.isWinner ? 'winner' : trial.isDefault ? 'default' : trial.us > 0 ? 'trial' : 'failed',
      time: trial.us > 0 ? formatTime(trial.us) : trial.status,
      bestTime: formatTime(best),
      when: formatDate(trial.at),
    };
  });
}

/** From the best time to most of the others: a few that are far slower stand at the upper edge. */
function raceDomain(rows) {
  const times = rows
    .filter((row) => row.us > 0)
    .map((row) => row.us)
    .sort((a, b) => a - b);
  const most = times[Math.floor((times.length - 1) * 0.9)];
  return [times[0] * 0.97, Math.min(times[times.length - 1] * 1.03, Math.max(most * 1.15, times[0] * 1.2))];
}

function raceSpec(rows) {
  const [low, high] = raceDomain(rows);
  const ok = rows.filter((row) => row.us > 0);
  const x = search.byTime
    ? {field: 'seconds', type: 'quantitative', title: 'seconds since the first trial', axis: {grid: false}}
    : {
        field: 'place',
        type: 'quantitative',
        title: 'trial',
        axis: {grid: false, tickMinStep: 1, format: 'd'},
        scale: {nice: false, domain: [0, rows.length + 1]},
      };
  const y = {
    field: 'us',
    type: 'quantitative',
    title: 'µs',
    scale: logScale({domain: [low, high], clamp: true}),
    axis: {format: '~g', values: logTicks(low, high)},
  };
  const tooltip = [
    tip('candidate', 'Candidate'),
    tip('time', 'Time'),
    tip('bestTime', 'Best so far'),
    tip('kind', 'What it is'),
    tip('when', 'At (UTC)'),
  ];
  const kinds = {
    domain: ['trial', 'default', 'winner'],
    range: [palette().faint, palette().categories[0], palette().best],
  };
  return {
    height: 320,
    layer: [
      {
        data: {values: ok.filter((row) => row.us <= high)},
        mark: {type: 'point', filled: true, size: 26, opacity: 0.75},
        encoding: {x, y, tooltip, color: {field: 'kind', type: 'nominal', title: null, scale: kinds}},
      },
      {
        data: {values: ok.filter((row) => row.us > high)},
        mark: {type: 'point', shape: 'triangle-up', filled: true, size: 44, yOffset: 3},
        encoding: {x, y, tooltip, color: {field: 'kind', type: 'nominal', title: null, scale: kinds}},
      },
      {
        data: {values: rows.filter((row) => !(row.us > 0))},
        mark: {type: 'tick', orient: 'vertical', color: palette().bad, size: 10, thickness: 1.5, opacity: 0.7},
        encoding: {x, y: {value: 'height'}, tooltip},
      },
      {
        data: {values: rows.filter((row) => row.best !== null)},
        mark: {type: 'line', interpolate: 'step-after', color: colour('ink'), strokeWidth: 1.8},
        encoding: {x, y: {...y, field: 'best'}},
      },
      {
        data: {values: ok.filter((row) => row.kind !== 'trial')},
        mark: {type: 'point', filled: true, size: 110, stroke: colour('card'), strokeWidth: 1.5, opacity: 1},
        encoding: {x, y, tooltip, color: {field: 'kind', type: 'nominal', title: null, scale: kinds}},
      },
    ],
  };
}

function drawRace() {
  if (!search.problem) return {notice: nothingTried()};
  const rows = raceRows();
  const ok = rows.filter((row) => row.us > 0);
  if (ok.length === 0) return {notice: 'Every trial of this problem has failed: see below why.'};
  const best = ok.reduce((a, b) => (b.us < a.us ? b : a));
  const failed = rows.length - ok.length;
  const slow = ok.filter((row) => row.us > raceDomain(rows)[1]).length;
  return {
    spec: raceSpec(rows),
    label: sentences(
      `The line is the best time so far of ${plural(rows.length, 'trial')}:`,
      `${best.time} at trial ${best.place}, ${best.candidate}.`,
      failed > 0 && `${plural(failed, 'trial')} failed: marks at the bottom.`,
      slow > 0 && `${formatCount(slow)} took longer than the chart is high: triangles at the top.`,
    ),
    rows,
    columns: [
      {title: 'Trial', value: (row) => row.place, number: true},
      {title: 'Time', value: (row) => row.us || null, cell: (row) => row.time, number: true},
      {title: 'Best so far', value: (row) => row.best, cell: (row) => row.bestTime, number: true},
      {title: 'Candidate', value: (row) => row.candidate, cell: (row) => candidateCell(row.candidate), text: 'text'},
      {title: 'Status', value: (row) => row.status},
      {title: 'At (UTC)', value: (row) => row.at, cell: (row) => row.when, number: true},
    ],
  };
}
