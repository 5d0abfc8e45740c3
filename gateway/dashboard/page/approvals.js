// The inbox: every call that waits for an answer, the same question once (Y-143).
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { changed, href, may, useLoaded } from './state.js';
import { Do, Field, html, Name, Of, plain, Pre, pretty, Time, View } from './ui.js';

/** One thing that a folder brings, as a line. @param {any} i */
const brings = (i) => plain(`${[i.kind, i.name].filter(Boolean).join(' ')}${i.runs ? ': ' + i.runs : ''}`);

/** What trusting a folder means. @param {{q: any}} p */
function Folder({ q }) {
  const changed = (q.added?.length ?? 0) + (q.removed?.length ?? 0) > 0;
  const all = (q.items ?? []).map(brings).join('\n');
  return html`<p><code><${Name} text=${q.folder} max=${4096} /></code></p>
    ${changed && html`<p>It was trusted, and brings something else now.</p><${Pre} all diff text=${[...(q.removed ?? []).map((/** @type {any} */ i) => '- ' + brings(i)), ...(q.added ?? []).map((/** @type {any} */ i) => '+ ' + brings(i))].join('\n')} label="What has changed" />`}
    ${all ? html`<p>If you trust it, this is used with your rights and without another question:</p><${Pre} all text=${all} label="What the folder brings, all of it" />` : html`<p>Nothing in it runs by itself.</p>`}
    <p class="muted">Changes and commands of the agent are asked about in any case. For one session alone, servers do not start. Without your trust, the agent can only read and search the folder.</p>`;
}

/** A question: what exactly would run, and three answers. Nothing in it is somebody
 * else's but the text in the box. @param {{asks: any[], session?: boolean, among: string}} p among changes when what is around it does */
export function Question({ asks, session = true, among }) {
  const a = asks[0];
  const [why, setWhy] = useState('');
  const answer = (/** @type {string} */ response) => async () => {
    const all = await Promise.allSettled(asks.map((x) => api('POST', `/api/approvals/${seg(x.id)}`, { response, ...(response === 'reject' && why && { feedback: why }) })));
    // Somebody may have been quicker for some of them; all of them is worth telling.
    const failed = all.filter((r) => r.status === 'rejected');
    changed(['approvals']);
    if (failed.length === all.length) throw /** @type {PromiseRejectedResult} */ (failed[0]).reason;
  };
  const allowed = may('approvals:answer');
  const folder = a.tool_name === 'folder_trust' && a.params?.folder;
  return html`<section class="ask" aria-label=${folder ? 'yaya asks: do you trust this folder?' : `yaya asks: may ${plain(a.tool_name)} run?`}>
    <header><span class="seal">yaya asks</span><h2>${folder ? 'Do you trust this folder?' : html`May <code><${Name} text=${a.tool_name} /></code> run${asks.length > 1 ? ` ${asks.length} times` : ''}?`}</h2></header>
    ${folder ? html`<${Folder} q=${a.params} />` : html`${a.brief && html`<p><${Name} text=${a.brief} /></p>`}
    <${Pre} all text=${pretty(a.params)} label="What it would be given, all of it" />`}
    <p class="muted">${session && html`In <a href=${href('chat', a.session_id)}><${Name} text=${a.session_id} max=${60} /></a>. `}Without an answer it is refused at <${Time} at=${a.deadline} />.</p>
    ${allowed ? html`<${Field} label="If not, why" hint="The model is told.">${(/** @type {string} */ id) => html`<input id=${id} value=${why} maxlength="16384" onInput=${(/** @type {any} */ e) => setWhy(e.target.value)} />`}<//>
      <div class="buttons">
        <${Do} arm=${among} kind="danger" run=${answer('reject')}>${folder ? 'Do not trust' : 'Reject'}<//>
        <${Do} arm=${among} run=${answer('approve_for_session')}>${folder ? 'Trust for this session' : 'Approve for this session'}<//>
        <${Do} arm=${among} kind="primary" run=${answer('approve')}>${folder ? 'Trust' : 'Approve'}<//>
      </div>` : html`<p class="muted">This device may watch, and not answer. On the machine that yaya runs on, <i>Rights</i> under Devices lets it.</p>`}
  </section>`;
}

/** What questions there are. @param {any[]} asks */
export const around = (asks) => asks.map((a) => a.id).join(' ');

/** Asks by what they ask. @param {any[]} asks */
export function grouped(asks) {
  /** @type {Map<string, any[]>} */
  const by = new Map();
  for (const a of asks) {
    const key = JSON.stringify([a.digest ?? a.id, a.session_id]);
    by.set(key, [...(by.get(key) ?? []), a]);
  }
  return [...by.entries()];
}

export default function Approvals() {
  const asks = useLoaded('/api/approvals', ['approvals']);
  return html`<${View} title="Approvals" lead="Calls that wait for somebody's answer. What is shown is exactly what runs.">
    <${Of} of=${asks}>${(/** @type {any[]} */ d) => (d.length ? grouped(d).map(([key, g]) => html`<${Question} key=${key} asks=${g} among=${around(d)} />`) : html`<p class="empty">Nothing waits for an answer.</p>`)}<//><//>`;
}
