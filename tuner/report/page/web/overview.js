'use strict';
// The figures at a glance, and the choice of a GPU for all charts.

/** What the charts show. */
const state = {results: null, gpu: null, winnersTable: null};

/** Called after the choice of another GPU, and once the trials have been read. */
const gpuListeners = [];

function describeGpu(gpu) {
  const clock = gpu.memory_clock_mhz > 0 ? `, memory ${gpu.memory_clock_mhz} MHz` : '';
  const mig = gpu.mig_profile ? `, MIG ${gpu.mig_profile}` : '';
  return `${gpu.name} (${gpu.compute_major}.${gpu.compute_minor}, ${gpu.sm_count} SMs${clock}${mig})`;
}

/** The GPU with the most winners; of equals the one with the faster memory. */
function startGpu(results) {
  const count = (gpu) => results.winners.filter((winner) => winner.gpu === gpu).length;
  return [...results.gpus].sort((a, b) => count(b) - count(a) || (b.bytes_per_s ?? 0) - (a.bytes_per_s ?? 0))[0];
}

function tile(title, figure, unit = '') {
  return element(
    'div',
    {class: 'tile'},
    element('dt', {}, title),
    element('dd', {}, figure, unit ? element('small', {}, unit) : null),
  );
}

function tilesOf(results, gpu) {
  const winners = results.winnersOf(gpu);
  const shares = winners
    .filter((winner) => winner.floorShare > 0 && winner.floorShare <= 1)
    .map((winner) => winner.floorShare);
  const speedups = winners.filter((winner) => winner.speedup > 0).map((winner) => winner.speedup);
  const tiles = [
    tile(
      `problems with a winner, of ${plural(new Set(winners.map((w) => w.problem.family)).size, 'operator')}`,
      formatCount(winners.length),
    ),
    tile(
      results.gpus.length > 1 ? 'trials stored, of all GPUs' : 'trials stored',
      formatCount(results.data.trial_count),
    ),
  ];
  if (speedups.length > 0) {
    tiles.push(
      tile(
        `over the default configuration, geometric mean of ${formatCount(speedups.length)}`,
        geometricMean(speedups).toFixed(2),
        '×',
      ),
    );
  }
  if (shares.length > 0)
    tiles.push(tile('of the bandwidth floor, the best problem', (Math.max(...shares) * 100).toFixed(0), '%'));
  const fastest = Math.max(0, ...winners.map((winner) => winner.flopsPerS ?? 0));
  if (fastest >= 1e12) tiles.push(tile('the highest rate of operations', digits(fastest / 1e12, 3), 'TFLOP/s'));
  return tiles;
}

function showOverview() {
  const {results, gpu} = state;
  byId('tiles').replaceChildren(...tilesOf(results, gpu));
}

function filterText({filter, gpu_filter: gpu}) {
  return [filter, gpu ? `GPUs with “${gpu}” in their name` : ''].filter(Boolean).join(', ');
}

function startOverview() {
  const {results} = state;
  const {data} = results;
  const names = results.gpus.map(describeGpu).join(' · ');
  byId('summary').textContent = `${names}${filterText(data) ? ` – only ${filterText(data)}` : ''}`;
  byId('made').textContent =
    `Made by hone ${data.version}, ${formatDate(data.made_at_ms)} UTC. Everything stands in this file.`;
  if (results.gpus.length > 1) {
    byId('gpu-choice').append(
      choice(
        'GPU of the charts',
        results.gpus.map((gpu) => ({value: gpu.index, text: describeGpu(gpu)})),
        state.gpu.index,
        (index) => {
          state.gpu = results.gpus[Number(index)];
          gpuListeners.forEach((listener) => listener());
        },
      ),
    );
  }
  gpuListeners.push(showOverview);
  showOverview();
}
