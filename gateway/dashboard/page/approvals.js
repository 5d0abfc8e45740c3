// The inbox: every call that waits for approval; identical questions appear once.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { changed, href, may, useLoaded } from './state.js';
import { plain, pretty } from './text.js';
import { Do, Empty, Field, html, Icon, Name, Of, Pre, Time, typed, View } from './ui.js';

/** Formats one item of a folder as a line. @param {Admin<'Item'>} i */
const brings = (i) =>
  plain(`${[i.kind, i.name].filter(Boolean).join(' ')}${i.runs ? ': ' + i.runs : ''}`);

/** Shows the consequences of trusting a folder. @param {{q: Asked}} p */
function Folder({ q }) {
  const changed = (q.added?.length ?? 0) + (q.removed?.length ?? 0) > 0;
  const all = (q.items ?? []).map(brings).join('\n');
  return html`
    <p><code><${Name} text=${q.folder} max=${4096} /></code></p>
    ${changed &&
    html`
      <p>You trusted this folder earlier, but its content has changed.</p>
      <${Pre}
        all
        diff
        text=${[
          ...(q.removed ?? []).map((/** @type {Admin<'Item'>} */ i) => '- ' + brings(i)),
          ...(q.added ?? []).map((/** @type {Admin<'Item'>} */ i) => '+ ' + brings(i)),
        ].join('\n')}
        label="What has changed" />
    `}
    ${all
      ? html`
          <p>
            If you trust it, the following is used without another question, with your rights unless
            a sandbox is named:
          </p>
          <${Pre} all text=${all} label="What the folder brings, all of it" />
        `
      : html`<p>Nothing in it runs by itself.</p>`}
    ${(q.allowed?.length ?? 0) > 0 &&
    html`
      <p>You gave its servers more access, which they will have again:</p>
      <${Pre}
        all
        text=${(q.allowed ?? []).map(brings).join('\n')}
        label="What you have allowed its servers, all of it" />
    `}
    <p class="muted">
      You are always asked about changes and commands of the agent. If you trust the folder for one
      session only, its servers do not start. Without your trust, the agent can only read and search
      the folder.
    </p>
  `;
}

/** yaya's own tools that run commands: the sandbox in their questions comes from yaya itself, and
 * a server's tool cannot imitate it. */
const COMMANDS = ['shell', 'verify', 'diagram'];

/** Whether a command runs in a sandbox that enforces something. @param {Asked} q */
const inside = (q) => q.sandbox?.startsWith('profile ') ?? false;

/** Shows the sandbox of a command. A command outside the sandbox stands out; weaknesses also
 * appear in the box below.
 * @param {{q: Asked}} p */
function Sandboxed({ q }) {
  if (inside(q))
    return html`<p class="boxed">
      Runs in the sandbox: <b>${plain(q.sandbox)}</b>
      ${!!q.weaker?.length &&
      html` (<a href=${href('sandbox')}>not fully enforced: ${q.weaker.length}</a>)`}
    </p>`;
  return html`
    <p class="problem">
      <b>Outside the sandbox, with all rights of your user.</b>
      ${!q.outside && ` Sandbox: ${plain(q.sandbox)}.`}
    </p>
    ${q.outside &&
    q.reason &&
    html`<p>The agent's reason: <${Name} text=${q.reason} max=${1024} /></p>`}
  `;
}

/** Words the question, depending on who asks.
 * @param {Admin<'Ask'>} a @param {number} times */
function worded(a, times) {
  const q = /** @type {Asked} */ (a.params ?? {});
  const many = times > 1 ? ` ${times} times` : '';
  if (a.tool_name === 'folder_trust' && q.folder) {
    return {
      label: 'do you trust this folder?',
      head: 'Do you trust this folder?',
      body: html`<${Folder} q=${q} />`,
      no: 'Do not trust',
      once: 'Trust',
      always: 'Trust for this session',
    };
  }
  if (a.tool_name === 'sandbox_host' && typeof q.host === 'string') {
    const at = `${q.host.includes(':') ? `[${q.host}]` : q.host}:${q.port}`;
    return {
      label: `may the command reach ${plain(at)}?`,
      head: html`May the command reach <code><${Name} text=${at} max=${300} /></code>${many}?`,
      no: 'Refuse',
      once: 'Allow',
      always: 'Allow for this session',
      body: html`
        <p>
          It runs in the sandbox, and the host is not on its list. The command can send everything
          that it can read there.
        </p>
        <${Pre} all text=${plain(q.command, true)} label="The command, all of it" />
        <p class="muted">In <code><${Name} text=${q.cwd} max=${4096} /></code>.</p>
      `,
    };
  }
  const boxed = COMMANDS.includes(a.tool_name) && typeof q.sandbox === 'string';
  const how = boxed && !inside(q) ? ' outside the sandbox' : '';
  return {
    label: `may ${plain(a.tool_name)} run${how}?`,
    head: html`May <code><${Name} text=${a.tool_name} /></code> run${how}${many}?`,
    no: 'Reject',
    once: 'Approve',
    always: 'Approve for this session',
    body: html`
      ${boxed && html`<${Sandboxed} q=${q} />`}
      ${a.brief && html`<p><${Name} text=${a.brief} /></p>`}
      <${Pre} all text=${pretty(a.params)} label="Its arguments, all of them" />
    `,
  };
}

/** A question with the exact content that would run, and three answers. Only the text in the box
 * comes from somebody else.
 * @param {{asks: Admin<'Ask'>[], session?: boolean, among: string}} p among changes when
 * anything around it changes */
export function Question({ asks, session = true, among }) {
  const a = asks[0];
  const [why, setWhy] = useState('');
  const answer = (/** @type {Admin<'Answer'>['response']} */ response) => async () => {
    const all = await Promise.allSettled(
      asks.map((x) =>
        api('POST', `/api/approvals/${seg(x.id)}`, {
          response,
          ...(response === 'reject' && why && { feedback: why }),
        }),
      ),
    );
    // Somebody else may have answered some of them already; report only if all have failed.
    const failed = all.filter((r) => r.status === 'rejected');
    changed(['approvals']);
    if (failed.length === all.length) throw /** @type {PromiseRejectedResult} */ (failed[0]).reason;
  };
  const allowed = may('approvals:answer');
  const { label, head, body, no, once, always } = worded(a, asks.length);
  return html`<section class="ask" aria-label=${'yaya asks: ' + label}>
    <header><span class="seal"><${Icon} of="shield" />yaya asks</span><h2>${head}</h2></header>
    ${body}
    <p class="muted">
      ${session &&
      html`
        In <a href=${href('chat', a.session_id)}><${Name} text=${a.session_id} max=${60} /></a>
        . `}
      Without an answer, it is rejected at <${Time} at=${a.deadline} />
      .
    </p>
    ${allowed
      ? html`
          <${Field} label="Reason, if you reject" hint="The model sees it.">
            ${(/** @type {string} */ id) =>
              html`<input id=${id} value=${why} maxlength="16384" onInput=${typed(setWhy)} />`}
          <//>
          <div class="buttons">
            <${Do} arm=${among} kind="danger" run=${answer('reject')}>${no}<//>
            <${Do} arm=${among} run=${answer('approve_for_session')}>${always}<//>
            <${Do} arm=${among} kind="primary" run=${answer('approve')}>${once}<//>
          </div>
        `
      : html`<p class="muted">
          This device can watch but not answer. To change that, use <i>Rights</i> under Devices on
          the machine that yaya runs on.
        </p>`}
  </section>`;
}

/** The ids of the questions, as one string. @param {Admin<'Ask'>[]} asks */
export const around = (asks) => asks.map((a) => a.id).join(' ');

/** Asks by what they ask. @param {Admin<'Ask'>[]} asks */
export function grouped(asks) {
  /** @type {Map<string, Admin<'Ask'>[]>} */
  const by = new Map();
  for (const a of asks) {
    const key = JSON.stringify([a.digest ?? a.id, a.session_id]);
    by.set(key, [...(by.get(key) ?? []), a]);
  }
  return [...by.entries()];
}

export default function Approvals() {
  const asks = useLoaded('/api/approvals', ['approvals']);
  return html`<${View}
    title="Approvals"
    lead="Calls that wait for approval. yaya runs exactly what is shown.">
    <${Of} of=${asks}>
      ${(/** @type {Admin<'Ask'>[]} */ d) =>
        d.length
          ? grouped(d).map(
              ([key, g]) => html`<${Question} key=${key} asks=${g} among=${around(d)} />`,
            )
          : html`<${Empty} icon="check">No calls wait for approval.<//>`}
    <//>
  <//>`;
}
