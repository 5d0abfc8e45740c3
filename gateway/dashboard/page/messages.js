// The parts of a conversation: messages, tool calls, notes.
// @ts-check
import { seg } from './api.js';
import { Markdown } from './markdown.js';
import { download } from './result.js';
import { plain, prose } from './text.js';
import { Tool } from './toolcard.js';
import { Do, html, Icon, Name, Pre, Problem, Time } from './ui.js';
import { t } from './words.js';

const LONG = 64 * 1024; // longer messages are shown truncated

/** An item; for a message that yaya has not confirmed, with its state.
 * @typedef {import('./items.js').Item & {live?: boolean, pending?: string, refused?: unknown,
 * again?: () => void, discard?: () => void}} Shown */

/** @param {{item: Shown, id: string, waits: boolean}} p */
export function Row({ item, id, waits }) {
  switch (item.kind) {
    case 'user':
      return html`<article class="msg user" aria-label=${t('You')}>
        <div class="said">
          ${(item.text?.length ?? 0) > LONG
            ? html`<${Pre} text=${prose(item.text)} />`
            : prose(item.text)}
        </div>
        ${(item.attachments ?? []).map(
          (a) =>
            html`<${Do}
              key=${a.ref}
              kind="small"
              run=${() =>
                download(
                  `/v1/sessions/${seg(id)}/${a.ref.split('/').map(seg).join('/')}`,
                  plain(a.name || a.ref),
                )}>
              <${Icon} of="attach" />
              <${Name} text=${a.name || a.ref} />
            <//>`,
        )}
        ${item.refused
          ? html`<${Problem} error=${item.refused} />`
          : item.pending && html`<p class="muted" role="status">${item.pending}</p>`}
        ${item.refused &&
        html`<div class="buttons">
          <button type="button" class="small" onClick=${item.discard}>${t('Discard')}</button>
          <button type="button" class="small" onClick=${item.again}>${t('Send again')}</button>
        </div>`}
        ${item.ts && html`<footer><${Time} at=${item.ts} /></footer>`}
      </article>`;
    case 'assistant':
      return html`<article class="msg assistant ${item.live ? 'live' : ''}" aria-label="yaya">
        <${Markdown} text=${item.text} />
        ${item.stopped && html`<footer>${t('Stopped here')}</footer>`}
      </article>`;
    case 'tool':
      return html`<${Tool} item=${item} id=${id} waits=${waits} />`;
    default:
      return html`<p class="note ${item.tone}">${prose(item.text)} <${Time} at=${item.ts} /></p>`;
  }
}
