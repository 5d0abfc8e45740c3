// Patches as people read them: by file, with the numbers of lines, and with the changed words of
// a line marked. Text that does not belong to a patch is shown as it is.
// @ts-check
import { useMemo, useState } from './vendor/hooks.js';
import { languageOf, marked } from './code.js';
import { html, Icon } from './html.js';
import { plain } from './text.js';
import { count, t } from './words.js';

const MOST = 400; // lines that are shown until somebody wants all
const LONG = 20_000; // lines; a longer patch is plain text
const WIDE = 1000; // characters of a line whose words are compared

/** A line: kind is + - @ or ' '. from and to are the part that has changed.
 * @typedef {{kind: string, a: number, b: number, text: string, from?: number, to?: number}} Line
 * @typedef {{name: string, lines: Line[], added: number, removed: number}} File */

/** Whether a text begins as a patch. @param {string} text */
export const isPatch = (text) =>
  /^(diff --git |--- [^\n]*\n\+\+\+ |\*\*\* Begin Patch|@@ )/m.test(text.slice(0, 4000));

/** Splits a patch by its files: a unified diff, or the format that begins with *** Begin Patch.
 * @param {string} text @returns {File[]} */
export function files(text) {
  /** @type {File[]} */
  const out = [];
  /** @type {File | undefined} */
  let f;
  let [a, b, left, more] = [0, 0, 0, 0]; // next lines, and how many of each side the hunk has
  let free = false; // there was a hunk
  let named = false; // the files have lines that begin with ***, and none with --- and +++
  const open = (/** @type {string} */ name) => {
    f = { name, lines: [], added: 0, removed: 0 };
    out.push(f);
    [a, b, left, more, free] = [0, 0, 0, 0, false];
  };
  const bare = (/** @type {string} */ s) =>
    s
      .replace(/\t.*$/, '')
      .replace(/^[ab]\//, '')
      .trim();
  const all = text.replace(/\n$/, '').split('\n');
  for (let i = 0; i < all.length; i++) {
    const l = all[i];
    const inside = left > 0 || more > 0;
    let m;
    if (!inside && !named && l.startsWith('--- ') && all[i + 1]?.startsWith('+++ ')) {
      const to = bare(all[i + 1].slice(4));
      open(to === '/dev/null' ? bare(l.slice(4)) : to);
      i++;
    } else if ((m = /^\*\*\* (Add|Update|Delete) File: (.*)$/.exec(l)) && !inside) {
      open(m[2]);
      free = true;
      named = true;
      if (m[1] === 'Delete') f?.lines.push({ kind: '@', a: 0, b: 0, text: l });
    } else if (!inside && (m = /^@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@)?(.*)$/.exec(l))) {
      if (!f) open('');
      [a, b] = [Number(m[1] ?? 0), Number(m[3] ?? 0)];
      [left, more] = m[1] ? [Number(m[2] ?? 1), Number(m[4] ?? 1)] : [0, 0];
      free = true; // the numbers may be wrong: what follows belongs to it
      f?.lines.push({ kind: '@', a: 0, b: 0, text: l });
    } else if (f && (inside || free) && /^[-+ ]|^$/.test(l)) {
      const kind = l[0] ?? ' ';
      if (kind !== '+') left--;
      if (kind !== '-') more--;
      if (kind === '+') f.added++;
      if (kind === '-') f.removed++;
      f.lines.push({ kind, a: kind === '+' ? 0 : a, b: kind === '-' ? 0 : b, text: l.slice(1) });
      if (a && kind !== '+') a++;
      if (b && kind !== '-') b++;
    } else if (
      !/^(diff |index |\*\*\* (Begin|End) Patch|new file mode|deleted file mode)/.test(l)
    ) {
      if (!f) open('');
      f?.lines.push({ kind: '@', a: 0, b: 0, text: l });
    }
  }
  for (const x of out) words(x.lines);
  return out;
}

/** Marks what differs between the lines of a change, where as many came as went.
 * @param {Line[]} lines */
function words(lines) {
  for (let i = 0; i < lines.length;) {
    let j = i;
    while (lines[j]?.kind === '-') j++;
    let k = j;
    while (lines[k]?.kind === '+') k++;
    if (j > i && k - j === j - i)
      for (let n = 0; n < j - i; n++) compare(lines[i + n], lines[j + n]);
    i = Math.max(k, i + 1);
  }
}

/** @param {Line} old @param {Line} now */
function compare(old, now) {
  const [x, y] = [old.text, now.text];
  if (x.length > WIDE || y.length > WIDE || x === y) return;
  const short = Math.min(x.length, y.length);
  let from = 0;
  while (from < short && x[from] === y[from]) from++;
  let end = 0;
  while (end < short - from && x[x.length - 1 - end] === y[y.length - 1 - end]) end++;
  // Whole words, and only if the lines have something in common.
  while (from > 0 && /\w/.test(x[from - 1]) && /\w/.test((x[from] ?? '') + (y[from] ?? ''))) from--;
  while (end > 0 && /\w/.test(x[x.length - end])) end--;
  if ((from + end) * 3 < short) return;
  Object.assign(old, { from, to: x.length - end });
  Object.assign(now, { from, to: y.length - end });
}

/** @param {Line} l @param {string} language */
function content(l, language) {
  if (l.kind === '@') return l.text;
  if (l.from === undefined || l.to === undefined) return marked(l.text, language);
  return html`
    ${l.text.slice(0, l.from)}
    <em>${l.text.slice(l.from, l.to)}</em>
    ${l.text.slice(l.to)}
  `;
}

const CLASS = new Map([
  ['+', 'a'],
  ['-', 'x'],
  ['@', 'h'],
]);

/** How many lines of a patch came and went. @param {{added: number, removed: number}} p */
export const Change = ({ added, removed }) =>
  html`<span class="good">+${added}</span> <span class="bad">−${removed}</span>`;

/** A patch, all of it if all is set. @param {{text: string, all?: boolean}} p */
export function Diff({ text, all }) {
  const [whole, setWhole] = useState(false);
  const shown = plain(text, true);
  const parts = useMemo(() => (shown.split('\n').length > LONG ? null : files(shown)), [shown]);
  if (!parts) return html`<pre tabindex="0" role="group" aria-label=${t('Patch')}>${shown}</pre>`;
  let room = all || whole ? Infinity : MOST;
  const total = parts.reduce((n, f) => n + f.lines.length, 0);
  return html`<div class="patch">
    ${parts.map((f) => {
      const lines = f.lines.slice(0, Math.max(0, room));
      room -= f.lines.length;
      if (!lines.length && f.lines.length) return null;
      const language = languageOf(f.name);
      return html`
        ${f.name &&
        html`<div class="flex file">
          <${Icon} of="file" />
          <span class="mono grow"><bdi>${f.name}</bdi></span>
          <span class="nw"><${Change} ...${f} /></span>
        </div>`}
        <div
          class="diff"
          tabindex="0"
          role="group"
          aria-label=${t('Patch of {file}', { file: f.name || '?' })}>
          ${lines.map(
            (l) =>
              html`<div class=${CLASS.get(l.kind) ?? ''}>
                <i>${l.a || ''}</i>
                <i>${l.b || ''}</i>
                <span>${l.kind === '-' ? '−' : l.kind === '@' ? '' : l.kind}</span>
                <span>${content(l, language)}</span>
              </div>`,
          )}
        </div>
      `;
    })}
    ${room < 0 &&
    html`<button type="button" class="link" onClick=${() => setWhole(true)}>
      ${count(total, 'Show {n} line', 'Show all {n} lines')}
    </button>`}
  </div>`;
}
