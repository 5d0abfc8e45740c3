// One session with its conversation.
// @ts-check
import { useEffect, useReducer, useRef, useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Absent } from './absent.js';
import { around, grouped, Question } from './ask.js';
import { Composer, post } from './composer.js';
import { Row } from './messages.js';
import { flush, outbox } from './outbox.js';
import { fork, Rail, tokens } from './rail.js';
import { Session } from './session.js';
import { href, may, page, useLoaded } from './state.js';
import { style } from './style.js';
import { Do, html, Icon, Name, Problem } from './ui.js';
import { Virtual } from './virtual.js';
import { rich, t } from './words.js';

style('talk');

/** @typedef {import('./messages.js').Shown} Shown */

/** The messages that yaya has not confirmed, as items.
 * @param {string} id @param {Session} s @param {() => void} draw @returns {Shown[]} */
function unsent(id, s, draw) {
  const box = outbox.get(id) ?? [];
  return box
    .filter((m) => !s.items.clients.has(m.id))
    .map((m) => ({
      key: m.id,
      kind: /** @type {const} */ ('user'),
      text: m.parts.map((p) => p.text ?? '').join('\n'),
      pending: m.note || t('Sending …'),
      refused: m.refused,
      again: () => {
        m.refused = null;
        draw();
        void flush(id, draw);
      },
      discard: () => {
        box.splice(box.indexOf(m), 1);
        draw();
      },
    }));
}

/** The messages that wait for the turn to end. @param {{id: string, s: Session,
 * draw: () => void}} p */
function Queue({ id, s, draw }) {
  const without = (/** @type {Waiting} */ q) =>
    api('PUT', `/v1/sessions/${seg(id)}/queue`, {
      message_ids: s.queue.map((x) => x.id).filter((x) => x !== q.id),
    });
  return html`<section class="queue" aria-label=${t('Queue')}>
    ${s.queue.map(
      (q) =>
        html`<div key=${q.id} class="flex">
          <${Icon} of="queue" />
          <span class="faint">${t('Queued')}</span>
          <span class="cut grow"><${Name} text=${q.text} max=${160} /></span>
          ${may('sessions:write') &&
          html`
            ${s.running &&
            html`<${Do}
              kind="quiet small"
              run=${async () => {
                await without(q);
                post(id, [{ type: 'text', text: q.text }], 'steer', draw);
              }}>
              <${Icon} of="steer" />
              ${t('Steer now')}
            <//>`}
            <${Do}
              kind="quiet sq small"
              label=${t('Remove from the queue')}
              run=${() => without(q)}>
              <${Icon} of="close" />
            <//>
          `}
        </div>`,
    )}
  </section>`;
}

/** @param {{id: string}} p */
export function Chat({ id }) {
  const [, draw] = useReducer((/** @type {number} */ n) => n + 1, 0);
  const session = useRef(/** @type {Session | null} */ (null));
  // A sub-agent is not a session of /v1: you can watch it, but it takes messages only from its
  // parent.
  const parent = id.includes('::agent::') ? id.slice(0, id.lastIndexOf('::agent::')) : '';
  const info = useLoaded(parent ? null : `/v1/sessions/${seg(id)}`, ['sessions']);
  const all = useLoaded('/api/approvals', ['approvals']);
  const [rail, setRail] = useState(false); // on narrow screens
  const link = page.link.use();
  useEffect(() => {
    const s = (session.current = new Session(id, () => draw(0)));
    draw(0);
    return () => s.close();
  }, [id]);
  const s = session.current;
  // The approvals of its sub-agents appear here, too.
  const mine = (all.data ?? []).filter(
    (/** @type {Admin<'Ask'>} */ a) =>
      a.session_id === id || a.session_id.startsWith(id + '::agent::'),
  );
  const waits = new Set(mine.map((a) => a.call_id));
  const [tone, state] = mine.length
    ? ['busy', t('Asks you')]
    : s?.running
      ? ['busy', t('Working')]
      : ['off', t('Idle')];
  const title = info.data?.title || id;
  useEffect(() => page.title.set(title), [title]);
  if (s?.absent) return html`<${Absent} id=${id} title=${title} />`;
  /** @type {Shown[]} */
  const items = s ? [...s.items.list, ...unsent(id, s, () => draw(0))] : [];
  const live = s?.items.unsaid(s.text);
  if (live) items.push({ key: 'live' + s?.stream, kind: 'assistant', text: live, live: true });
  const stop = () => api('POST', `/v1/sessions/${seg(id)}/cancel`);
  const write = !parent && may('sessions:write');
  const used = s?.items.usage?.input;
  return html`
    <header class="bar">
      <span class="crumb"><a href=${href('chat')}>${t('Sessions')}</a> /</span>
      <h1 class="cut"><${Name} text=${title} max=${80} /></h1>
      <div class="actions">
        <span class=${'state ' + tone} role="status">
          <span class=${'dot ' + tone}></span>${state}
        </span>
        ${parent &&
        html`<a href=${href('chat', parent)}>
          ${rich('works for {session}', { session: html`<${Name} text=${parent} max=${40} />` })}
        </a>`}
        ${write &&
        html`<span class="nophone">
          <${Do} kind="quiet" run=${() => fork(id)}><${Icon} of="fork" />${t('Fork')}<//>
        </span>`}
        ${write &&
        s?.running &&
        html`<${Do} run=${stop}>
          <${Icon} of="stop" />
          ${t('Stop')} <kbd aria-hidden="true">Esc</kbd>
        <//>`}
        ${!parent &&
        html`<button
          type="button"
          class="quiet toside"
          aria-expanded=${rail}
          onClick=${() => setRail(!rail)}>
          ${t('Details')}
        </button>`}
      </div>
    </header>
    <div class=${parent ? 'talk' : 'talk with'}>
      <div class="mid">
        <${Problem} error=${s?.problem || info.error} />
        <${Virtual}
          label=${t('Conversation')}
          items=${items}
          sent=${outbox.get(id)?.at(-1)?.id}
          onTop=${s?.ready ? () => void s.older() : undefined}
          row=${(/** @type {Shown} */ i) =>
            html`<${Row} item=${i} id=${id} waits=${waits.has(i.call?.id ?? '')} />`}
          empty=${html`<p class="empty">
            ${s?.ready
              ? t('There are no messages yet.')
              : link.state === 'open'
                ? t('Loading …')
                : t('Connecting …')}
          </p>`} />
        <div class="dock">
          ${mine.length > 0 &&
          html`<div class="asks">
            ${grouped(mine).map(
              ([key, g]) =>
                html`<${Question}
                  key=${key}
                  asks=${g}
                  only=${mine.length === g.length}
                  where=${g[0].session_id !== id &&
                  html`<a href=${href('chat', g[0].session_id)}>
                    <${Name} text=${g[0].session_id} max=${60} />
                  </a>`}
                  among=${around(mine)} />`,
            )}
          </div>`}
          ${s && s.queue.length > 0 && html`<${Queue} id=${id} s=${s} draw=${() => draw(0)} />`}
          ${write &&
          html`<${Composer}
            id=${id}
            title=${title}
            running=${Boolean(s?.running)}
            retry=${['failed', 'canceled'].includes(info.data?.status ?? '') &&
            info.data?.last_turn_id}
            closed=${info.data?.status === 'completed'}
            note=${used
              ? html`<span
                  class="faint small nw"
                  title=${t('Tokens in the last request to the model')}>
                  ${t('{n} tokens', { n: tokens(used) })}
                </span>`
              : null}
            stop=${stop}
            draw=${() => draw(0)} />`}
        </div>
      </div>
      ${!parent && html`<${Rail} id=${id} info=${info} open=${rail} session=${s} />`}
    </div>
  `;
}
