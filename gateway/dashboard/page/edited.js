// The changes of files by yaya's own tools, as patches.
// @ts-check

const MOST = 250_000; // pairs of lines that are compared

/** Patches of edits, by their arguments: a page is drawn often. @type {WeakMap<object, string>} */
const known = new WeakMap();

/** The patch that a call of yaya's own tool applies, '' for other calls. An edit of all places in a
 * file is shown at one of them.
 * @param {string} tool @param {unknown} args */
export function patchOf(tool, args) {
  if (typeof args !== 'object' || args === null) return '';
  const q = /** @type {Record<string, unknown>} */ (args);
  const text = (/** @type {string} */ k) => (typeof q[k] === 'string' ? String(q[k]) : '');
  if (tool === 'apply_patch') return text('patch');
  if (tool !== 'edit' || !text('path')) return '';
  let patch = known.get(q);
  if (patch === undefined) {
    const file = text('path').replaceAll('\n', ' ');
    const lines = compared(split(text('old_text')), split(text('new_text')));
    patch = `*** Begin Patch\n*** Update File: ${file}\n@@\n${lines.join('\n')}\n*** End Patch\n`;
    known.set(q, patch);
  }
  return patch;
}

/** The same where it says everything about the call, '' elsewhere.
 * @param {string} tool @param {unknown} args */
export const wholePatchOf = (tool, args) =>
  tool === 'edit' && Boolean(/** @type {Record<string, unknown>} */ (args ?? {}).replace_all)
    ? ''
    : patchOf(tool, args);

/** The lines of a text, with their ends: a missing one is a difference. @param {string} s */
const split = (s) => s.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** The lines that stay, go and come between two texts.
 * @param {string[]} before @param {string[]} after */
function compared(before, after) {
  const short = Math.min(before.length, after.length);
  let head = 0;
  while (head < short && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < short - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const sign = (/** @type {string} */ kind) => (/** @type {string} */ l) =>
    kind + l.replace(/\n$/, '');
  const end = before.length - tail;
  return [
    ...before.slice(0, head).map(sign(' ')),
    ...between(before.slice(head, end), after.slice(head, after.length - tail), sign),
    ...before.slice(end).map(sign(' ')),
  ];
}

/** The same with as many lines that stay as there can be, unless the texts are long.
 * @param {string[]} x @param {string[]} y @param {(kind: string) => (line: string) => string} sign */
function between(x, y, sign) {
  const [gone, come] = [sign('-'), sign('+')];
  if (x.length * y.length > MOST) return [...x.map(gone), ...y.map(come)];
  const wide = y.length + 1;
  const same = new Uint32Array((x.length + 1) * wide); // of the lines from i and from j on
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      same[i * wide + j] =
        x[i] === y[j]
          ? same[(i + 1) * wide + j + 1] + 1
          : Math.max(same[(i + 1) * wide + j], same[i * wide + j + 1]);
  const out = [];
  let [i, j] = [0, 0];
  while (i < x.length || j < y.length)
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push(sign(' ')(x[i++]));
      j++;
    } else if (
      i < x.length &&
      (j === y.length || same[(i + 1) * wide + j] >= same[i * wide + j + 1])
    )
      out.push(gone(x[i++]));
    else out.push(come(y[j++]));
  return out;
}
