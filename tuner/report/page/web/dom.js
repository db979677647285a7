'use strict';
// Elements from data. Texts only ever become text nodes or attributes that hold no code: what a cache says cannot
// become HTML.

/** element('td', {class: 'number'}, 'text', child): attributes by name, functions as listeners ('onclick'). */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const byId = (id) => document.getElementById(id);

let lastId = 0;
const newId = (stem) => `${stem}-${++lastId}`;

/** A section with its heading; the sections stand in the order in which they are made. */
function section(id, title, lede) {
  const made = element(
    'section',
    {id, 'aria-labelledby': `${id}-title`},
    element('h2', {id: `${id}-title`}, title),
    element('p', {class: 'lede'}, lede),
  );
  byId('main').append(made);
  byId('contents').append(element('a', {href: `#${id}`}, title));
  return made;
}

/** What a section says in place of a chart. */
const notice = (...words) => element('p', {class: 'notice'}, ...words);

/** A labelled select. `options`: [{value, text}]; `onchange` gets the value. */
function choice(label, options, value, onchange, wide = false) {
  const id = newId('choice');
  const select = element('select', {id, onchange: () => onchange(select.value)});
  for (const option of options) {
    select.append(
      element('option', {value: option.value, selected: String(option.value) === String(value)}, option.text),
    );
  }
  return element('div', {class: wide ? 'control wide' : 'control'}, element('label', {for: id}, label), select);
}

/** A group of buttons of which one is pressed. */
function segments(label, options, value, onchange) {
  const buttons = options.map((option) =>
    element(
      'button',
      {
        type: 'button',
        'aria-pressed': String(option.value === value),
        onclick: () => {
          buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(options[i] === option)));
          onchange(option.value);
        },
      },
      option.text,
    ),
  );
  return element('fieldset', {}, element('legend', {}, label), element('div', {class: 'segments'}, ...buttons));
}

/** A labelled checkbox. */
function checkbox(label, checked, onchange) {
  const id = newId('check');
  const box = element('input', {id, type: 'checkbox', checked, onchange: () => onchange(box.checked)});
  return element('div', {class: 'control check'}, box, element('label', {for: id}, label));
}
