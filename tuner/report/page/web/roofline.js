'use strict';
// The roofline: each problem's rate over its operations per byte, below what memory and tensor cores allow.

function rooflineRows() {
  return state.results.winnersOf(state.gpu)
    .filter((winner) => winner.flopsPerS > 0 && winner.problem.bytes > 0)
    .map((winner) => {
      const intensity = winner.problem.flops / winner.problem.bytes;
      const roof = Math.min(state.gpu.operations_per_s ?? Infinity, intensity * (state.gpu.bytes_per_s ?? Infinity));
      return {
        operator: winner.problem.family, problem: winner.problem.text, intensity, tflops: winner.flopsPerS / 1e12,
        time: formatTime(winner.us), us: winner.us, rate: formatRate(winner.flopsPerS, 'FLOP/s'), bytes: formatRate(winner.bytesPerS, 'B/s'),
        share: Number.isFinite(roof) ? winner.flopsPerS / roof : null,
        shareText: Number.isFinite(roof) ? formatShare(winner.flopsPerS / roof) : missing,
        intensityText: digits(intensity, 3),
      };
    });
}

/** The two roofs as a line: along memory's bandwidth up to the ridge, then level. */
function roofs(gpu, rows) {
  if (!gpu.bytes_per_s) return [];
  const all = rows.map((row) => row.intensity);
  const [low, high] = [Math.min(...all) * 0.7, Math.max(...all, gpu.operations_per_s ? gpu.operations_per_s / gpu.bytes_per_s * 3 : 0) * 1.4];
  const at = (intensity) => ({intensity, tflops: Math.min(intensity * gpu.bytes_per_s, gpu.operations_per_s ?? Infinity) / 1e12});
  if (!gpu.operations_per_s) return [at(low), at(high)];
  const ridge = gpu.operations_per_s / gpu.bytes_per_s;
  return [at(low), at(Math.max(low, ridge)), at(Math.max(high, ridge))];
}

/** Names of the roofs: that of memory left of the ridge, that of the tensor cores at the right end. */
function roofLabels(gpu, line) {
  if (line.length === 0) return [];
  const labels = [{...line[0], text: `memory ${formatRate(gpu.bytes_per_s, 'B/s')}`, place: 'memory'}];
  if (gpu.operations_per_s) labels.push({...line[2], text: `tensor cores, 16 bits: ${formatRate(gpu.operations_per_s, 'FLOP/s')}`, place: 'tensor'});
  return labels;
}

function rooflineSpec(rows) {
  const line = roofs(state.gpu, rows);
  const labels = roofLabels(state.gpu, line);
  const intensities = rows.map((row) => row.intensity).concat(line.map((point) => point.intensity));
  const rates = rows.map((row) => row.tflops).concat(line.slice(-1).map((point) => point.tflops));
  const x = {field: 'intensity', type: 'quantitative', title: 'operations per byte', scale: logScale({domain: [Math.min(...intensities), Math.max(...intensities)]}), axis: {format: '~g', tickCount: 6}};
  const y = {field: 'tflops', type: 'quantitative', title: 'TFLOP/s', scale: logScale({domain: [Math.min(...rates) * 0.6, Math.max(...rates) * 1.6], clamp: true}), axis: {format: '~g', tickCount: 6}};
  return {
    height: 420,
    layer: [
      {data: {values: line}, mark: {type: 'line', color: colour('strong-line'), strokeWidth: 2, clip: true}, encoding: {x, y}},
      {data: {values: rows}, mark: {type: 'point', filled: true, size: 46, opacity: 0.8, stroke: colour('card'), strokeWidth: 0.5}, encoding: {
        x, y,
        color: {field: 'operator', type: 'nominal', title: null, scale: colourOf(state.results, rows), legend: {columns: 6}},
        tooltip: [tip('operator', 'Operator'), tip('problem', 'Problem'), tip('time', 'Time'), tip('rate', 'Rate'), tip('bytes', 'Bytes'), tip('intensityText', 'Operations per byte'), tip('shareText', 'Of the roof')]}},
      {data: {values: labels.filter((label) => label.place === 'tensor')}, mark: {type: 'text', align: 'right', dy: -9, color: colour('muted')}, encoding: {x, y, text: {field: 'text'}}},
      {data: {values: labels.filter((label) => label.place === 'memory')}, mark: {type: 'text', align: 'left', color: colour('muted')}, encoding: {
        x: {value: 8}, y: {value: 12}, text: {field: 'text'}}},
    ],
  };
}

function drawRoofline() {
  const rows = rooflineRows();
  if (rows.length === 0) return {notice: 'No winner of this GPU has operations and bytes that are known.'};
  const shares = rows.filter((row) => row.share > 0).map((row) => row.share);
  const best = rows.reduce((a, b) => (b.tflops > a.tflops ? b : a));
  return {
    spec: rooflineSpec(rows),
    label: `${plural(rows.length, 'problem')} by operations per byte and rate. The highest rate is ${best.rate}, of ${best.operator} ${best.problem}.` +
      (shares.length > 0 ? ` ${plural(shares.filter((share) => share >= 0.8).length, 'problem')} reach 80 % of the roof.` : ''),
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.operator}, {title: 'Problem', value: (row) => row.problem, text: true},
      {title: 'Time', value: (row) => row.us, cell: (row) => row.time, number: true},
      {title: 'Operations per byte', value: (row) => row.intensity, cell: (row) => row.intensityText, number: true},
      {title: 'Rate', value: (row) => row.tflops, cell: (row) => row.rate, number: true, first: 'descending'},
      {title: 'Bytes', value: (row) => row.bytes, number: true},
      {title: 'Of the roof', value: (row) => row.share, cell: (row) => row.shareText, number: true, first: 'descending'},
    ],
  };
}

function startRoofline() {
  const host = section('roofline', 'Roofline',
    'How fast each winner runs, and what the device allows: a problem below the slope is bound by memory, one below the level line by the tensor cores. ' +
    'Bytes and operations are the fewest that the problem needs; what fits into the second-level cache may stand above the slope.');
  const chart = new Chart(host, drawRoofline);
  gpuListeners.push(() => chart.update());
}
