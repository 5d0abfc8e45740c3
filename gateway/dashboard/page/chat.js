// One session with its conversation.
// @ts-check
import { useEffect, useReducer, useRef, useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Absent } from './absent.js';
import { around, grouped, Question } from './approvals.js';
import { Composer } from './composer.js';
import { Confirm } from './dialog.js';
import { Row } from './messages.js';
import { flush, outbox } from './outbox.js';
import { download } from './result.js';
import { Session } from './session.js';
import { go, href, may, page, useLoaded } from './state.js';
import { plain } from './text.js';
import { style } from './style.js';
import { Do, html, Name, Problem, Time } from './ui.js';
import { Virtual } from './virtual.js';

style('talk');

/** @typedef {import('./messages.js').Shown} Shown */

/** @param {{id: string}} p */
export function Chat({ id }) {
  const [, draw] = useReducer((/** @type {number} */ n) => n + 1, 0);
  const session = useRef(/** @type {Session | null} */ (null));
  // A sub-agent is not a session of /v1: you can watch it, but it takes messages only from its
  // parent.
  const parent = id.includes('::agent::') ? id.slice(0, id.lastIndexOf('::agent::')) : '';
  const info = useLoaded(parent ? null : `/v1/sessions/${seg(id)}`, ['sessions']);
  const all = useLoaded('/api/approvals', ['approvals']);
  const [details, setDetails] = useState(false);
  const link = page.link.use();
  useEffect(() => {
    const s = (session.current = new Session(id, () => draw(0)));
    draw(0);
    return () => s.close();
  }, [id]);
  const s = session.current;
  const box = outbox.get(id) ?? [];
  // The approvals of its sub-agents appear here, too.
  const mine = (all.data ?? []).filter(
    (/** @type {Admin<'Ask'>} */ a) =>
      a.session_id === id || a.session_id.startsWith(id + '::agent::'),
  );
  const state = mine.length ? 'needs approval' : s?.running ? 'is working' : 'is idle';
  const title = info.data?.title || id;
  useEffect(() => page.title.set(title), [title]);
  if (s?.absent) return html`<${Absent} id=${id} title=${title} />`;
  /** @type {Shown[]} */
  const items = s
    ? [
        ...s.items.list,
        ...box
          .filter((m) => !s.items.clients.has(m.id))
          .map((m) => ({
            key: m.id,
            kind: /** @type {const} */ ('user'),
            text: m.parts.map((p) => p.text ?? '').join('\n'),
            pending: m.note || 'Sending …',
            refused: m.refused,
            again: () => {
              m.refused = null;
              draw(0);
              void flush(id, () => draw(0));
            },
            discard: () => {
              box.splice(box.indexOf(m), 1);
              draw(0);
            },
          })),
      ]
    : [];
  const live = s?.items.unsaid(s.text);
  if (live) items.push({ key: 'live' + s?.stream, kind: 'assistant', text: live, live: true });
  return html`<div class="chat">
    <header class="bar">
      <h1><${Name} text=${title} max=${80} /></h1>
      <div class="actions">
        <span class="badge ${mine.length || s?.running ? 'busy' : ''}" role="status">${state}</span>
        ${s?.running &&
        !parent &&
        may('sessions:write') &&
        html`<${Do} kind="small" run=${() => api('POST', `/v1/sessions/${seg(id)}/cancel`)}>
          Stop
        <//>`}
        ${parent &&
        html`<a href=${href('chat', parent)}>works for <${Name} text=${parent} max=${40} /></a>`}
        ${!parent &&
        html`<button
          type="button"
          class="small"
          aria-expanded=${details}
          onClick=${() => setDetails(!details)}>
          Details
        </button>`}
      </div>
    </header>
    ${details && html`<${Details} id=${id} info=${info} />`}
    <${Problem} error=${s?.problem || info.error} />
    <${Virtual}
      label="Conversation"
      items=${items}
      sent=${box.at(-1)?.id}
      onTop=${s?.ready ? () => void s.older() : undefined}
      row=${(/** @type {Shown} */ i) =>
        html`<${Row}
          item=${i}
          id=${id}
          version=${i.kind === 'tool'
            ? `${i.result ? 1 : 0}${i.progress?.progress ?? ''}`
            : ''} />`}
      empty=${html`<p class="empty">
        ${s?.ready
          ? 'There are no messages yet.'
          : link.state === 'open'
            ? 'Loading …'
            : 'Connecting …'}
      </p>`} />
    ${grouped(mine).map(
      ([key, g]) =>
        html`<${Question}
          key=${key}
          asks=${g}
          session=${g[0].session_id !== id}
          among=${around(mine)} />`,
    )}
    ${s &&
    s.queue.length > 0 &&
    html`<section class="queue" aria-label="Queue">
      <h2>Queued until the turn ends</h2>
      <ol>
        ${s.queue.map(
          (q) =>
            html`<li key=${q.id}>
              <${Name} text=${q.text} max=${120} /> <${Do}
                kind="small"
                label="Remove from the queue"
                run=${() =>
                  api('PUT', `/v1/sessions/${seg(id)}/queue`, {
                    message_ids: s.queue.map((x) => x.id).filter((x) => x !== q.id),
                  })}>
                ✕
              <//>
            </li>`,
        )}
      </ol>
    </section>`}
    ${!parent &&
    may('sessions:write') &&
    html`<${Composer}
      id=${id}
      running=${Boolean(s?.running)}
      retry=${['failed', 'canceled'].includes(info.data?.status ?? '') && info.data?.last_turn_id}
      closed=${info.data?.status === 'completed'}
      draw=${() => draw(0)} />`}
  </div>`;
}

/** @param {{id: string, info: import('./state.js').Loaded<V1<'State'>>}} p */
export function Details({ id, info }) {
  const d = info.data;
  return html`<section class="details" aria-label="Details">
    <dl>
      <dt>Id</dt>
      <dd><code>${plain(id)}</code></dd>
      <dt>Folder</dt>
      <dd><code>${plain(d?.workspace_path)}</code></dd>
      <dt>Strategy</dt>
      <dd>${plain(d?.strategy || 'default')}</dd>
      <dt>Started</dt>
      <dd><${Time} at=${d?.created_at} /></dd>
      ${d?.parent_id &&
      html`<dt>From</dt><dd><a href=${href('chat', d.parent_id)}>${plain(d.parent_id)}</a></dd>`}
      ${d?.usage && html`<dt>Used</dt><dd>${d.usage.input} tokens in, ${d.usage.output} out</dd>`}
    </dl>
    ${may('sessions:write') &&
    html`<div class="buttons">
      <${Do}
        kind="small"
        run=${async () => {
          const f = await api('POST', `/v1/sessions/${seg(id)}/fork`);
          go('chat', f.id);
        }}>
        Fork
      <//>
      <${Confirm}
        kind="small"
        yes="Start over"
        ask="The session starts over with an empty conversation. The old one moves to the archive."
        run=${() => api('POST', `/v1/sessions/${seg(id)}/reset`)}>
        Start over
      <//>
      <${Confirm}
        kind="small"
        yes="Close"
        ask="The session accepts no more messages. You can still fork it."
        run=${() => api('POST', `/v1/sessions/${seg(id)}/close`)}>
        Close
      <//>
      <${Do} kind="small" run=${() => download(`/v1/sessions/${seg(id)}/export`, `${id}.jsonl`)}>
        Export
      <//>
    </div>`}
  </section>`;
}
