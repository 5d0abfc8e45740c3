// The question before a change of servers: nothing runs before the user has seen it.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Dialog } from './dialog.js';
import { plain, words } from './text.js';
import { Do, html, Name, Pre, Problem } from './ui.js';
import { t } from './words.js';

/** Shows in full what a change would run; the button that approves it has a delay. The notes in
 * added are of something that comes with the change: first does it, and returns its reverse.
 * @param {{changes: Admin<'Change'>[], done: () => void, cancel: () => void, added?: string[],
 * first?: () => Promise<() => Promise<unknown>>}} p */
export function Agree({ changes, done, cancel, added = [], first }) {
  const [left, setLeft] = useState(changes);
  const [results, setResults] = useState(/** @type {Map<string, string>} */ (new Map()));
  const drop = (/** @type {Admin<'Change'>} */ c) => {
    const rest = left.filter((x) => x !== c);
    setLeft(rest);
    if (!rest.length) done();
  };
  const apply = async (/** @type {Admin<'Change'>[]} */ list) => {
    const failed = new Map(results);
    const rest = left.filter((c) => !list.includes(c));
    for (const c of list) {
      /** @type {(() => Promise<unknown>) | undefined} */
      let back;
      try {
        back = await first?.();
        await api('POST', `/api/mcp/changes/${seg(c.id)}/apply`);
      } catch (e) {
        await back?.();
        failed.set(c.id, words(e));
        rest.push(c);
      }
    }
    setResults(failed);
    setLeft(rest);
    if (!rest.length) done();
  };
  return html`<${Dialog}
    wide
    title=${left.length === 1 ? t('This would run') : t('These {n} would run', { n: left.length })}
    onClose=${cancel}>
    <p>
      ${t(
        'yaya starts these on this machine, as you, or talks to them. Agree only to what you know.',
      )}
    </p>
    <ul class="plain changes">
      ${left.map(
        (c) => html`<li key=${c.id}>
          <b><${Name} text=${c.server} /></b> <small class="muted">
            ${c.action === 'add' ? t('new') : t('changed')}
          </small>
          <${Pre}
            all
            text=${c.runs}
            label=${t('What {server} would run', { server: plain(c.server) })} />
          ${(c.notes ?? []).map(
            (/** @type {string} */ n) =>
              html`<p class="muted"><${Name} text=${n} max=${300} /></p>`,
          )}
          ${added.map((n) => html`<p class="muted">${n}</p>`)}
          <${Problem} error=${results.get(c.id)} />
          ${left.length > 1 &&
          html`<${Do}
            kind="small"
            run=${async () => {
              await api('DELETE', `/api/mcp/changes/${seg(c.id)}`).catch(() => {});
              drop(c);
            }}>
            ${t('Leave out')}
          <//>`}
        </li>`,
      )}
    </ul>
    <div class="buttons">
      <button type="button" onClick=${cancel}>${t('Cancel')}</button>
      <${Do} arm kind="primary" run=${() => apply(left)}>
        ${left.length === 1 ? t('Approve') : t('Approve all')}
      <//>
    </div>
  <//>`;
}
