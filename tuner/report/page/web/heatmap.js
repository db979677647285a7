'use strict';
// The heatmap of two tunables: the best time of each pair of values.

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
    ...cell,
    isBest: cell.us === best,
    time: cell.us > 0 ? formatTime(cell.us) : 'all failed',
    short: cell.us > 0 ? formatUs(cell.us) : '×',
    slower: cell.us > 0 ? formatRatio(cell.us / best) : missing,
  }));
}

function heatSpec(cells) {
  const values = (field) => [...new Set(cells.map((cell) => cell[field]))].sort(compareValues);
  const [xs, ys] = [values('x'), values('y')];
  const ok = cells.filter((cell) => cell.us > 0);
  const times = ok.map((cell) => cell.us).sort((a, b) => a - b);
  const x = {
    field: 'x',
    type: 'ordinal',
    sort: xs,
    title: search.x,
    axis: {labelAngle: 0, domain: false, ticks: false, labelFontSize: 13},
  };
  const y = {field: 'y', type: 'ordinal', sort: ys, title: search.y, axis: {labelFontSize: 13}};
  const tooltip = [
    tip('x', search.x),
    tip('y', search.y),
    tip('time', 'Best time'),
    tip('slower', 'Over the best'),
    tip('count', 'Trials'),
    tip('failed', 'Failed'),
    tip('candidate', 'Candidate'),
  ];
  const dark = themeName() === 'dark';
  // Where letters of either colour can be read.
  const bound = times[0] * (times[times.length - 1] / times[0]) ** (dark ? 0.55 : 0.33);
  return {
    height: Math.max(120, Math.min(480, ys.length * 46)),
    encoding: {x, y},
    layer: [
      {
        data: {values: cells},
        mark: {type: 'rect', color: palette().failed, cornerRadius: 3, stroke: colour('card'), strokeWidth: 2},
        encoding: {tooltip},
      },
      {
        data: {values: ok},
        mark: {type: 'rect', cornerRadius: 3, stroke: colour('card'), strokeWidth: 2},
        encoding: {
          tooltip,
          color: {
            field: 'us',
            type: 'quantitative',
            title: 'best time, µs',
            scale: {
              type: 'log',
              range: palette().sequential,
              domain: [times[0], times[times.length - 1] * 1.0001],
              interpolate: 'rgb',
            },
            legend: {gradientLength: 220, format: '~g', values: logTicks(times[0], times[times.length - 1])},
          },
        },
      },
      {
        data: {values: cells.filter((cell) => cell.isBest)},
        mark: {type: 'rect', filled: false, stroke: palette().best, strokeWidth: 3, cornerRadius: 3},
      },
      ...(xs.length <= 14
        ? [
            {
              data: {values: ok},
              mark: {type: 'text', fontSize: 12},
              encoding: {
                text: {field: 'short'},
                color: {
                  condition: {test: {field: 'us', lt: bound}, value: dark ? '#10131a' : '#ffffff'},
                  value: dark ? '#e9ebf1' : '#1a1c22',
                },
              },
            },
            {
              data: {values: cells.filter((cell) => !(cell.us > 0))},
              mark: {type: 'text', fontSize: 12, color: colour('muted')},
              encoding: {text: {field: 'short'}},
            },
          ]
        : []),
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
    label: sentences(
      `Best time of ${search.variant} for each ${search.x} and ${search.y}, whatever the other tunables are:`,
      `${best.time} at ${search.x} ${best.x} and ${search.y} ${best.y}, which is outlined.`,
      '× stands where every trial failed, and nothing where nothing was tried.',
    ),
    rows: cells,
    columns: [
      {title: search.x, value: (cell) => cell.x, number: true},
      {title: search.y, value: (cell) => cell.y, number: true},
      {title: 'Best time', value: (cell) => cell.us, cell: (cell) => cell.time, number: true},
      {title: 'Over the best', value: (cell) => cell.us, cell: (cell) => cell.slower, number: true},
      {title: 'Trials', value: (cell) => cell.count, number: true},
      {title: 'Failed', value: (cell) => cell.failed, number: true},
      {
        title: 'Candidate',
        value: (cell) => cell.candidate,
        cell: (cell) => (cell.candidate ? candidateCell(cell.candidate) : missing),
        text: 'text',
      },
    ],
  };
}
