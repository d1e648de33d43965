// Whether two engines agree. Floating point results may differ in the order of their sums, so the
// bound is relative to each value and, near zero, to the largest value of the tensor. A quantised
// model may round one activation to the neighbouring step: its results agree within 1/255 of the
// output's range, or when every row picks the same class. Integers agree exactly.
import fs from 'fs';
import path from 'path';
import {decodeTensor, tensorValues} from './tensor_proto.mjs';

const RELATIVE = 1e-3;
const OF_LARGEST = 2e-5;
const SPREADS = 2;
const INTEGER_TYPES = new Set([2, 3, 4, 5, 6, 7, 9, 12, 13]);

/** The outputs that a runner saved, in order. */
export function readOutputs(folder) {
  const files = fs.readdirSync(folder).filter((file) => /^output_\d+\.pb$/.test(file));
  const index = (file) => Number(file.match(/\d+/)[0]);
  files.sort((a, b) => index(a) - index(b));
  return files.map((file) => decodeTensor(fs.readFileSync(path.join(folder, file))));
}

function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > high ? [0, 0] : [low, high];
}

function sameTopClass(ours, theirs, rowLength) {
  const top = (values, start) => {
    let best = start;
    for (let i = start; i < start + rowLength; i++) if (values[i] > values[best]) best = i;
    return best;
  };
  for (let row = 0; row + rowLength <= theirs.length; row += rowLength) {
    if (top(ours, row) !== top(theirs, row)) return false;
  }
  return true;
}

// The largest difference, and the largest share of what the bound allows.
function distance(ours, theirs, bound) {
  let [difference, share] = [0, 0];
  for (let i = 0; i < theirs.length; i++) {
    if (Object.is(ours[i], theirs[i]) || ours[i] === theirs[i]) continue;
    const delta = Math.abs(ours[i] - theirs[i]);
    if (Number.isNaN(delta)) return {difference: Infinity, share: Infinity};
    difference = Math.max(difference, delta);
    share = Math.max(share, delta / bound(theirs[i]));
  }
  return {difference, share};
}

function boundOf(theirs, values, kind) {
  const [low, high] = range(values);
  const largest = Math.max(Math.abs(low), Math.abs(high));
  if (INTEGER_TYPES.has(theirs.type)) return {largest, bound: () => 0};
  if (kind === 'quantised') return {largest, bound: () => (high - low) / 255};
  return {largest, bound: (value) => RELATIVE * Math.abs(value) + OF_LARGEST * largest};
}

function compareTensor(ours, theirs, kind) {
  const {name, type} = theirs;
  if (ours.type !== type || ours.dims.join('x') !== theirs.dims.join('x')) {
    const text = (tensor) => `type ${tensor.type} [${tensor.dims.join('x')}]`;
    const note = `is ${text(ours)}, not ${text(theirs)}`;
    return {name, ok: false, difference: Infinity, note};
  }
  const [a, b] = [tensorValues(ours), tensorValues(theirs)];
  const {largest, bound} = boundOf(theirs, b, kind);
  const {difference, share} = distance(a, b, bound);
  const sameClass = kind === 'quantised' && sameTopClass(a, b, theirs.dims.at(-1) ?? 1);
  const relative = largest > 0 ? difference / largest : difference;
  return {name, ok: share <= 1 || sameClass, difference: relative,
          note: `differs by ${relative.toExponential(1)} of its largest value`};
}

/**
 * {ok, difference, note}: the worst output; `difference` is relative to its largest value.
 * `plain` holds what the peer answers without graph optimisation, when that is known: where it is
 * itself beyond the bound, the case is ill-conditioned and SPREADS times its distance is allowed.
 */
export function compareOutputs(ours, theirs, kind, plain = null) {
  if (ours.length !== theirs.length) {
    return {ok: false, difference: Infinity, note: `${ours.length} outputs, not ${theirs.length}`};
  }
  const results = theirs.map((tensor, i) => {
    const result = compareTensor(ours[i], tensor, kind);
    if (result.ok || !plain) return result;
    const spread = compareTensor(plain[i], tensor, kind).difference;
    const note = `${result.note}; the peer itself by ${spread.toExponential(1)}`;
    return {...result, ok: result.difference <= SPREADS * spread, spread, note};
  });
  const worst = results.reduce((x, y) => (y.difference > x.difference ? y : x));
  const wrong = results.find((result) => !result.ok);
  const told = wrong ?? results.find((result) => result.spread !== undefined);
  const note = told ? `output ${told.name} ${told.note}` : '';
  return {ok: !wrong, difference: worst.difference, note};
}
