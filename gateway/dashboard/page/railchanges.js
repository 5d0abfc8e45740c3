// The plan of an agent (its last call of todo), the files that its patches and edits have changed, and
// the way back.
// @ts-check
import { api, seg } from './api.js';
import { Confirm } from './dialog.js';
import { Change, files } from './diff.js';
import { patchOf } from './edited.js';
import { may } from './state.js';
import { plain } from './text.js';
import { toast } from './toast.js';
import { html, Icon } from './ui.js';
import { count, t } from './words.js';

/** @typedef {import('./items.js').Item} Item */

/** The files that a call has changed. @param {Item} i */
function changes(i) {
  const patch = i.result?.ok && patchOf(i.call?.name ?? '', i.call?.args);
  return patch ? files(plain(patch, true)) : [];
}

/** The files that patches and edits have changed, by name; those that were undone are left out.
 * @param {Item[]} items */
export function changedFiles(items) {
  /** @type {ReturnType<typeof changes>[]} */
  const calls = [];
  for (const i of items) {
    const now = changes(i);
    if (now.length > 0) calls.push(now);
    if (!i.undone) continue;
    const back = new Set(i.undone);
    const at = calls.findLastIndex((c) => c.every((f) => back.has(f.name)));
    if (at >= 0) calls.splice(at, 1);
  }
  /** @type {Map<string, {added: number, removed: number}>} */
  const all = new Map();
  for (const f of calls.flat()) {
    const was = all.get(f.name) ?? { added: 0, removed: 0 };
    all.set(f.name, { added: was.added + f.added, removed: was.removed + f.removed });
  }
  return [...all];
}

/** @param {{id: string, items: Item[], whole: boolean, running: boolean}} p */
export function Changed({ id, items, whole, running }) {
  const changed = changedFiles(items);
  if (changed.length === 0) return null;
  return html`<section>
    <h2>${t('Changed files')}</h2>
    <ul class="mini">
      ${changed
        .slice(0, 30)
        .map(
          ([name, n]) =>
            html`<li key=${name}>
              <${Icon} of="file" />
              <span class="mono small cut grow"><bdi>${name}</bdi></span>
              <small class="nw"><${Change} ...${n} /></small>
            </li>`,
        )}
    </ul>
    ${!whole &&
    html`<p class="faint small">
      ${t('By the patches in the part of the conversation that is loaded.')}
    </p>`}
    ${may('sessions:write') &&
    !running &&
    html`<${Confirm}
      kind="small"
      yes=${t('Undo the last change')}
      ask=${t(
        'The files of the last patch, edit or command become as they were before it. Nothing happens if somebody has changed one of them since.',
      )}
      run=${async () => {
        const done = await api('POST', `/v1/sessions/${seg(id)}/undo`);
        const n = done.files.length;
        toast(count(n, '{n} file is as before', '{n} files are as before'), 'replay');
      }}>
      <${Icon} of="replay" />
      ${t('Undo the last change')}
    <//>`}
  </section>`;
}

/** The plan that the agent keeps. @param {{items: Item[]}} p */
export function Plan({ items }) {
  const last = items.findLast((i) => i.call?.name === 'todo' && i.result?.ok)?.call?.args;
  const steps = /** @type {{steps?: unknown}} */ (last ?? {}).steps;
  if (!Array.isArray(steps) || steps.length === 0) return null;
  const mark = (/** @type {unknown} */ s) =>
    s === 'done'
      ? [t('done'), html`<${Icon} of="check" />`]
      : s === 'doing'
        ? [t('in progress'), html`<span class="dot busy"></span>`]
        : [t('to do'), html`<span class="dot off"></span>`];
  return html`<section>
    <h2>${t('Plan')}</h2>
    <ol class="mini plan">
      ${steps.slice(0, 50).map((s, n) => {
        const [label, sign] = mark(s?.state);
        return html`<li key=${n} class=${s?.state === 'done' ? 'faint' : ''}>
          <span class="mark" role="img" aria-label=${label}>${sign}</span>
          <span class="small grow">${plain(String(s?.text ?? ''))}</span>
        </li>`;
      })}
    </ol>
  </section>`;
}
