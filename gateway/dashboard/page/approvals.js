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
    ${all ? html`<p>If you trust it, this is used without another question, and with your rights where no sandbox is named:</p><${Pre} all text=${all} label="What the folder brings, all of it" />` : html`<p>Nothing in it runs by itself.</p>`}
    <p class="muted">Changes and commands of the agent are asked about in any case. For one session alone, servers do not start. Without your trust, the agent can only read and search the folder.</p>`;
}

/** Tools of yaya's own that run commands: what their questions say of a sandbox is yaya's
 * word, and a server's tool cannot say it. */
const COMMANDS = ['shell', 'verify', 'diagram'];

/** Whether a command runs in a sandbox that enforces something. @param {any} q */
const inside = (q) => q.sandbox.startsWith('profile ');

/** What a command runs in. Outside of the sandbox is not to be missed; what is weaker
 * stands in the box below, too.
 * @param {{q: any}} p */
function Sandboxed({ q }) {
  if (inside(q)) return html`<p class="boxed">Runs in the sandbox: <b>${plain(q.sandbox)}</b>${q.weaker?.length > 0 && html` (<a href=${href('sandbox')}>not enforced, or in part: ${q.weaker.length}</a>)`}</p>`;
  return html`<p class="problem"><b>Outside of the sandbox, with all rights of your user.</b>${!q.outside && ` Sandbox: ${plain(q.sandbox)}.`}</p>
    ${q.outside && q.reason && html`<p>The agent's reason: <${Name} text=${q.reason} max=${1024} /></p>`}`;
}

/** What the question is, and what it says, by who asks. @param {any} a @param {number} times */
function worded(a, times) {
  const q = a.params ?? {};
  const many = times > 1 ? ` ${times} times` : '';
  if (a.tool_name === 'folder_trust' && q.folder) {
    return { label: 'do you trust this folder?', head: 'Do you trust this folder?', body: html`<${Folder} q=${q} />`, no: 'Do not trust', once: 'Trust', always: 'Trust for this session' };
  }
  if (a.tool_name === 'sandbox_host' && typeof q.host === 'string') {
    const at = `${q.host.includes(':') ? `[${q.host}]` : q.host}:${q.port}`;
    return {
      label: `may the command reach ${plain(at)}?`, head: html`May the command reach <code><${Name} text=${at} max=${300} /></code>${many}?`, no: 'Refuse', once: 'Allow', always: 'Allow for this session',
      body: html`<p>It runs in the sandbox, and the host is not on its list. What the command can read it can send there.</p><${Pre} all text=${plain(q.command, true)} label="The command, all of it" /><p class="muted">In <code><${Name} text=${q.cwd} max=${4096} /></code>.</p>`,
    };
  }
  const boxed = COMMANDS.includes(a.tool_name) && typeof q.sandbox === 'string';
  const how = boxed && !inside(q) ? ' outside of the sandbox' : '';
  return {
    label: `may ${plain(a.tool_name)} run${how}?`, head: html`May <code><${Name} text=${a.tool_name} /></code> run${how}${many}?`, no: 'Reject', once: 'Approve', always: 'Approve for this session',
    body: html`${boxed && html`<${Sandboxed} q=${q} />`}${a.brief && html`<p><${Name} text=${a.brief} /></p>`}
    <${Pre} all text=${pretty(a.params)} label="What it would be given, all of it" />`,
  };
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
  const { label, head, body, no, once, always } = worded(a, asks.length);
  return html`<section class="ask" aria-label=${'yaya asks: ' + label}>
    <header><span class="seal">yaya asks</span><h2>${head}</h2></header>
    ${body}
    <p class="muted">${session && html`In <a href=${href('chat', a.session_id)}><${Name} text=${a.session_id} max=${60} /></a>. `}Without an answer it is refused at <${Time} at=${a.deadline} />.</p>
    ${allowed ? html`<${Field} label="If not, why" hint="The model is told.">${(/** @type {string} */ id) => html`<input id=${id} value=${why} maxlength="16384" onInput=${(/** @type {any} */ e) => setWhy(e.target.value)} />`}<//>
      <div class="buttons">
        <${Do} arm=${among} kind="danger" run=${answer('reject')}>${no}<//>
        <${Do} arm=${among} run=${answer('approve_for_session')}>${always}<//>
        <${Do} arm=${among} kind="primary" run=${answer('approve')}>${once}<//>
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
