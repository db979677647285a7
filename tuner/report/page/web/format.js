'use strict';
// Numbers and texts for people.

const missing = '–';

/** Four digits: 1.502, 23.40, 812.5, 12340. */
function formatUs(us) {
  if (!(us > 0)) return missing;
  return us < 10 ? us.toFixed(3) : us < 100 ? us.toFixed(2) : us < 1000 ? us.toFixed(1) : us.toFixed(0);
}

/** A time with its unit: 1.502 µs, 1.23 ms. */
function formatTime(us) {
  if (!(us > 0)) return missing;
  return us < 1000 ? `${formatUs(us)} µs` : us < 1e6 ? `${digits(us / 1e3, 3)} ms` : `${digits(us / 1e6, 3)} s`;
}

/** That many significant digits, never as a power of ten. */
function digits(value, count) {
  if (!Number.isFinite(value)) return missing;
  const decimals = value === 0 ? 0 : Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(decimals, 12));
}

const formatRatio = (ratio) => (ratio > 0 ? `${ratio.toFixed(2)}×` : missing);
function formatShare(share) {
  if (!(share > 0)) return missing;
  return share < 0.0005 ? '< 0.1 %' : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}
const formatCount = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, '\u202f');

/** A rate in the largest unit that leaves a digit in front: 989 TFLOP/s. */
function formatRate(rate, unit) {
  if (!(rate > 0)) return missing;
  for (const [size, letter] of [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
  ]) {
    if (rate >= size) return `${digits(rate / size, 3)} ${letter}${unit}`;
  }
  return `${digits(rate, 3)} ${unit}`;
}

const pad = (number) => String(number).padStart(2, '0');
/** 2026-03-01 12:34, in UTC, as the program prints it. */
function formatDate(ms) {
  const date = new Date(ms);
  if (!(ms > 0) || Number.isNaN(date.getTime())) return missing;
  return `${formatDay(ms)} ${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
}
function formatDay(ms) {
  const date = new Date(ms);
  if (!(ms > 0) || Number.isNaN(date.getTime())) return missing;
  return `${date.getUTCFullYear()}-${pad(date.getUTCMonth() + 1)}-${pad(date.getUTCDate())}`;
}

const plural = (count, one, many = `${one}s`) => `${formatCount(count)} ${count === 1 ? one : many}`;

/** One text of several; those that are empty or false are left out. */
const sentences = (...texts) => texts.filter(Boolean).join(' ');

/** The geometric mean; nothing of nothing. */
function geometricMean(values) {
  if (values.length === 0) return null;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** Round values from one to another, for a log axis: powers of ten, with 2 and 5 where there are few, or even steps. */
function logTicks(low, high) {
  const ticks = [];
  if (!(high > low)) return ticks;
  if (high / low < 6) {
    const rough = (high - low) / 6;
    const power = Number(`1e${Math.floor(Math.log10(rough))}`);
    const step = [1, 2, 5, 10].find((times) => times * power >= rough) * power;
    for (let n = Math.ceil(low / step); n * step <= high; ++n) ticks.push(Number((n * step).toPrecision(6)));
    return ticks;
  }
  for (let n = Math.floor(Math.log10(low)); n <= Math.log10(high); ++n) {
    for (const digit of high / low > 3000 ? [1] : [1, 2, 5]) ticks.push(Number(`${digit}e${n}`));
  }
  return ticks.filter((tick) => tick >= low && tick <= high);
}

/** "dtype=bf16 rows=16" as pairs. */
const pairsOf = (text) =>
  text
    .split(' ')
    .filter(Boolean)
    .map((word) => {
      const at = word.indexOf('=');
      return at < 0 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
    });

/** Fields that switch nothing on say little. */
const isOff = (value) => value === 'no' || value === 'none' || value === 'same' || value === '0';
const shortFields = (text) =>
  pairsOf(text)
    .filter(([, value]) => !isOff(value))
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');

/** Numbers by value, before texts. */
function compareValues(a, b) {
  const [x, y] = [Number(a), Number(b)];
  if (a !== '' && b !== '' && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
  return a < b ? -1 : a > b ? 1 : 0;
}
