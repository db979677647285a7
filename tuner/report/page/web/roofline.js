'use strict';
// The roofline: each problem's rate over its operations per byte, below what memory and tensor cores allow.

/** Operands of 8 bits on both sides, which tensor cores take twice as fast. */
const hasBytes = (problem) => /\bformat=(w8a8|fp8)\b/.test(problem.staticFields);

function rooflineRows() {
  return state.results
    .winnersOf(state.gpu)
    .filter((winner) => winner.flopsPerS > 0 && winner.problem.bytes > 0)
    .map((winner) => {
      const intensity = winner.problem.flops / winner.problem.bytes;
      const cores = (state.gpu.operations_per_s ?? Infinity) * (hasBytes(winner.problem) ? 2 : 1);
      const roof = Math.min(cores, intensity * (state.gpu.bytes_per_s ?? Infinity));
      return {
        operator: winner.problem.family,
        problem: winner.problem.text,
        intensity,
        tflops: winner.flopsPerS / 1e12,
        time: formatTime(winner.us),
        us: winner.us,
        rate: formatRate(winner.flopsPerS, 'FLOP/s'),
        bytes: formatRate(winner.bytesPerS, 'B/s'),
        share: Number.isFinite(roof) ? winner.flopsPerS / roof : null,
        shareText: Number.isFinite(roof) ? formatShare(winner.flopsPerS / roof) : missing,
        intensityText: digits(intensity, 3),
      };
    });
}

/** The roofs as lines: along memory's bandwidth up to the ridge, then level; one for operands of 16 bits, one of 8. */
function roofs(gpu, rows) {
  if (!gpu.bytes_per_s) return [];
  const all = rows.map((row) => row.intensity);
  const [low, high] = [
    Math.min(...all) * 0.7,
    Math.max(...all, ((gpu.operations_per_s ?? 0) / gpu.bytes_per_s) * 6) * 1.4,
  ];
  const line = (name, cores) =>
    [low, cores / gpu.bytes_per_s, high]
      .filter((intensity) => intensity >= low && intensity <= high)
      .map((intensity) => ({name, intensity, tflops: Math.min(intensity * gpu.bytes_per_s, cores) / 1e12}));
  if (!gpu.operations_per_s) return line('memory', Infinity);
  return [...line('16 bits', gpu.operations_per_s), ...line('8 bits', gpu.operations_per_s * 2)];
}

/** What the lines are, in the corner above the slope that no problem reaches. */
function roofWords(gpu) {
  const words = gpu.bytes_per_s ? [`slope: memory, ${formatRate(gpu.bytes_per_s, 'B/s')}`] : [];
  if (words.length === 0 || !gpu.operations_per_s) return words;
  return [
    ...words,
    `level: tensor cores with 16 bits, ${formatRate(gpu.operations_per_s, 'FLOP/s')}`,
    `dashed: with 8 bits, ${formatRate(gpu.operations_per_s * 2, 'FLOP/s')}`,
  ];
}

function rooflineSpec(rows) {
  const line = roofs(state.gpu, rows);
  const intensities = rows.map((row) => row.intensity).concat(line.map((point) => point.intensity));
  const rates = rows.map((row) => row.tflops).concat(line.map((point) => point.tflops));
  const xDomain = [Math.min(...intensities), Math.max(...intensities)];
  const yDomain = [Math.min(...rates) * 0.6, Math.max(...rates) * 2.2];
  const x = {
    field: 'intensity',
    type: 'quantitative',
    title: 'operations per byte',
    scale: logScale({domain: xDomain}),
    axis: {format: '~g', values: logTicks(...xDomain)},
  };
  const y = {
    field: 'tflops',
    type: 'quantitative',
    title: 'TFLOP/s',
    scale: logScale({domain: yDomain, clamp: true}),
    axis: {format: '~g', values: logTicks(...yDomain)},
  };
  return {
    height: 420,
    layer: [
      {
        data: {values: line},
        mark: {type: 'line', color: colour('strong-line'), strokeWidth: 1.8, clip: true},
        encoding: {
          x,
          y,
          strokeDash: {
            field: 'name',
            type: 'nominal',
            legend: null,
            scale: {
              domain: ['memory', '16 bits', '8 bits'],
              range: [
                [1, 0],
                [1, 0],
                [5, 4],
              ],
            },
          },
        },
      },
      {
        data: {values: rows},
        mark: {type: 'point', filled: true, size: 46, opacity: 0.8, stroke: colour('card'), strokeWidth: 0.5},
        encoding: {
          x,
          y,
          color: {
            field: 'operator',
            type: 'nominal',
            title: null,
            scale: colourOf(state.results, rows),
            legend: {columns: 6},
          },
          tooltip: [
            tip('operator', 'Operator'),
            tip('problem', 'Problem'),
            tip('time', 'Time'),
            tip('rate', 'Rate'),
            tip('bytes', 'Bytes'),
            tip('intensityText', 'Operations per byte'),
            tip('shareText', 'Of the roof'),
          ],
        },
      },
      {
        data: {values: [{lines: roofWords(state.gpu)}]},
        mark: {type: 'text', align: 'left', baseline: 'top', lineHeight: 18, color: colour('muted')},
        encoding: {
          x: {value: 12},
          y: {value: 10},
          text: {field: 'lines'},
        },
      },
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
    label: sentences(
      `${plural(rows.length, 'problem')} by operations per byte and rate.`,
      `The highest rate is ${best.rate}, of ${best.operator} ${best.problem}.`,
      shares.length > 0 &&
        `${plural(shares.filter((share) => share >= 0.8).length, 'problem')} reach 80 % of the roof.`,
    ),
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.operator},
      {title: 'Problem', value: (row) => row.problem, text: 'text'},
      {title: 'Time', value: (row) => row.us, cell: (row) => row.time, number: true},
      {title: 'Operations per byte', value: (row) => row.intensity, cell: (row) => row.intensityText, number: true},
      {title: 'Rate', value: (row) => row.tflops, cell: (row) => row.rate, number: true, first: 'descending'},
      {title: 'Bytes', value: (row) => row.bytes, number: true},
      {
        title: 'Of the roof',
        value: (row) => row.share,
        cell: (row) => row.shareText,
        number: true,
        first: 'descending',
      },
    ],
  };
}

function startRoofline() {
  const host = section(
    'roofline',
    'Roofline',
    sentences(
      'How fast each winner runs, and what the device allows: a problem below the slope is bound by memory,',
      'one below the level line by the tensor cores. Bytes and operations are the fewest that the problem needs;',
      'what fits into the second-level cache may stand above the slope.',
    ),
  );
  const chart = new Chart(host, drawRoofline);
  gpuListeners.push(() => chart.update());
}
