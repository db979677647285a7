'use strict';
// Charts: drawn by Vega-Lite when they come into view, again when data or colours change. Each has words for those
// who do not see it, and its data as a table.

const loadVega = (() => {
  let loading = null;
  const run = async (id) => {
    const script = document.createElement('script');
    script.textContent = await unpack(id); // one of those whose hash the page's policy names
    document.head.append(script);
    byId(id).remove();
  };
  return () => {
    loading ??= (async () => {
      for (const id of ['vega', 'vega-interpreter', 'vega-lite']) await run(id);
    })();
    return loading;
  };
})();

/** Shows what a chart knows of the mark below the pointer. */
function showTooltip(handler, event, item, value) {
  const tooltip = byId('tooltip');
  if (value === null || value === undefined || value === '') {
    tooltip.hidden = true;
    return;
  }
  const list = element('dl');
  for (const [name, text] of Object.entries(value))
    list.append(element('dt', {}, name), element('dd', {}, String(text)));
  tooltip.replaceChildren(list);
  tooltip.hidden = false;
  const {width, height} = tooltip.getBoundingClientRect();
  const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
  const top = event.clientY + 14 + height > innerHeight ? event.clientY - 14 - height : event.clientY + 14;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

/**
 * A chart below `host`. `draw()` returns {spec, label, rows, columns}: a Vega-Lite specification without colours of
 * the page, one or two sentences, and the data as a table; or {notice} where there is nothing to draw.
 */
class Chart {
  constructor(host, draw) {
    this.draw = draw;
    this.view = null;
    this.isVisible = false;
    this.isStale = true;
    this.canvas = element('div', {class: 'canvas', 'aria-hidden': 'true'});
    this.plot = element(
      'div',
      {class: 'plot', role: 'img', 'aria-label': 'A chart that is not drawn yet'},
      this.canvas,
    );
    this.table = element('details', {ontoggle: () => this.fillTable()}, element('summary', {}, 'Data as a table'));
    this.note = notice('');
    this.figure = element('figure', {}, this.note, this.plot, this.table);
    host.append(this.figure);
    new IntersectionObserver(
      ([entry]) => {
        this.isVisible = entry.isIntersecting;
        this.refresh();
      },
      {rootMargin: '300px'},
    ).observe(this.figure);
    themeListeners.push(() => this.update());
    Chart.all.push(this);
    this.describe();
  }

  /** After a change of what it shows. */
  update() {
    this.isStale = true;
    this.describe();
    this.refresh();
  }

  describe() {
    this.drawn = this.draw();
    const {notice: words, label} = this.drawn;
    this.note.hidden = !words;
    this.note.textContent = words ?? '';
    this.plot.hidden = this.table.hidden = Boolean(words);
    this.plot.setAttribute('aria-label', label ?? '');
    this.fillTable();
  }

  async refresh() {
    if (!this.isVisible || !this.isStale || this.drawn.notice) return;
    this.isStale = false;
    await loadVega();
    if (this.drawn.notice) return;
    this.finish();
    const {spec} = vegaLite.compile(
      {width: 'container', autosize: {type: 'fit-x', contains: 'padding'}, ...this.drawn.spec},
      {config: chartConfig(), logger: quietLogger},
    );
    this.view = new vega.View(vega.parse(spec, null, {ast: true}), {
      expr: vegaInterpreter.expressionInterpreter,
      container: this.canvas,
      renderer: 'canvas',
      hover: true,
      tooltip: showTooltip,
      logLevel: vega.Error,
    });
    await this.view.runAsync();
    this.plot.classList.add('drawn');
  }

  finish() {
    this.view?.finalize();
    this.view = null;
    this.canvas.replaceChildren();
    byId('tooltip').hidden = true;
  }

  fillTable() {
    this.body?.remove();
    this.body = null;
    if (!this.table.open || this.drawn.notice) return;
    this.body = element('div');
    this.table.append(this.body);
    new SortedTable(this.body, {caption: this.drawn.label, columns: this.drawn.columns, rows: this.drawn.rows});
  }
}
Chart.all = [];

/** Warnings of Vega-Lite are for those who write specifications. */
const quietLogger = {
  level() {
    return this;
  },
  error() {
    return this;
  },
  warn() {
    return this;
  },
  info() {
    return this;
  },
  debug() {
    return this;
  },
};

/** Encodings that several charts have. `format` in tooltips is a text field of the row. */
const tip = (field, title) => ({field, type: 'nominal', title});
const logScale = (extra = {}) => ({type: 'log', nice: false, ...extra});

/** Ticks that a log axis of ratios gets between two values. */
function ratioTicks(low, high) {
  const fine = [0.8, 0.85, 0.9, 0.95, 1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5];
  const coarse = [0.1, 0.2, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100];
  return (high / low < 1.7 ? fine : coarse).filter((tick) => tick >= low && tick <= high);
}

/**
 * Ratios by group on a log axis: a tick each, the geometric mean as a diamond, a line at 1. Rows: {group, operator,
 * ratio, ...texts for the tooltip}.
 */
function ratioStrip({results, rows, groups, title, tooltip, isByOperator = true}) {
  const ratios = rows.map((row) => row.ratio);
  const low = Math.min(1, ...ratios) * 0.985;
  const high = Math.max(1.05, ...ratios) * 1.015;
  const means = groups
    .map((group) => {
      const of = rows.filter((row) => row.group === group);
      return {group, mean: geometricMean(of.map((row) => row.ratio)), count: of.length};
    })
    .map((row) => ({...row, text: `${row.mean.toFixed(2)}×`}));
  const y = {
    field: 'group',
    type: 'nominal',
    sort: groups,
    title: null,
    axis: {labelLimit: 260, labelColor: colour('ink'), labelFontSize: 13, grid: false},
  };
  const x = {
    type: 'quantitative',
    scale: logScale({domain: [low, high], range: [0, {expr: 'width - 64'}]}),
    title,
    axis: {values: ratioTicks(low, high), labelExpr: "format(datum.value, '~g') + '×'"},
  };
  return {
    height: {step: 34},
    layer: [
      {
        data: {values: [{one: 1}]},
        mark: {type: 'rule', color: colour('strong-line'), strokeDash: [4, 3]},
        encoding: {x: {...x, field: 'one'}},
      },
      {
        data: {values: rows},
        mark: {type: 'tick', thickness: 2, size: 18, opacity: 0.6},
        encoding: {
          x: {...x, field: 'ratio'},
          y,
          color: isByOperator
            ? {field: 'operator', type: 'nominal', scale: colourOf(results, rows), legend: null}
            : {value: palette().categories[0]},
          tooltip,
        },
      },
      {
        data: {values: means},
        mark: {
          type: 'point',
          shape: 'diamond',
          size: 110,
          filled: true,
          opacity: 1,
          color: colour('ink'),
          stroke: colour('card'),
          strokeWidth: 1.5,
        },
        encoding: {
          x: {...x, field: 'mean'},
          y,
          tooltip: [tip('group', 'Group'), tip('text', 'Geometric mean'), tip('count', 'Problems')],
        },
      },
      {
        data: {values: means},
        mark: {type: 'text', align: 'right', dx: -4, fontWeight: 600, fontSize: 13},
        encoding: {
          x: {value: 'width'},
          y,
          text: {field: 'text'},
        },
      },
    ],
  };
}
