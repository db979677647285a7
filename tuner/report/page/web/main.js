'use strict';
// The order of things: the winners and all that they show, then the trials.

/** Names the sections that are on screen, for the tests of how soon the page can be used. */
function mark(name) {
  performance.mark(name);
  document.documentElement.dataset.ready = name;
}

async function start() {
  startTheme();
  const results = new Results(JSON.parse(await unpack('packed-results')));
  state.results = results;
  state.gpu = startGpu(results);
  startOverview();
  startRoofline();
  startSpeed();
  startModelStep();
  startWinners();
  const trials = new SearchSection();
  startFailures();
  startEnergy();
  const compare = new CompareSection();
  byId('wait').hidden = true;
  mark('winners');
  await new Promise((resolve) => {
    setTimeout(resolve);
  }); // what is there is painted first
  results.addTrials(JSON.parse(await unpack('packed-trials')));
  state.winnersTable.rebuild();
  gpuListeners.forEach((listener) => listener());
  compare.start();
  mark('trials');
}

start().catch((error) => {
  byId('wait').hidden = false;
  byId('wait').textContent =
    `This page cannot show its results: ${error.message}. It needs a browser of 2023 or newer.`;
  throw error;
});
