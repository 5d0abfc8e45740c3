// One call of a tool in a conversation: a line with its state, and its details when it is open.
// Neighbours share one frame.
// @ts-check
import { useState } from './vendor/hooks.js';
import { useNow } from './ask.js';
import { lineOf, toolOf } from './asked.js';
import { Change, Diff, files } from './diff.js';
import { wholePatchOf } from './edited.js';
import { answered } from './items.js';
import { Artifact, Blocks } from './result.js';
import { Arguments, Typed } from './run.js';
import { ms, plain, prose } from './text.js';
import { html, Icon, Name, Pre } from './ui.js';
import { t } from './words.js';

/** @typedef {import('./messages.js').Shown} Shown */

const ICONS = new Map(
  Object.entries({
    shell: 'terminal',
    verify: 'terminal',
    apply_patch: 'edit',
    edit: 'edit',
    search: 'search',
    read_file: 'file',
    repo_tree: 'folder',
    repo_map: 'folder',
    git_status: 'diff',
    agent: 'agent',
  }),
);

/** The state of a call: its tone and its word. @param {Shown} i @param {boolean} waits
 * @returns {[string, string]} */
function stateOf(i, waits) {
  const r = i.result;
  if (waits) return ['busy', t('waits for you')];
  if (i.answer?.response === 'reject' || r?.kind === 'rejected') return ['bad', t('denied')];
  if (r) return r.ok ? ['good', t('ok')] : ['bad', t('failed')];
  return i.cut ? ['off', t('cut off')] : ['busy', t('running')];
}

/** How long a call took, or takes until now. @param {{i: Shown}} p */
function Elapsed({ i }) {
  const now = useNow();
  return html`<span class="nw">${ms(Math.max(0, now - Date.parse(i.began ?? i.ts ?? '')))}</span>`;
}

/** The server of a tool, and the tool's name there: clients call it server__tool.
 * @param {string} name @returns {[string, string]} */
function split(name) {
  const at = name.indexOf('__');
  return at > 0 ? [name.slice(0, at), name.slice(at + 2)] : ['', name];
}

/** @param {unknown} args @returns {Record<string, unknown>} */
const fieldsOf = (args) =>
  typeof args === 'object' && args !== null ? /** @type {Record<string, unknown>} */ (args) : {};

/** The call, as it reads best. @param {{name: string, args: unknown}} p */
function Called({ name, args }) {
  const a = fieldsOf(args);
  if (name === 'shell' && typeof a.command === 'string') {
    const text = plain(a.command, true);
    return html`<${Typed} text=${text} label=${t('Command')} />`;
  }
  const patch = wholePatchOf(name, args);
  if (patch) return html`<${Diff} text=${patch} />`;
  return html`<${Arguments} of=${args ?? {}} />`;
}

/** The patch of a call in numbers. @param {{patch: string}} p */
function Size({ patch }) {
  const all = files(plain(patch, true));
  const sum = { added: 0, removed: 0 };
  for (const f of all) {
    sum.added += f.added;
    sum.removed += f.removed;
  }
  return html`<span class="nw"><${Change} ...${sum} /></span>`;
}

/** @param {{item: Shown, id: string, waits: boolean}} p */
export function Tool({ item, id, waits }) {
  const [open, setOpen] = useState(false);
  const name = item.call?.name ?? '';
  const [server, tool] = split(name);
  const r = item.result;
  const env = r?.envelope;
  const [tone, word] = stateOf(item, waits);
  const p = item.progress;
  const patch = wholePatchOf(name, item.call?.args);
  const line = patch
    ? files(plain(patch, true).slice(0, 64 * 1024))
        .map((f) => f.name)
        .join(', ')
    : lineOf({ ...ASK, tool_name: name, server, params: item.call?.args });
  const took = item.ended && item.began ? Date.parse(item.ended) - Date.parse(item.began) : 0;
  const frame = ['tc', 'tool', item.after && 'after', item.more && 'more']
    .filter(Boolean)
    .join(' ');
  const progress =
    !r && p
      ? p.total
        ? t('{done} of {total}', { done: p.progress ?? 0, total: p.total })
        : plain(p.message).slice(0, 60)
      : '';
  return html`<details
    class=${frame}
    onToggle=${(/** @type {Event & {currentTarget: HTMLDetailsElement}} */ e) =>
      setOpen(e.currentTarget.open)}>
    <summary>
      <${Icon} of=${ICONS.get(name) ?? 'tool'} />
      <span class="strong nw">
        ${server && html`<span class="faint"><${Name} text=${server} max=${32} /></span> `}
        <${Name} text=${toolOf({ tool_name: tool })} max=${48} />
      </span>
      <span class="faint cut mono small">${line}</span>
      <span class="stat">
        ${progress && html`<span class="cut">${progress}</span>`}
        ${patch && html`<${Size} patch=${patch} />`}
        ${!r && !waits && !item.cut
          ? html`<${Elapsed} i=${item} />`
          : took >= 100 && html`<span class="nw">${ms(took)}</span>`}
        <span class=${'state ' + tone}><span class=${'dot ' + tone}></span>${word}</span>
      </span>
      <${Icon} of="right" />
    </summary>
    ${open &&
    html`<div class="in">
      <${Called} name=${name} args=${item.call?.args} />
      ${item.answer &&
      html`<p class=${item.answer.response === 'reject' ? 'bad' : 'faint'}>
        ${item.answer.feedback
          ? html`
              ${answered(item.answer.response)}
              : <${Name} text=${item.answer.feedback} max=${2000} />
            `
          : answered(item.answer.response)}
      </p>`}
      ${r &&
      item.answer?.response !== 'reject' &&
      (env
        ? html`<${Blocks} envelope=${env} />`
        : html`<${Pre}
            text=${prose(r.error ?? (r.ok ? t('done') : t('failed')))}
            label=${t('Result')} />`)}
      ${(env?.artifacts ?? []).map((a) => html`<${Artifact} key=${a.id} id=${id} artifact=${a} />`)}
    </div>`}
  </details>`;
}

/** The parts of a question that its line does not need. @type {Admin<'Ask'>} */
const ASK = {
  id: '',
  tool_name: '',
  params: {},
  brief: '',
  call_id: '',
  session_id: '',
  deadline: '',
  digest: '',
  decisions: [],
  kind: '',
};
