'use strict';
// How much faster winners are than the default configuration, and Hone than other libraries.

function defaultRows() {
  return state.results
    .winnersOf(state.gpu)
    .filter((winner) => winner.speedup > 0)
    .map((winner) => ({
      group: winner.problem.family,
      operator: winner.problem.family,
      problem: winner.problem.text,
      ratio: winner.speedup,
      ratioText: formatRatio(winner.speedup),
      us: winner.us,
      time: formatTime(winner.us),
      defaultTime: formatTime(winner.us * winner.speedup),
      candidate: winner.candidate,
    }));
}

function drawDefaults() {
  const {results, gpu} = state;
  const rows = defaultRows();
  const without = results.winnersOf(gpu).length - rows.length;
  const why =
    `Of ${plural(without, 'winner')} the default's time is not in these caches: ` +
    'exported and packaged winners come without it.';
  if (rows.length === 0) return {notice: results.trials ? `${why} hone tune measures it.` : 'Reading the trials …'};
  const groups = [...new Set(rows.map((row) => row.group))].sort();
  return {
    spec: ratioStrip({
      results,
      rows,
      groups,
      title: 'time of the default over that of the winner (a tick each, ◆ geometric mean)',
      tooltip: [
        tip('operator', 'Operator'),
        tip('problem', 'Problem'),
        tip('ratioText', 'Speed-up'),
        tip('time', 'Winner'),
        tip('defaultTime', 'Default'),
        tip('candidate', 'Candidate'),
      ],
    }),
    label: sentences(
      `Winners are ${formatRatio(geometricMean(rows.map((row) => row.ratio)))} as fast as the default`,
      `in the geometric mean of ${plural(rows.length, 'problem')}.`,
      without > 0 && why,
    ),
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.operator},
      {title: 'Problem', value: (row) => row.problem, text: 'text'},
      {title: 'Speed-up', value: (row) => row.ratio, cell: (row) => row.ratioText, number: true, first: 'descending'},
      {title: 'Winner', value: (row) => row.us, cell: (row) => row.time, number: true},
      {title: 'Default', value: (row) => row.us * row.ratio, cell: (row) => row.defaultTime, number: true},
    ],
  };
}

/** A row for each other library of each case that Hone has a time for. */
function peerRows(file) {
  return file.cases
    .filter((one) => one.hone_us > 0)
    .flatMap((one) =>
      one.peers.map((peer) => ({
        group: peer.name,
        operator: one.op,
        sizes: one.sizes,
        ratio: peer.us / one.hone_us,
        ratioText: formatRatio(peer.us / one.hone_us),
        us: one.hone_us,
        time: formatTime(one.hone_us),
        peerUs: peer.us,
        peerTime: formatTime(peer.us),
      })),
    );
}

function drawPeers(file) {
  const rows = peerRows(file);
  if (rows.length === 0) return {notice: `${file.name}: no case has both Hone's time and another library's.`};
  const groups = [...new Set(rows.map((row) => row.group))];
  const best = file.cases
    .filter((one) => one.hone_us > 0 && one.peers.length > 0)
    .map((one) => Math.min(...one.peers.map((peer) => peer.us)) / one.hone_us);
  return {
    spec: ratioStrip({
      results: state.results,
      rows,
      groups,
      isByOperator: false,
      title: 'time of the other over that of Hone (a tick a case, ◆ geometric mean)',
      tooltip: [
        tip('group', 'Library'),
        tip('operator', 'Operator'),
        tip('sizes', 'Sizes'),
        tip('ratioText', 'Hone is faster by'),
        tip('time', 'Hone'),
        tip('peerTime', 'Other'),
      ],
    }),
    label: sentences(
      `Hone is ${formatRatio(geometricMean(best))} as fast as the best other library of each case,`,
      `in the geometric mean of ${plural(best.length, 'case')}. ${file.machine}, ${file.date.slice(0, 10)}.`,
    ),
    rows,
    columns: [
      {title: 'Library', value: (row) => row.group},
      {title: 'Operator', value: (row) => row.operator},
      {title: 'Sizes', value: (row) => row.sizes, text: 'text'},
      {title: 'Hone', value: (row) => row.us, cell: (row) => row.time, number: true},
      {title: 'Other', value: (row) => row.peerUs, cell: (row) => row.peerTime, number: true},
      {title: 'Ratio', value: (row) => row.ratio, cell: (row) => row.ratioText, number: true, first: 'descending'},
    ],
  };
}

function startSpeed() {
  const host = section(
    'speed',
    'Speed',
    'How many times as fast the winners are: right of the dashed line is faster.',
  );
  host.append(element('h3', {}, 'Over the default configuration'));
  const chart = new Chart(host, drawDefaults);
  gpuListeners.push(() => chart.update());
  for (const file of state.results.data.peers) {
    host.append(
      element('h3', {}, `Over other libraries: ${file.name}`),
      element('p', {class: 'lede'}, `${file.machine}, ${file.date.slice(0, 10)}`),
    );
    new Chart(host, () => drawPeers(file));
  }
  if (state.results.data.peers.length === 0)
    host.append(
      notice('Beside other libraries: hone report --peers FILE takes what bench/compare_torch.py --out has written.'),
    );
}
