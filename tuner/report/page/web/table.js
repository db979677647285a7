'use strict';
// Tables that sort: real buttons in the headings, aria-sort, and a sentence for screen readers.

/**
 * A table below `host`. `columns`: [{title, value(row), cell(row), number, text, first}]: `value` is what is sorted
 * by, `cell` a text or node where that is not the value itself; `text` is 'text' or 'wide' where lines may break, or
 * 'name' where they may not; `first: 'descending'` is the first direction.
 */
class SortedTable {
  constructor(host, {caption, columns, rows, sort = null, step = 200}) {
    this.columns = columns;
    this.step = step;
    this.shown = step;
    this.sort = sort; // {column, descending}
    this.head = element('tr');
    this.body = element('tbody');
    this.caption = element('caption', {}, caption);
    this.status = element('p', {class: 'hidden-text', role: 'status'});
    this.more = element('p', {class: 'more'});
    columns.forEach((column, i) => this.head.append(this.heading(column, i)));
    host.append(
      element(
        'div',
        {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
        element('table', {}, this.caption, element('thead', {}, this.head), this.body),
      ),
      this.more,
      this.status,
    );
    this.show(rows);
  }

  heading(column, i) {
    const button = element('button', {type: 'button', onclick: () => this.sortBy(i)}, column.title);
    return element('th', {scope: 'col', class: column.number ? 'number' : null}, button);
  }

  show(rows) {
    this.rows = rows;
    this.shown = this.step;
    this.fill();
  }

  sortBy(i) {
    const descending = this.sort?.column === i ? !this.sort.descending : this.columns[i].first === 'descending';
    this.sort = {column: i, descending};
    this.fill();
    this.status.textContent = `Sorted by ${this.columns[i].title}, ${descending ? 'descending' : 'ascending'}`;
  }

  /** Rows without a value come last either way. */
  sorted() {
    if (!this.sort) return this.rows;
    const {value} = this.columns[this.sort.column];
    const sign = this.sort.descending ? -1 : 1;
    const keyed = this.rows.map((row) => [value(row) ?? '', row]);
    keyed.sort(([a], [b]) => {
      if ((a === '') !== (b === '')) return a === '' ? 1 : -1;
      return sign * compareValues(a, b);
    });
    return keyed.map(([, row]) => row);
  }

  fill() {
    const rows = this.sorted();
    this.body.replaceChildren(...rows.slice(0, this.shown).map((row) => this.line(row)));
    [...this.head.children].forEach((cell, i) => {
      const direction = this.sort?.column === i ? (this.sort.descending ? 'descending' : 'ascending') : 'none';
      cell.setAttribute('aria-sort', direction);
    });
    this.offerMore(rows.length);
  }

  line(row) {
    const line = element('tr');
    for (const column of this.columns) {
      const shown = column.cell ? column.cell(row) : column.value(row);
      line.append(element('td', {class: column.number ? 'number' : column.text}, shown ?? missing));
    }
    return line;
  }

  offerMore(count) {
    this.more.replaceChildren();
    this.more.hidden = count <= this.shown;
    if (this.more.hidden) return;
    this.more.append(
      `${formatCount(this.shown)} of ${formatCount(count)} rows`,
      element(
        'button',
        {
          type: 'button',
          onclick: () => {
            this.shown = count;
            this.fill();
          },
        },
        'Show all',
      ),
    );
  }
}
