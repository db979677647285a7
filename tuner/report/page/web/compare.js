'use strict';
// Two GPUs beside each other, or two dates: the winners of either, problem by problem.

/** Everything that ever won: the winners, and trials that won a race and were replaced since. */
function allWins() {
  const {winners, trials, problems, gpus} = state.results;
  const wins = winners.map((w) => ({problem: w.problem, gpu: w.gpu, us: w.us, at: w.at, candidate: w.candidate}));
  for (let i = 0; i < (trials?.count ?? 0); ++i) {
    if (trials.columns.winner[i] !== 1 || !trials.isOk(i)) continue;
    const trial = trials.trialAt(i);
    wins.push({
      problem: problems[trials.columns.problem[i]],
      gpu: gpus[trials.columns.gpu[i]],
      us: trial.us,
      at: trial.at,
      candidate: trial.candidate,
    });
  }
  return wins.sort((a, b) => a.at - b.at);
}

/** {gpu, until}: the winners of a GPU as they were at the end of a day; null: as they are. */
function sideOptions(wins) {
  const options = [];
  for (const gpu of state.results.gpus) {
    const days = [...new Set(wins.filter((win) => win.gpu === gpu).map((win) => formatDay(win.at)))].sort();
    options.push({gpu, until: null, text: gpuName(gpu)});
    for (const day of days.slice(0, -1).reverse())
      options.push({gpu, until: Date.parse(`${day}T23:59:59.999Z`), text: `${gpuName(gpu)}, until ${day}`});
  }
  return options;
}

/** The GPU of the charts, and beside it the one that has most problems in common with it, else its own earlier winners. */
function startSides(options) {
  const here = options.find((option) => option.gpu === state.gpu && option.until === null);
  const own = timesOf(here, []);
  const common = (option) => [...timesOf(option, []).keys()].filter((problem) => own.has(problem)).length;
  const others = options.filter((option) => option.gpu !== here.gpu && option.until === null && common(option) > 0);
  if (others.length > 0) return {a: others.reduce((a, b) => (common(b) > common(a) ? b : a)), b: here};
  return {
    a:
      options.find((option) => option !== here && option.gpu === here.gpu) ??
      options.find((option) => option !== here),
    b: here,
  };
}

/** The times of a side, by problem: what is stored now, or the last win until then. */
function timesOf(side, wins) {
  if (side.until === null)
    return new Map(state.results.winnersOf(side.gpu).map((winner) => [winner.problem.index, winner]));
  const times = new Map();
  for (const win of wins) {
    if (win.gpu === side.gpu && win.at <= side.until) times.set(win.problem.index, win);
  }
  return times;
}

function comparedRows(a, b, wins) {
  const [left, right] = [timesOf(a, wins), timesOf(b, wins)];
  const rows = [];
  for (const [index, one] of left) {
    const other = right.get(index);
    if (!other || !(one.us > 0) || !(other.us > 0)) continue;
    const ratio = one.us / other.us;
    rows.push({
      group: one.problem.family,
      operator: one.problem.family,
      problem: one.problem.text,
      a: one.us,
      b: other.us,
      ratio,
      ratioText: formatRatio(ratio),
      aTime: formatTime(one.us),
      bTime: formatTime(other.us),
      aCandidate: one.candidate,
      bCandidate: other.candidate,
      same: one.candidate === other.candidate ? 'the same' : 'another',
    });
  }
  return rows;
}

function drawCompared(a, b, wins) {
  const rows = comparedRows(a, b, wins);
  if (rows.length === 0) return {notice: 'These two have no problem in common.'};
  const groups = [...new Set(rows.map((row) => row.group))].sort();
  const changed = rows.filter((row) => row.same === 'another').length;
  return {
    spec: ratioStrip({
      results: state.results,
      rows,
      groups,
      title: 'time of A over that of B: right of the dashed line B is faster (◆ geometric mean)',
      tooltip: [
        tip('operator', 'Operator'),
        tip('problem', 'Problem'),
        tip('ratioText', 'A over B'),
        tip('aTime', 'A'),
        tip('bTime', 'B'),
        tip('aCandidate', 'Winner of A'),
        tip('bCandidate', 'Winner of B'),
      ],
    }),
    label: sentences(
      `B takes ${formatShare(1 / geometricMean(rows.map((row) => row.ratio)))} of A's time,`,
      `in the geometric mean of ${plural(rows.length, 'problem')} that both have;`,
      `in ${formatCount(changed)} another candidate won.`,
    ),
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.operator},
      {title: 'Problem', value: (row) => row.problem, text: 'text'},
      {title: 'A', value: (row) => row.a, cell: (row) => row.aTime, number: true},
      {title: 'B', value: (row) => row.b, cell: (row) => row.bTime, number: true},
      {title: 'A over B', value: (row) => row.ratio, cell: (row) => row.ratioText, number: true, first: 'descending'},
      {title: 'Winner', value: (row) => row.same},
    ],
  };
}

class CompareSection {
  constructor() {
    this.host = section(
      'compare',
      'Side by side',
      'Two GPUs, or two dates of one: which problems got faster, and by how much.',
    );
    this.box = element('div');
    this.host.append(this.box);
  }

  /** Once the trials are there, which know earlier winners. */
  start() {
    const wins = allWins();
    const options = sideOptions(wins);
    if (options.length < 2) {
      this.box.replaceChildren(
        notice(
          'These caches know one GPU, and its winners of one day. hone merge or hone import brings those of others.',
        ),
      );
      return;
    }
    const sides = startSides(options);
    const words = element('p', {class: 'lede', 'aria-live': 'polite'});
    const controls = element('div', {class: 'controls'});
    for (const name of ['a', 'b']) {
      controls.append(
        choice(
          name.toUpperCase(),
          options.map((option, i) => ({value: i, text: option.text})),
          options.indexOf(sides[name]),
          (i) => {
            sides[name] = options[Number(i)];
            update();
          },
        ),
      );
    }
    this.box.replaceChildren(controls, words);
    const chart = new Chart(this.box, () => drawCompared(sides.a, sides.b, wins));
    const update = () => {
      chart.update();
      words.textContent = chart.drawn.label ?? '';
    };
    update();
  }
}
