'use strict';
// What fails, and why.

const statusWords = {
  over_limits: 'spills, too many registers or too much shared memory',
  compile_failed: 'the compiler refused it, or took too long',
  launch_failed: 'the driver refused the launch',
  wrong_result: 'the result was wrong',
  timed_out: 'it did not end in time',
  crashed: 'it faulted',
};

/** Causes that differ in numbers alone are one: the pattern, and the numbers. */
const numbersIn = /\d+(?:\.\d+)?/g;
const patternOf = (cause) => cause.replace(numbersIn, '#');

/** "spills 8 to 96 bytes of registers": the pattern with the least and the greatest number of each place. */
function causeText({pattern, least, greatest}) {
  let place = 0;
  return pattern.replace(/#/g, () => {
    const [low, high] = [least[place], greatest[place++]];
    return low === undefined ? '#' : low === high ? String(low) : `${low} to ${high}`;
  });
}

/** Failed trials of the GPU by operator, status and cause, the most frequent first. */
function failureGroups() {
  const {results, gpu} = state;
  const {trials} = results;
  const groups = new Map();
  for (let i = 0; i < (trials?.count ?? 0); ++i) {
    if (trials.isOk(i) || trials.columns.gpu[i] !== gpu.index) continue;
    const operator = results.problems[trials.columns.problem[i]].family;
    const {detail, status, candidate} = trials.trialAt(i);
    const pattern = patternOf(detail);
    const numbers = (detail.match(numbersIn) ?? []).map(Number);
    const key = JSON.stringify([operator, status, pattern]);
    const group = groups.get(key) ?? {
      operator,
      status,
      candidate,
      pattern,
      count: 0,
      least: numbers,
      greatest: numbers,
    };
    group.count += 1;
    group.least = group.least.map((number, k) => Math.min(number, numbers[k]));
    group.greatest = group.greatest.map((number, k) => Math.max(number, numbers[k]));
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

/** Failed trials by operator and status, and how many each operator has in all. */
function statusCounts() {
  const {results, gpu} = state;
  const {trials} = results;
  const failed = new Map();
  const all = new Map();
  for (let i = 0; i < (trials?.count ?? 0); ++i) {
    if (trials.columns.gpu[i] !== gpu.index) continue;
    const operator = results.problems[trials.columns.problem[i]].family;
    all.set(operator, (all.get(operator) ?? 0) + 1);
    if (trials.isOk(i)) continue;
    const status = trials.statuses[trials.columns.status[i]];
    const row = failed.get(`${operator} ${status}`) ?? {operator, status, count: 0};
    row.count += 1;
    failed.set(`${operator} ${status}`, row);
  }
  const rows = [...failed.values()].map((row) => ({
    ...row,
    all: all.get(row.operator),
    shareText: formatShare(row.count / all.get(row.operator)),
    countText: formatCount(row.count),
    says: statusWords[row.status] ?? '',
  }));
  return {rows, all};
}

/** What stands at the end of each operator's bar. */
function operatorSums({rows, all}) {
  return [...all].map(([operator, count]) => {
    const failed = rows.filter((row) => row.operator === operator).reduce((sum, row) => sum + row.count, 0);
    return {
      operator,
      failed,
      text:
        failed === 0
          ? `none of ${formatCount(count)}`
          : `${formatCount(failed)} of ${formatCount(count)}, ${formatShare(failed / count)}`,
    };
  });
}

function failureSpec(counts) {
  const {categories, faint, bad} = palette();
  const statuses = Object.keys(statusWords);
  const shades = [faint, categories[5], categories[0], bad, categories[1], categories[3]];
  const used = statuses
    .map((status, i) => [status, shades[i]])
    .filter(([status]) => counts.rows.some((row) => row.status === status));
  const sums = operatorSums(counts);
  const y = {
    field: 'operator',
    type: 'nominal',
    title: null,
    axis: {labelFontSize: 13, labelColor: colour('ink'), labelLimit: 260, grid: false},
  };
  const scale = {domain: [0, Math.max(1, ...sums.map((sum) => sum.failed)) * 1.25], nice: false};
  return {
    height: {step: 34},
    layer: [
      {
        data: {values: counts.rows.map((row) => ({...row, order: statuses.indexOf(row.status)}))},
        mark: {type: 'bar', height: 20},
        encoding: {
          y,
          x: {
            field: 'count',
            type: 'quantitative',
            stack: 'zero',
            title: 'failed trials',
            scale,
            axis: {tickCount: 6, tickMinStep: 1},
          },
          order: {field: 'order', type: 'quantitative'},
          color: {
            field: 'status',
            type: 'nominal',
            title: null,
            scale: {domain: used.map(([name]) => name), range: used.map(([, shade]) => shade)},
          },
          tooltip: [
            tip('operator', 'Operator'),
            tip('status', 'Status'),
            tip('says', 'That is'),
            tip('countText', 'Trials'),
            tip('shareText', 'Of the operator’s'),
          ],
        },
      },
      {
        data: {values: sums},
        mark: {type: 'text', align: 'left', dx: 8, color: colour('muted')},
        encoding: {y, x: {field: 'failed', type: 'quantitative', scale}, text: {field: 'text'}},
      },
    ],
  };
}

function drawFailures() {
  const counts = statusCounts();
  const {rows} = counts;
  const all = [...counts.all.values()].reduce((sum, count) => sum + count, 0);
  if (all === 0) return {notice: nothingTried()};
  if (rows.length === 0) return {notice: `None of ${plural(all, 'trial')} failed.`};
  const failed = rows.reduce((sum, row) => sum + row.count, 0);
  return {
    spec: failureSpec(counts),
    label: `${formatCount(failed)} of ${plural(all, 'trial')} failed, ${formatShare(failed / all)}.`,
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.operator},
      {title: 'Status', value: (row) => row.status},
      {title: 'That is', value: (row) => row.says, text: 'text'},
      {title: 'Trials', value: (row) => row.count, cell: (row) => row.countText, number: true, first: 'descending'},
      {
        title: 'Of the operator’s',
        value: (row) => row.count / row.all,
        cell: (row) => row.shareText,
        number: true,
        first: 'descending',
      },
    ],
  };
}

function startFailures() {
  const host = section(
    'failures',
    'Failures',
    'Candidates that did not make it: a failed trial is an answer, and is not tried again.',
  );
  const chart = new Chart(host, drawFailures);
  const box = element('div');
  host.append(box);
  const update = () => {
    chart.update();
    const groups = failureGroups();
    box.replaceChildren();
    if (groups.length === 0) return;
    new SortedTable(box, {
      caption: 'Causes, as the program stored them',
      rows: groups,
      step: 25,
      sort: {column: 3, descending: true},
      columns: [
        {title: 'Operator', value: (row) => row.operator},
        {title: 'Status', value: (row) => row.status},
        {title: 'Cause', value: (row) => causeText(row) || missing, text: 'text'},
        {
          title: 'Trials',
          value: (row) => row.count,
          cell: (row) => formatCount(row.count),
          number: true,
          first: 'descending',
        },
        {
          title: 'For example',
          value: (row) => row.candidate,
          cell: (row) => candidateCell(row.candidate),
          text: 'text',
        },
      ],
    });
  };
  gpuListeners.push(update);
}
