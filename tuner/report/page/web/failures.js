'use strict';
// What fails, and why.

const statusWords = {
  over_limits: 'spills, too many registers or too much shared memory', compile_failed: 'the compiler refused it, or took too long', launch_failed: 'the driver refused the launch',
  wrong_result: 'the result was wrong', timed_out: 'it did not end in time', crashed: 'it faulted',
};

/** Failed trials of the GPU by operator, status and cause, the most frequent first. */
function failureGroups() {
  const {results, gpu} = state;
  const {trials} = results;
  const groups = new Map();
  for (let i = 0; i < (trials?.count ?? 0); ++i) {
    if (trials.isOk(i) || trials.columns.gpu[i] !== gpu.index) continue;
    const problem = results.problems[trials.columns.problem[i]];
    const key = `${problem.family} ${trials.columns.status[i]} ${trials.columns.detail[i]}`;
    const group = groups.get(key);
    if (group) group.count += 1;
    else groups.set(key, {...trials.trialAt(i), operator: problem.family, problem: problem.text, count: 1});
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

/** Trials by operator and status; those that worked too, so that bars show shares. */
function statusCounts() {
  const {results, gpu} = state;
  const {trials} = results;
  const counts = new Map();
  for (let i = 0; i < (trials?.count ?? 0); ++i) {
    if (trials.columns.gpu[i] !== gpu.index) continue;
    const operator = results.problems[trials.columns.problem[i]].family;
    const status = trials.statuses[trials.columns.status[i]];
    const row = counts.get(`${operator} ${status}`) ?? {operator, status, count: 0};
    row.count += 1;
    counts.set(`${operator} ${status}`, row);
  }
  const rows = [...counts.values()];
  for (const row of rows) {
    const all = rows.filter(({operator}) => operator === row.operator).reduce((sum, {count}) => sum + count, 0);
    Object.assign(row, {all, shareText: formatShare(row.count / all), countText: formatCount(row.count), says: statusWords[row.status] ?? 'it worked'});
  }
  return rows;
}

function failureSpec(rows) {
  const {categories, faint, bad} = palette();
  const statuses = ['ok', ...Object.keys(statusWords)];
  const shades = [colour('line'), faint, categories[4], categories[1], bad, categories[5], categories[3]];
  const used = statuses.map((status, i) => [status, shades[i]]).filter(([status]) => rows.some((row) => row.status === status));
  return {
    height: {step: 34},
    data: {values: rows.map((row) => ({...row, order: statuses.indexOf(row.status)}))},
    mark: {type: 'bar', height: 20, stroke: colour('card'), strokeWidth: 1},
    encoding: {
      y: {field: 'operator', type: 'nominal', title: null, axis: {labelFontSize: 13, labelColor: colour('ink'), labelLimit: 260}},
      x: {field: 'count', type: 'quantitative', stack: 'normalize', title: 'share of the operator’s trials', axis: {format: '.0%', tickCount: 5}},
      order: {field: 'order', type: 'quantitative'},
      color: {field: 'status', type: 'nominal', title: null, scale: {domain: used.map(([name]) => name), range: used.map(([, shade]) => shade)}},
      tooltip: [tip('operator', 'Operator'), tip('status', 'Status'), tip('says', 'That is'), tip('countText', 'Trials'), tip('shareText', 'Share')],
    },
  };
}

function drawFailures() {
  const rows = statusCounts();
  if (rows.length === 0) return {notice: nothingTried()};
  const failed = rows.filter((row) => row.status !== 'ok').reduce((sum, row) => sum + row.count, 0);
  const all = rows.reduce((sum, row) => sum + row.count, 0);
  return {
    spec: failureSpec(rows),
    label: failed === 0 ? `None of ${plural(all, 'trial')} failed.` : `${formatCount(failed)} of ${plural(all, 'trial')} failed, ${formatShare(failed / all)}.`,
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.operator}, {title: 'Status', value: (row) => row.status}, {title: 'That is', value: (row) => row.says, text: true},
      {title: 'Trials', value: (row) => row.count, cell: (row) => row.countText, number: true, first: 'descending'}, {title: 'Share', value: (row) => row.count / row.all, cell: (row) => row.shareText, number: true, first: 'descending'},
    ],
  };
}

function startFailures() {
  const host = section('failures', 'Failures', 'Candidates that did not make it: a failed trial is an answer, and is not tried again.');
  const chart = new Chart(host, drawFailures);
  const box = element('div');
  host.append(box);
  const update = () => {
    chart.update();
    const groups = failureGroups();
    box.replaceChildren();
    if (groups.length === 0) return;
    new SortedTable(box, {caption: 'Causes, as the program stored them', rows: groups, step: 25, sort: {column: 3, descending: true}, columns: [
      {title: 'Operator', value: (row) => row.operator}, {title: 'Status', value: (row) => row.status}, {title: 'Cause', value: (row) => row.detail || missing, text: true},
      {title: 'Trials', value: (row) => row.count, cell: (row) => formatCount(row.count), number: true, first: 'descending'},
      {title: 'For example', value: (row) => row.candidate, cell: (row) => candidateCell(row.candidate), text: true},
    ]});
  };
  gpuListeners.push(update);
}
