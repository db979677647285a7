'use strict';
// One problem's trials: the heatmap of two tunables, and the race over time.

const search = {problem: null, variant: null, x: null, y: null, byTime: false};

/** Problems that have trials on this GPU, those with the most first. */
function triedProblems() {
  const {results, gpu} = state;
  return results.problems.map((problem) => ({problem, count: results.trials.of(problem.index, gpu.index).length}))
    .filter(({count}) => count > 0).sort((a, b) => b.count - a.count);
}

function trialsOf(problem) {
  const {results, gpu} = state;
  return results.trials.of(problem.index, gpu.index).map((i, place) => ({...results.trials.trialAt(i), place: place + 1}));
}

/** Trials of the variant, with their tunables as numbers or words. */
function trialsOfVariant() {
  return trialsOf(search.problem).map((trial) => ({...trial, ...parseCandidate(trial.candidate)})).filter((trial) => trial.variant === search.variant);
}

function variantsOf(problem) {
  const counts = new Map();
  for (const trial of trialsOf(problem)) {
    const {variant} = parseCandidate(trial.candidate);
    counts.set(variant, (counts.get(variant) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => ({name, count}));
}

/** That of the fastest trial, else the one with the most trials. */
function startVariant(problem) {
  const ok = trialsOf(problem).filter((trial) => trial.us > 0);
  if (ok.length === 0) return variantsOf(problem)[0].name;
  return parseCandidate(ok.reduce((a, b) => (b.us < a.us ? b : a)).candidate).variant;
}

/** Tunables with several values, those first that matter most: by the worst of their best times over the best, and by how many values there are to see. */
function tunablesOf(trials) {
  const names = [...new Set(trials.flatMap((trial) => [...trial.values.keys()]))];
  return names.map((name) => {
    const best = new Map();
    for (const trial of trials) {
      const value = trial.values.get(name);
      const us = trial.us > 0 ? trial.us : Infinity;
      if (value !== undefined) best.set(value, Math.min(best.get(value) ?? Infinity, us));
    }
    const times = [...best.values()].filter(Number.isFinite);
    return {name, count: best.size, effect: times.length > 1 ? Math.max(...times) / Math.min(...times) : 1};
  }).filter(({count}) => count > 1).map((one) => ({...one, weight: Math.log(one.effect) * Math.log2(one.count)}))
    .sort((a, b) => b.weight - a.weight || b.count - a.count);
}

/** The best time of each pair of values, over all other tunables. */
function heatCells(trials) {
  const cells = new Map();
  for (const trial of trials) {
    const [x, y] = [trial.values.get(search.x) ?? missing, trial.values.get(search.y) ?? missing];
    const key = `${x} ${y}`;
    const cell = cells.get(key) ?? {x, y, us: null, count: 0, failed: 0, candidate: '', isBest: false};
    cell.count += 1;
    if (!(trial.us > 0)) cell.failed += 1;
    else if (cell.us === null || trial.us < cell.us) Object.assign(cell, {us: trial.us, candidate: trial.candidate});
    cells.set(key, cell);
  }
  const list = [...cells.values()];
  const best = Math.min(...list.filter((cell) => cell.us > 0).map((cell) => cell.us));
  return list.map((cell) => ({
    ...cell, isBest: cell.us === best, time: cell.us > 0 ? formatTime(cell.us) : 'all failed', short: cell.us > 0 ? formatUs(cell.us) : '×',
    slower: cell.us > 0 ? formatRatio(cell.us / best) : missing,
  }));
}

function heatSpec(cells) {
  const values = (field) => [...new Set(cells.map((cell) => cell[field]))].sort(compareValues);
  const [xs, ys] = [values('x'), values('y')];
  const ok = cells.filter((cell) => cell.us > 0);
  const times = ok.map((cell) => cell.us).sort((a, b) => a - b);
  const x = {field: 'x', type: 'ordinal', sort: xs, title: search.x, axis: {labelAngle: 0, domain: false, ticks: false, labelFontSize: 13}};
  const y = {field: 'y', type: 'ordinal', sort: ys, title: search.y, axis: {labelFontSize: 13}};
  const tooltip = [tip('x', search.x), tip('y', search.y), tip('time', 'Best time'), tip('slower', 'Over the best'), tip('count', 'Trials'), tip('failed', 'Failed'), tip('candidate', 'Candidate')];
  const dark = themeName() === 'dark';
  const bound = times[0] * (times[times.length - 1] / times[0]) ** (dark ? 0.55 : 0.33); // where letters of either colour can be read
  return {
    height: Math.max(120, Math.min(480, ys.length * 46)),
    encoding: {x, y},
    layer: [
      {data: {values: cells}, mark: {type: 'rect', color: palette().failed, cornerRadius: 3, stroke: colour('card'), strokeWidth: 2}, encoding: {tooltip}},
      {data: {values: ok}, mark: {type: 'rect', cornerRadius: 3, stroke: colour('card'), strokeWidth: 2}, encoding: {tooltip,
        color: {field: 'us', type: 'quantitative', title: 'best time, µs', scale: {type: 'log', range: palette().sequential, domain: [times[0], times[times.length - 1] * 1.0001], interpolate: 'rgb'}, legend: {gradientLength: 220, format: '~g', values: logTicks(times[0], times[times.length - 1])}}}},
      {data: {values: cells.filter((cell) => cell.isBest)}, mark: {type: 'rect', filled: false, stroke: palette().best, strokeWidth: 3, cornerRadius: 3}},
      ...(xs.length <= 14 ? [
        {data: {values: ok}, mark: {type: 'text', fontSize: 12}, encoding: {text: {field: 'short'}, color: {condition: {test: {field: 'us', lt: bound}, value: dark ? '#10131a' : '#ffffff'}, value: dark ? '#e9ebf1' : '#1a1c22'}}},
        {data: {values: cells.filter((cell) => !(cell.us > 0))}, mark: {type: 'text', fontSize: 12, color: colour('muted')}, encoding: {text: {field: 'short'}}},
      ] : []),
    ],
    resolve: {scale: {color: 'independent'}},
  };
}

function drawHeatmap() {
  if (!search.problem) return {notice: nothingTried()};
  if (!search.x || !search.y) return {notice: `The trials of ${search.variant} differ in fewer than two tunables.`};
  const cells = heatCells(trialsOfVariant());
  const best = cells.find((cell) => cell.isBest && cell.us > 0);
  if (!best) return {notice: `Every trial of ${search.variant} has failed: see below why.`};
  return {
    spec: heatSpec(cells),
    label: `Best time of ${search.variant} for each ${search.x} and ${search.y}, whatever the other tunables are: ${best.time} at ${search.x} ${best.x} and ${search.y} ${best.y}, which is outlined. × stands where every trial failed, and nothing where nothing was tried.`,
    rows: cells,
    columns: [
      {title: search.x, value: (cell) => cell.x, number: true}, {title: search.y, value: (cell) => cell.y, number: true},
      {title: 'Best time', value: (cell) => cell.us, cell: (cell) => cell.time, number: true}, {title: 'Over the best', value: (cell) => cell.us, cell: (cell) => cell.slower, number: true},
      {title: 'Trials', value: (cell) => cell.count, number: true}, {title: 'Failed', value: (cell) => cell.failed, number: true},
      {title: 'Candidate', value: (cell) => cell.candidate, cell: (cell) => (cell.candidate ? candidateCell(cell.candidate) : missing), text: 'text'},
    ],
  };
}

/** Trials with the best time so far; seconds since the first. */
function raceRows() {
  let best = Infinity;
  const trials = trialsOf(search.problem);
  return trials.map((trial) => {
    best = trial.us > 0 ? Math.min(best, trial.us) : best;
    return {
      ...trial, seconds: (trial.at - trials[0].at) / 1000, best: Number.isFinite(best) ? best : null,
      kind: trial.isWinner ? 'winner' : trial.isDefault ? 'default' : trial.us > 0 ? 'trial' : 'failed',
      time: trial.us > 0 ? formatTime(trial.us) : trial.status, bestTime: formatTime(best), when: formatDate(trial.at),
    };
  });
}

/** From the best time to most of the others: a few that are far slower stand at the upper edge. */
function raceDomain(rows) {
  const times = rows.filter((row) => row.us > 0).map((row) => row.us).sort((a, b) => a - b);
  const most = times[Math.floor((times.length - 1) * 0.9)];
  return [times[0] * 0.97, Math.min(times[times.length - 1] * 1.03, Math.max(most * 1.15, times[0] * 1.2))];
}

function raceSpec(rows) {
  const [low, high] = raceDomain(rows);
  const ok = rows.filter((row) => row.us > 0);
  const x = search.byTime
    ? {field: 'seconds', type: 'quantitative', title: 'seconds since the first trial', axis: {grid: false}}
    : {field: 'place', type: 'quantitative', title: 'trial', axis: {grid: false, tickMinStep: 1, format: 'd'}, scale: {nice: false, domain: [0, rows.length + 1]}};
  const y = {field: 'us', type: 'quantitative', title: 'µs', scale: logScale({domain: [low, high], clamp: true}), axis: {format: '~g', values: logTicks(low, high)}};
  const tooltip = [tip('candidate', 'Candidate'), tip('time', 'Time'), tip('bestTime', 'Best so far'), tip('kind', 'What it is'), tip('when', 'At (UTC)')];
  const kinds = {domain: ['trial', 'default', 'winner'], range: [palette().faint, palette().categories[0], palette().best]};
  return {
    height: 320,
    layer: [
      {data: {values: ok.filter((row) => row.us <= high)}, mark: {type: 'point', filled: true, size: 26, opacity: 0.75}, encoding: {x, y, tooltip, color: {field: 'kind', type: 'nominal', title: null, scale: kinds}}},
      {data: {values: ok.filter((row) => row.us > high)}, mark: {type: 'point', shape: 'triangle-up', filled: true, size: 44, yOffset: 3}, encoding: {x, y, tooltip, color: {field: 'kind', type: 'nominal', title: null, scale: kinds}}},
      {data: {values: rows.filter((row) => !(row.us > 0))}, mark: {type: 'tick', orient: 'vertical', color: palette().bad, size: 10, thickness: 1.5, opacity: 0.7}, encoding: {x, y: {value: 'height'}, tooltip}},
      {data: {values: rows.filter((row) => row.best !== null)}, mark: {type: 'line', interpolate: 'step-after', color: colour('ink'), strokeWidth: 1.8}, encoding: {x, y: {...y, field: 'best'}}},
      {data: {values: ok.filter((row) => row.kind !== 'trial')}, mark: {type: 'point', filled: true, size: 110, stroke: colour('card'), strokeWidth: 1.5, opacity: 1}, encoding: {x, y, tooltip, color: {field: 'kind', type: 'nominal', title: null, scale: kinds}}},
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
    label: `The line is the best time so far of ${plural(rows.length, 'trial')}: ${best.time} at trial ${best.place}, ${best.candidate}.${failed > 0 ? ` ${plural(failed, 'trial')} failed: marks at the bottom.` : ''}${slow > 0 ? ` ${formatCount(slow)} took longer than the chart is high: triangles at the top.` : ''}`,
    rows,
    columns: [
      {title: 'Trial', value: (row) => row.place, number: true}, {title: 'Time', value: (row) => row.us || null, cell: (row) => row.time, number: true},
      {title: 'Best so far', value: (row) => row.best, cell: (row) => row.bestTime, number: true}, {title: 'Candidate', value: (row) => row.candidate, cell: (row) => candidateCell(row.candidate), text: 'text'},
      {title: 'Status', value: (row) => row.status}, {title: 'At (UTC)', value: (row) => row.at, cell: (row) => row.when, number: true},
    ],
  };
}

const nothingTried = () => (state.results.trials
  ? 'No trials of this GPU are in these caches: exported and packaged winners come without them. hone tune stores them all.'
  : 'Reading the trials …');
