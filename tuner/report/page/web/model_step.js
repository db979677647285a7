'use strict';
// What the time of a model's step is spent on.

function stepName(step) {
  if (step.kind === 'decode') {
    const sequences =
      step.tokens === 1 ? 'one token of one sequence' : `one token each of ${formatCount(step.tokens)} sequences`;
    return `${sequences}${step.kv_len ? `, ${formatCount(step.kv_len)} keys in the cache` : ''}`;
  }
  return `${step.kind === 'prompt' ? 'a prompt' : 'a text'} of ${plural(step.tokens, 'token')}`;
}

/** Operators of a step with their times; those without one apart. */
function stepRows(step) {
  const rows = [];
  const unknown = [];
  for (const op of step.operators) {
    const winner = op.problem === null ? null : state.results.winnerOf(op.problem, state.gpu.index);
    if (!(winner?.us > 0)) {
      unknown.push(op);
      continue;
    }
    rows.push({
      role: op.role,
      operator: op.family,
      count: op.count,
      us: winner.us,
      total: winner.us * op.count,
      problem: winner.problem.text,
      time: formatTime(winner.us),
      totalTime: formatTime(winner.us * op.count),
      floor: formatShare(winner.floorShare),
      candidate: winner.candidate,
    });
  }
  const total = rows.reduce((sum, row) => sum + row.total, 0);
  for (const row of rows) {
    row.share = row.total / total;
    row.shareText = formatShare(row.share);
    row.label = `${row.shareText}  ${row.totalTime}`;
  }
  rows.sort((a, b) => b.total - a.total);
  return {rows, unknown, total};
}

function unknownText(unknown) {
  const untuned = unknown.filter((op) => op.problem !== null).map((op) => op.role);
  const none = unknown.filter((op) => op.problem === null).map((op) => op.role);
  return [
    untuned.length > 0 ? `Without a winner at this size, and left out: ${untuned.join(', ')}.` : '',
    none.length > 0 ? `Without a kernel of Hone, and left out: ${none.join(', ')}.` : '',
  ]
    .filter(Boolean)
    .join(' ');
}

function stepSpec(rows) {
  const y = {
    field: 'role',
    type: 'nominal',
    sort: rows.map((row) => row.role),
    title: null,
    axis: {labelLimit: 320, labelColor: colour('ink'), labelFontSize: 13},
  };
  const x = {field: 'total', type: 'quantitative', axis: null, scale: {domain: [0, rows[0].total * 1.22]}};
  return {
    height: {step: 30},
    data: {values: rows},
    layer: [
      {
        mark: {type: 'bar', cornerRadiusEnd: 3, height: 20},
        encoding: {
          x,
          y,
          color: {field: 'operator', type: 'nominal', title: null, scale: colourOf(state.results, rows)},
          tooltip: [
            tip('role', 'Operator'),
            tip('shareText', 'Share'),
            tip('totalTime', 'All calls'),
            tip('count', 'Calls'),
            tip('time', 'A call'),
            tip('floor', 'Of the floor'),
            tip('problem', 'Problem'),
            tip('candidate', 'Winner'),
          ],
        },
      },
      {mark: {type: 'text', align: 'left', dx: 8, fontSize: 12}, encoding: {x, y, text: {field: 'label'}}},
    ],
  };
}

function drawStep(step) {
  const {rows, unknown, total} = stepRows(step);
  if (rows.length === 0)
    return {
      notice: `This GPU has no winner for ${stepName(step)}: hone tune ${state.results.data.model.name} finds them.`,
    };
  return {
    spec: stepSpec(rows),
    label: sentences(
      `Kernels take ${formatTime(total)} for ${stepName(step)}; ${rows[0].role} takes ${rows[0].shareText} of it.`,
      unknownText(unknown),
    ),
    rows,
    columns: [
      {title: 'Operator', value: (row) => row.role},
      {title: 'Share', value: (row) => row.share, cell: (row) => row.shareText, number: true, first: 'descending'},
      {title: 'All calls', value: (row) => row.total, cell: (row) => row.totalTime, number: true},
      {title: 'Calls', value: (row) => row.count, number: true},
      {title: 'A call', value: (row) => row.us, cell: (row) => row.time, number: true},
      {title: 'Of the floor', value: (row) => row.floor, number: true},
      {title: 'Problem', value: (row) => row.problem, text: 'text'},
    ],
  };
}

/** The first of those steps that most operators have a winner for. */
function fullestStep(steps) {
  const counts = steps.map((step) => stepRows(step).rows.length);
  return counts.indexOf(Math.max(...counts));
}

function startModelStep() {
  const {model} = state.results.data;
  const host = section(
    'model',
    'Model',
    model
      ? `What the kernels of ${model.name} take of a step: a call's time, as often as the model calls it. ` +
          'What happens between kernels is not in it.'
      : 'What the time of a model’s step is spent on.',
  );
  if (!model) {
    host.append(notice('No model was asked for: hone report --model NAME, or the path of a config.json.'));
    return;
  }
  let step = model.steps[fullestStep(model.steps)];
  const words = element('p', {class: 'lede', 'aria-live': 'polite'});
  const controls = element(
    'div',
    {class: 'controls'},
    choice(
      'Step',
      model.steps.map((one, i) => ({value: i, text: stepName(one)})),
      model.steps.indexOf(step),
      (i) => {
        step = model.steps[Number(i)];
        update();
      },
    ),
  );
  host.append(controls, words);
  const chart = new Chart(host, () => drawStep(step));
  const update = () => {
    chart.update();
    words.textContent = chart.drawn.label ?? '';
  };
  gpuListeners.push(update);
  update();
}
