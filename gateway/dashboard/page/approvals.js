// Approvals: the calls that wait, each with what would run, and those that have ended.
// @ts-check
import { useEffect, useRef } from './vendor/hooks.js';
import { around, grouped, left, Question, urgency, useNow } from './ask.js';
import { lineOf, toolOf } from './asked.js';
import { single } from './keys.js';
import { go, href, may, useLoaded } from './state.js';
import { plain } from './text.js';
import { Empty, html, Icon, Name, Of, Time, View } from './ui.js';
import { count, rich, t } from './words.js';

/** @typedef {Admin<'Ask'>} Ask */
/** @typedef {Admin<'PastAsk'>} Past */

/** How a question ended. @param {Past} p */
export const outcome = (p) =>
  p.response === 'approve'
    ? t('Approved by {who}', { who: plain(p.by) })
    : p.response === 'approve_for_session'
      ? t('Approved for the session by {who}', { who: plain(p.by) })
      : p.response === 'reject'
        ? t('Rejected by {who}', { who: plain(p.by) })
        : p.reason === 'timeout'
          ? t('Refused: nobody answered in time')
          : t('Withdrawn: the call has ended');

/** The titles of the sessions, by id. */
function useTitles() {
  const all = useLoaded(may('sessions:read') ? '/v1/sessions?limit=100' : null, ['sessions']);
  return new Map((all.data?.sessions ?? []).map((s) => [s.id, s.title]));
}

/** A session by its title. @param {{id: string, titles: Map<string, string>}} p */
function Session({ id, titles }) {
  const root = id.split('::agent::')[0];
  const name = titles.get(root);
  if (name === undefined) return html`<${Name} text=${id} max=${40} />`;
  return html`<a href=${href('chat', id)}><${Name} text=${name || id} max=${60} /></a>`;
}

/** @param {{p: Past, titles: Map<string, string>}} p */
function Answered({ p, titles }) {
  const tone = p.response?.startsWith('approve') ? 'good' : 'off';
  return html`<section class="ask large past" aria-label=${t('An answered question')}>
    <header><h2 tabindex="-1"><${Name} text=${toolOf(p)} /></h2></header>
    <div class="body">
      <p class="flex">
        <span class=${'state ' + tone}><span class=${'dot ' + tone}></span>${outcome(p)}</span>
        <span class="faint"><${Time} at=${p.at} /></span>
      </p>
      ${p.feedback &&
      html`<p class="quoted">
        ${rich('The model was told: {reason}', {
          reason: html`<${Name} text=${p.feedback} max=${2000} />`,
        })}
      </p>`}
      <dl>
        <dt>${t('Session')}</dt>
        <dd><${Session} id=${p.session_id} titles=${titles} /></dd>
        <dt>${t('Server')}</dt>
        <dd>${p.server ? html`<${Name} text=${p.server} max=${64} />` : t('built into yaya')}</dd>
        <dt>${t('In short')}</dt>
        <dd><${Name} text=${p.brief} max=${1000} /></dd>
      </dl>
      ${may('audit:read') &&
      html`<p class="muted">
        ${rich('{traffic} has the calls that ran with their arguments and results.', {
          traffic: html`<a href=${href('traffic')}>${t('Traffic')}</a>`,
        })}
      </p>`}
    </div>
  </section>`;
}

/** One line of the list. @param {{id: string, at: string, now: boolean, who: Children,
 * end: Children, what: Children, line: string}} p */
const Line = ({ id, now, who, end, what, line }) =>
  html`<a class="it" href=${href('approvals', id)} aria-current=${now ? 'true' : undefined}>
    <span class="flex">
      <span class="cut">${who}</span><span class="end nw small">${end}</span>
    </span>
    <span class="cut blk small">${what}</span><span class="cut blk small faint mono">${line}</span>
  </a>`;

/** @param {{asks: Ask[], past: Past[], id: string}} p */
function Inbox({ asks, past, id }) {
  const titles = useTitles();
  const now = useNow();
  const groups = grouped(asks);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const ended = past.find((p) => p.id === id);
  let at = groups.findIndex(([, g]) => g.some((a) => a.id === id));
  if (at < 0 && !ended && groups.length) at = 0;
  const all = [...groups.map(([, g]) => g[0].id), ...past.map((p) => p.id)];
  const index = at >= 0 ? at : all.indexOf(id);
  const shown = all[index] ?? '';
  const move = (/** @type {number} */ by) => {
    const to = all[Math.max(0, Math.min(all.length - 1, index + by))];
    if (to && to !== shown) go('approvals', to);
  };
  const was = useRef(shown);
  useEffect(() => {
    // The heading of another question gets the focus, not a button. Somebody who has just come,
    // or writes, keeps theirs.
    const active = document.activeElement;
    if (was.current !== shown && (active === document.body || box.current?.contains(active)))
      /** @type {HTMLElement | null | undefined} */ (
        box.current?.querySelector('h2[tabindex]')
      )?.focus({ preventScroll: true });
    was.current = shown;
  }, [shown]);
  useEffect(() => {
    const key = (/** @type {KeyboardEvent} */ e) => {
      if (!single.value || e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
      if (e.target instanceof HTMLElement && ['INPUT', 'TEXTAREA'].includes(e.target.tagName))
        return;
      if (document.querySelector('dialog[open]') || !['j', 'k'].includes(e.key)) return;
      e.preventDefault();
      move(e.key === 'j' ? 1 : -1);
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  });
  const where = (/** @type {Ask} */ a) => html`
    <b><${Session} id=${a.session_id} titles=${titles} /></b>
    <${Icon} of="right" />
    <span>
      ${a.server
        ? rich('{tool} of the server {server}', {
            tool: html`<b><${Name} text=${toolOf(a)} /></b>`,
            server: html`<${Name} text=${a.server} max=${64} />`,
          })
        : rich('{tool}, built into yaya', { tool: html`<b><${Name} text=${a.tool_name} /></b>` })}
    </span>
    ${a.node &&
    html`<span class="badge">
      ${rich('on {node}', { node: html`<${Name} text=${a.node} max=${63} />` })}
    </span>`}
  `;
  const group = at >= 0 ? groups[at][1] : null;
  return html`<div class=${shown ? 'inbox open' : 'inbox'} ref=${box}>
    <nav class="list" aria-label=${t('Questions')}>
      ${groups.length > 0 && html`<h2>${t('Waiting')}</h2>`}
      ${groups.map(
        ([key, g], i) =>
          html`<${Line}
            key=${key}
            id=${g[0].id}
            now=${i === at}
            who=${html`
              <b><${Name} text=${toolOf(g[0])} /></b> <span class="faint small">
                ${g[0].server || 'yaya'}
              </span>
            `}
            end=${html`<span class=${urgency(g[0].deadline, now)}>
              ${left(g[0].deadline, now)}
            </span>`}
            what=${titles.get(g[0].session_id) || plain(g[0].session_id)}
            line=${g.length > 1
              ? count(g.length, '{n} time the same question', '{n} times the same question')
              : lineOf(g[0])} />`,
      )}
      ${past.length > 0 && html`<h2>${t('Ended')}</h2>`}
      ${past
        .slice(0, 100)
        .map(
          (p) =>
            html`<${Line}
              key=${p.id}
              id=${p.id}
              now=${p.id === shown}
              who=${html`
                <b><${Name} text=${toolOf(p)} /></b> <span class="faint small">
                  ${p.server || 'yaya'}
                </span>
              `}
              end=${html`<span class="faint"><${Time} at=${p.at} /></span>`}
              what=${outcome(p)}
              line=${plain(p.brief)} />`,
        )}
    </nav>
    <div class="detail">
      ${group
        ? html`
            ${groups.length > 1 &&
            html`<div class="flex pager phone">
              <span class="faint">${t('{n} of {all}', { n: at + 1, all: groups.length })}</span>
              <button
                type="button"
                class="quiet sq end"
                aria-label=${t('Previous question')}
                disabled=${at === 0}
                onClick=${() => move(-1)}>
                <${Icon} of="up" />
              </button>
              <button
                type="button"
                class="quiet sq"
                aria-label=${t('Next question')}
                disabled=${at === groups.length - 1}
                onClick=${() => move(1)}>
                <${Icon} of="down" />
              </button>
            </div>`}
            <${Question}
              key=${groups[at][0]}
              large
              only
              asks=${group}
              where=${where(group[0])}
              among=${around(asks) + shown}
              done=${() => go('approvals')} />
          `
        : ended
          ? html`<${Answered} p=${ended} titles=${titles} />`
          : html`<${Empty} icon="check">
              ${t('No calls wait for approval.')}
              ${past.length > 0 &&
              html`<br />${t('Choose one of those that have ended to see how.')}`}
            <//>`}
    </div>
  </div>`;
}

/** @param {{rest: string[]}} p */
export default function Approvals({ rest: [id = ''] }) {
  const asks = useLoaded('/api/approvals', ['approvals']);
  const past = useLoaded('/api/approvals/answered', ['approvals']);
  return html`<${View}
    bare
    title=${t('Approvals')}
    actions=${html`<span class="faint small nophone">
      ${rich('{j} {k} move', { j: html`<kbd>J</kbd>`, k: html`<kbd>K</kbd>` })}
    </span>`}>
    <${Of} of=${asks}>
      ${(/** @type {Ask[]} */ d) => html`<${Inbox} asks=${d} past=${past.data ?? []} id=${id} />`}
    <//>
  <//>`;
}
