'use strict';
// What is known of one problem's trials: variants, tunables, and which of them matter.

const search = {problem: null, variant: null, x: null, y: null, byTime: false};

/** Problems that have trials on this GPU, those with the most first. */
function triedProblems() {
  const {results, gpu} = state;
  return results.problems
    .map((problem) => ({problem, count: results.trials.of(problem.index, gpu.index).length}))
    .filter(({count}) => count > 0)
    .sort((a, b) => b.count - a.count);
}

function trialsOf(problem) {
  const {results, gpu} = state;
  return results.trials
    .of(problem.index, gpu.index)
    .map((i, place) => ({...results.trials.trialAt(i), place: place + 1}));
}

/** Trials of the variant, with their tunables as numbers or words. */
function trialsOfVariant() {
  return trialsOf(search.problem)
    .map((trial) => ({...trial, ...parseCandidate(trial.candidate)}))
    .filter((trial) => trial.variant === search.variant);
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

/**
 * Tunables with several values, those first that matter most: by the worst of their best times over the best, and by
 * how many values there are to see.
 */
function tunablesOf(trials) {
  const names = [...new Set(trials.flatMap((trial) => [...trial.values.keys()]))];
  return names
    .map((name) => {
      const best = new Map();
      for (const trial of trials) {
        const value = trial.values.get(name);
        const us = trial.us > 0 ? trial.us : Infinity;
        if (value !== undefined) best.set(value, Math.min(best.get(value) ?? Infinity, us));
      }
      const times = [...best.values()].filter(Number.isFinite);
      return {name, count: best.size, effect: times.length > 1 ? Math.max(...times) / Math.min(...times) : 1};
    })
    .filter(({count}) => count > 1)
    .map((one) => ({...one, weight: Math.log(one.effect) * Math.log2(one.count)}))
    .sort((a, b) => b.weight - a.weight || b.count - a.count);
}

const nothingTried = () =>
  state.results.trials
    ? 'No trials of this GPU are in these caches: exported and packaged winners come without them. hone tune stores them all.'
    : 'Reading the trials …';
