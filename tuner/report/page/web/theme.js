'use strict';
// Light and dark: as the system says, until the button says otherwise.

const palettes = {
  light: {
    categories: [
      '#2f54c4',
      '#d9602b',
      '#17825f',
      '#a8327c',
      '#0f86a8',
      '#6a4bc0',
      '#a77a06',
      '#b3261e',
      '#5b7a1f',
      '#6b7080',
      '#8c4a2f',
      '#3c8fd9',
    ],
    sequential: ['#173a8f', '#2f63c8', '#6f9fe3', '#b9d3f3', '#eef4fb'],
    best: '#c8541b',
    faint: '#9aa1b1',
    failed: '#e6e3de',
    bad: '#b3261e',
  },
  dark: {
    categories: [
      '#7d9dff',
      '#ff9a5c',
      '#4fd0a0',
      '#f07fc2',
      '#4fc4e8',
      '#b79cff',
      '#e3c04a',
      '#ff8078',
      '#a9cf5a',
      '#a7aec0',
      '#dd9a78',
      '#8cc4ff',
    ],
    sequential: ['#d7e6ff', '#8fb4fa', '#4f7fe0', '#2d4f9c', '#1d2a4a'],
    best: '#ff9a5c',
    faint: '#6d768a',
    failed: '#262a33',
    bad: '#ff8078',
  },
};

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;
const themeListeners = [];

const themeName = () => chosenTheme ?? (systemIsDark.matches ? 'dark' : 'light');
const palette = () => palettes[themeName()];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function applyTheme() {
  document.documentElement.dataset.theme = themeName();
  byId('theme').setAttribute('aria-pressed', String(themeName() === 'dark'));
  for (const listener of themeListeners) listener();
}

function startTheme() {
  byId('theme').addEventListener('click', () => {
    chosenTheme = themeName() === 'dark' ? 'light' : 'dark';
    applyTheme();
  });
  systemIsDark.addEventListener('change', applyTheme);
  applyTheme();
}

/** How Vega draws what no chart says of itself. */
function chartConfig() {
  const [ink, muted, line] = [colour('ink'), colour('muted'), colour('line')];
  const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';
  const text = {
    labelFont: font,
    titleFont: font,
    labelColor: muted,
    titleColor: muted,
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: 500,
  };
  return {
    background: null,
    font,
    padding: {left: 4, right: 12, top: 6, bottom: 4},
    view: {stroke: null},
    axis: {
      ...text,
      gridColor: line,
      domainColor: colour('strong-line'),
      tickColor: colour('strong-line'),
      labelPadding: 6,
      titlePadding: 10,
      tickSize: 4,
    },
    axisY: {domain: false, ticks: false},
    legend: {
      ...text,
      symbolStrokeWidth: 2,
      symbolSize: 70,
      orient: 'top',
      direction: 'horizontal',
      offset: 10,
      columnPadding: 14,
      labelLimit: 220,
      titlePadding: 4,
    },
    header: {...text, labelColor: ink},
    text: {font, color: ink, fontSize: 12},
    range: {category: palette().categories, heatmap: palette().sequential, ramp: palette().sequential},
  };
}

/** A colour for each operator, the same in all charts. */
function familyScale(results) {
  const names = results.data.families.map((family) => family.name).sort();
  return {domain: names, range: names.map((_, i) => palette().categories[i % palette().categories.length])};
}

/** A scale of those operators alone that a chart has. */
function colourOf(results, rows, field = 'operator') {
  const all = familyScale(results);
  const used = new Set(rows.map((row) => row[field]));
  const kept = all.domain.map((name, i) => [name, all.range[i]]).filter(([name]) => used.has(name));
  return {domain: kept.map(([name]) => name), range: kept.map(([, shade]) => shade)};
}
