'use strict';
// The table of winners: sorts by any column, filters by words and by operator.

function fieldsCell(text, isFull) {
  const cell = element('span', {class: 'mono'});
  for (const [key, value] of pairsOf(text)) {
    if (isFull || !isOff(value))
      cell.append(element('span', {class: isOff(value) ? 'off' : null}, `${key}=${value}`), ' ');
  }
  return cell;
}

function candidateCell(text) {
  const [variant, ...rest] = text.split(' ');
  return element('span', {class: 'mono'}, element('span', {class: 'variant'}, variant), ` ${rest.join(' ')}`);
}

/** Sizes as numbers where there is one, so that 16 comes before 128. */
function sizeValue(winner) {
  const values = pairsOf(winner.problem.dynamicFields).map(([, value]) => value);
  return values.length === 1 ? values[0] : values.map((value) => value.padStart(9, '0')).join(' ');
}

function winnerColumns(results, isFull) {
  const has = (test) => results.winners.some(test);
  return [
    {title: 'Operator', value: (w) => w.problem.family},
    {
      title: 'Problem',
      value: (w) => w.problem.staticFields,
      cell: (w) => fieldsCell(w.problem.staticFields, isFull),
      text: 'text',
    },
    {title: 'Sizes', value: sizeValue, cell: (w) => element('span', {class: 'mono'}, w.problem.dynamicFields)},
    results.gpus.length > 1 ? {title: 'GPU', value: (w) => gpuName(w.gpu), text: 'name'} : null,
    {title: 'Time, µs', value: (w) => w.us, cell: (w) => formatUs(w.us), number: true},
    has((w) => w.speedup > 0)
      ? {
          title: 'vs default',
          value: (w) => w.speedup,
          cell: (w) => element('span', {class: w.speedup >= 1.005 ? 'faster' : null}, formatRatio(w.speedup)),
          number: true,
          first: 'descending',
        }
      : null,
    has((w) => w.floorShare > 0)
      ? {
          title: 'Of the floor',
          value: (w) => w.floorShare,
          cell: (w) => formatShare(w.floorShare),
          number: true,
          first: 'descending',
        }
      : null,
    {title: 'Winner', value: (w) => w.candidate, cell: (w) => candidateCell(w.candidate), text: 'wide'},
    {
      title: 'Rate',
      value: (w) => w.flopsPerS,
      cell: (w) => formatRate(w.flopsPerS, 'FLOP/s'),
      number: true,
      first: 'descending',
    },
    has((w) => w.energyMj > 0)
      ? {
          title: 'Energy, mJ',
          value: (w) => (w.energyMj > 0 ? w.energyMj : null),
          cell: (w) => (w.energyMj > 0 ? digits(w.energyMj, 3) : missing),
          number: true,
        }
      : null,
    {title: 'From', value: (w) => `${w.layer}, ${w.provenance}`},
    has((w) => w.trust) ? {title: 'Trust here', value: (w) => w.trust} : null,
    {title: 'Tuned (UTC)', value: (w) => w.at, cell: (w) => formatDate(w.at), number: true, first: 'descending'},
  ].filter(Boolean);
}

class WinnersTable {
  constructor(host, results) {
    this.results = results;
    this.words = '';
    this.family = '';
    this.isFull = false;
    this.count = element('p', {class: 'lede', role: 'status'});
    this.box = element('div');
    host.append(this.controls(), this.count, this.box);
    this.texts = results.winners.map((w) =>
      [
        w.problem.family,
        w.problem.staticFields,
        w.problem.dynamicFields,
        w.candidate,
        w.gpu.name,
        w.layer,
        w.provenance,
      ]
        .join(' ')
        .toLowerCase(),
    );
    this.rebuild();
  }

  controls() {
    const id = newId('search');
    const search = element('input', {
      id,
      type: 'search',
      placeholder: 'hidden=4096 gemv',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: () => {
        this.words = search.value;
        this.filter();
      },
    });
    const families = [...new Set(this.results.winners.map((w) => w.problem.family))].sort();
    return element(
      'div',
      {class: 'controls'},
      element('div', {class: 'control'}, element('label', {for: id}, 'Rows that have all these words'), search),
      choice(
        'Operator',
        [{value: '', text: 'all'}, ...families.map((name) => ({value: name, text: name}))],
        '',
        (family) => {
          this.family = family;
          this.filter();
        },
      ),
      checkbox('Show fields that are off', false, (isFull) => {
        this.isFull = isFull;
        this.rebuild();
      }),
    );
  }

  chosen() {
    const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
    return this.results.winners.filter(
      (w) =>
        (!this.family || w.problem.family === this.family) &&
        words.every((word) => this.texts[w.index].includes(word)),
    );
  }

  /** Columns may have come with the trials. */
  rebuild() {
    const old = this.table;
    const sort = old?.sort ? old.columns[old.sort.column].title : null;
    const columns = winnerColumns(this.results, this.isFull);
    const place = columns.findIndex((column) => column.title === sort);
    this.box.replaceChildren();
    this.table = new SortedTable(this.box, {
      caption: 'Winners, of all layers of the cache',
      columns,
      rows: this.chosen(),
      sort: place >= 0 ? {column: place, descending: old.sort.descending} : null,
      step: 100,
    });
    this.say();
  }

  filter() {
    this.table.show(this.chosen());
    this.say();
  }

  say() {
    const [shown, all] = [this.table.rows.length, this.results.winners.length];
    this.count.textContent =
      shown === all ? `${plural(all, 'winner')}.` : `${formatCount(shown)} of ${plural(all, 'winner')}.`;
  }
}

function startWinners() {
  const host = section(
    'winners',
    'Winners',
    'What dispatch would take, of every layer of the cache and every GPU. A heading sorts.',
  );
  state.winnersTable = new WinnersTable(host, state.results);
}
