// The parts of a conversation: messages, tool calls, notes.
// @ts-check
import { seg } from './api.js';
import { Markdown } from './markdown.js';
import { Artifact, Blocks, download } from './result.js';
import { plain, pretty, prose } from './text.js';
import { Badge, Do, html, Name, Pre, Problem, Time } from './ui.js';

const LONG = 64 * 1024; // longer messages are shown truncated

/** An item; for a message that yaya has not confirmed, with its state.
 * @typedef {import('./items.js').Item & {live?: boolean, pending?: string, refused?: unknown,
 * again?: () => void, discard?: () => void}} Shown */

/** @param {{item: Shown, id: string, version: string}} p */
export function Row({ item, id }) {
  switch (item.kind) {
    case 'user':
      return html`<article class="msg user" aria-label="You">
        <header>You <${Time} at=${item.ts} /></header>
        <div class="said">
          ${(item.text?.length ?? 0) > LONG
            ? html`<${Pre} text=${prose(item.text)} />`
            : prose(item.text)}
        </div>
        ${(item.attachments ?? []).map(
          (a) =>
            html`<${Do}
              kind="link"
              run=${() =>
                download(
                  `/v1/sessions/${seg(id)}/${a.ref.split('/').map(seg).join('/')}`,
                  plain(a.name || a.ref),
                )}>
              📎 <${Name} text=${a.name || a.ref} />
            <//>`,
        )}
        ${item.refused
          ? html`<${Problem} error=${item.refused} />`
          : item.pending && html`<p class="muted" role="status">${item.pending}</p>`}
        ${item.refused &&
        html`<div class="buttons">
          <button type="button" class="small" onClick=${item.discard}>Discard</button>
          <button type="button" class="small" onClick=${item.again}>Send again</button>
        </div>`}
      </article>`;
    case 'assistant':
      return html`<article class="msg assistant ${item.live ? 'live' : ''}" aria-label="yaya">
        <header>yaya <${Time} at=${item.ts} /></header>
        <${Markdown} text=${item.text} />
      </article>`;
    case 'tool':
      return html`<${Tool} item=${item} id=${id} />`;
    default:
      return html`<p class="note ${item.tone}">${prose(item.text)} <${Time} at=${item.ts} /></p>`;
  }
}

/** @param {{item: Shown, id: string}} p */
function Tool({ item, id }) {
  const r = item.result;
  const env = r?.envelope;
  const state = !r ? 'running' : r.ok ? 'ok' : 'failed';
  const p = item.progress;
  const of = p?.total ? ` of ${p.total}` : '';
  const brief = env?.brief || r?.error || (p ? `${p.message ?? ''} ${p.progress}${of}` : '');
  return html`<details class="tool">
    <summary>
      <${Badge} state=${state} /> <code>
        <${Name} text=${item.call?.name} max=${64} />
      </code> <span class="muted"><${Name} text=${brief} max=${100} /></span>
    </summary>
    <h3>Arguments</h3>
    <${Pre} text=${pretty(item.call?.args)} label="Arguments" />
    ${r &&
    html`
      <h3>Result</h3>
      ${env
        ? html`<${Blocks} envelope=${env} />`
        : html`<${Pre} text=${prose(r.error ?? (r.ok ? 'done' : 'failed'))} label="Result" />`}
    `}
    ${(env?.artifacts ?? []).map((a) => html`<${Artifact} id=${id} artifact=${a} />`)}
  </details>`;
}
