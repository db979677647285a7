'use strict';
// The section of one problem's trials: which problem, which variant, which tunables.

class SearchSection {
  constructor() {
    const host = section(
      'trials',
      'Trials',
      'What tuning tried for one problem: which tunables matter, and how the race went.',
    );
    this.problemControls = element('div', {class: 'controls'});
    this.heatControls = element('div', {class: 'controls'});
    host.append(this.problemControls, element('h3', {}, 'Two tunables'), this.heatControls);
    this.heatWords = element('p', {class: 'lede'});
    this.raceWords = element('p', {class: 'lede'});
    host.append(this.heatWords);
    this.heatmap = new Chart(host, drawHeatmap);
    host.append(
      element('h3', {}, 'The race'),
      element(
        'div',
        {class: 'controls'},
        segments(
          'Along',
          [
            {value: false, text: 'trials'},
            {value: true, text: 'time'},
          ],
          false,
          (byTime) => {
            search.byTime = byTime;
            this.race.update();
          },
        ),
      ),
      this.raceWords,
    );
    this.race = new Chart(host, drawRace);
    gpuListeners.push(() => this.start());
  }

  /** With the trials of another GPU, or once there are any. */
  start() {
    const tried = state.results.trials ? triedProblems() : [];
    this.problemControls.replaceChildren();
    this.heatControls.replaceChildren();
    search.problem = tried[0]?.problem ?? null;
    if (tried.length > 0) {
      const options = tried.map(({problem, count}) => ({
        value: problem.index,
        text: `${problem.family} · ${problem.text} (${plural(count, 'trial')})`,
      }));
      this.problemControls.append(
        choice(
          'Problem',
          options,
          search.problem.index,
          (index) => this.choose(state.results.problems[Number(index)]),
          true,
        ),
      );
    }
    this.choose(search.problem);
  }

  choose(problem) {
    search.problem = problem;
    search.variant = problem ? startVariant(problem) : null;
    this.chooseVariant();
    this.update(this.race, this.raceWords);
  }

  chooseVariant() {
    const tunables = search.problem ? tunablesOf(trialsOfVariant()) : [];
    [search.x, search.y] = [tunables[0]?.name, tunables[1]?.name];
    if (search.problem) this.offer(tunables);
    this.update(this.heatmap, this.heatWords);
  }

  offer(tunables) {
    const names = tunables.map(({name, count}) => ({value: name, text: `${name} (${plural(count, 'value')})`}));
    this.heatControls.replaceChildren(
      choice(
        'Variant',
        variantsOf(search.problem).map(({name, count}) => ({
          value: name,
          text: `${name} (${plural(count, 'trial')})`,
        })),
        search.variant,
        (variant) => {
          search.variant = variant;
          this.chooseVariant();
        },
      ),
    );
    for (const [axis, title] of names.length > 1
      ? [
          ['x', 'Across'],
          ['y', 'Up'],
        ]
      : []) {
      this.heatControls.append(
        choice(title, names, search[axis], (name) => {
          search[axis] = name;
          this.update(this.heatmap, this.heatWords);
        }),
      );
    }
  }

  update(chart, words) {
    chart.update();
    words.textContent = chart.drawn.label ?? '';
  }
}
