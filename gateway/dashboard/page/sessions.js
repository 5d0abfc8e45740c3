// The list of sessions; each opens as a conversation (chat.js).
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Chat } from './chat.js';
import { Confirm } from './dialog.js';
import { New } from './newsession.js';
import { dollars, tokens } from './rail.js';
import { href, may, useLoaded } from './state.js';
import { listed, plain } from './text.js';
import { Do, Empty, html, Icon, Name, Of, State, Time, typed, View } from './ui.js';
import { rich, t } from './words.js';

/** @typedef {V1<'SessionRow'>} Row */
/** @typedef {Admin<'Agent'>} Agent */

const INNER = '::agent::'; // between the id of an agent and the rest of its sub-agent's

/** @param {{rest: string[]}} p */
export default function Sessions({ rest: [id] }) {
  if (id === 'new') return html`<${New} />`;
  return id ? html`<${Chat} key=${id} id=${id} />` : html`<${List} />`;
}

/** The state of a session, or how it has ended. @param {Row} s */
const stateOf = (s) =>
  s.state === 'requires_action'
    ? 'waiting_approval'
    : s.state === 'running' || s.status === 'active'
      ? s.state
      : s.status;

/** The lines of the list: sessions, each followed by its sub-agents.
 * @param {Row[]} rows @param {Agent[]} agents @param {string} find
 * @returns {({s: Row} | {agent: Agent, depth: number})[]} */
function lines(rows, agents, find) {
  const has = (/** @type {string | undefined} */ x) => x?.toLowerCase().includes(find);
  return rows
    .filter((s) => !find || has(s.title) || has(s.workspace_path) || has(s.id))
    .flatMap((s) => [
      { s },
      ...agents
        .filter((a) => a.id.startsWith(s.id + INNER))
        .map((agent) => ({ agent, depth: agent.id.split(INNER).length - 1 })),
    ]);
}

/** @param {{s: Row}} p */
const Archive = ({ s }) =>
  html`<${Confirm}
    kind="quiet small"
    label=${t('Archive {title}', { title: plain(s.title || s.id) })}
    yes=${t('Archive')}
    ask=${rich('“{title}” moves to the archive: it is no longer listed, but its tape is kept.', {
      title: html`<${Name} text=${s.title || s.id} />`,
    })}
    run=${() => api('POST', `/v1/sessions/${seg(s.id)}/archive`)}>
    ${t('Archive')}
  <//>`;

/** @param {{s: Row}} p */
const line = ({ s }) =>
  html`<tr key=${s.id} role="row">
    <td role="cell" class="p1">
      <a class="strong" href=${href('chat', s.id)}><${Name} text=${s.title || s.id} max=${80} /></a>
      ${s.parent_id && html` <span class="badge"><${Icon} of="fork" />${t('fork')}</span>`}
      ${s.node &&
      html` <span class="badge">
          ${rich('on {node}', { node: html`<${Name} text=${s.node} max=${63} />` })}
        </span>
      `}
    </td>
    <td role="cell" class="p2"><${State} state=${stateOf(s)} /></td>
    <td role="cell" class="p3 mono faint"><${Name} text=${s.workspace_path} max=${60} /></td>
    <td role="cell" class="num">${s.usage.total ? tokens(s.usage.total) : ''}</td>
    <td role="cell" class="num">${dollars(s.usage.cost_usd)}</td>
    <td role="cell" class="p4 faint"><${Time} at=${s.updated_at} /></td>
    <td role="cell" class="end">${may('sessions:write') && html`<${Archive} s=${s} />`}</td>
  </tr>`;

/** @param {{agent: Agent, depth: number}} p */
const inner = ({ agent, depth }) =>
  html`<tr key=${agent.id} role="row">
    <td role="cell" class=${'p1 inner d' + Math.min(depth, 3)}>
      <${Icon} of="agent" />
      ${' '}
      <a href=${href('chat', agent.id)}>
        <${Name} text=${agent.id.slice(agent.id.lastIndexOf(INNER) + INNER.length)} max=${60} />
      </a>
      ${' '}
      <span class="faint small">${t('sub-agent')}</span>
    </td>
    <td role="cell" class="p2"><${State} state=${agent.status} /></td>
    <td role="cell" class="p3"></td>
    <td role="cell"></td>
    <td role="cell"></td>
    <td role="cell" class="p4 faint"><${Time} at=${agent.ts} /></td>
    <td role="cell"></td>
  </tr>`;

/** @param {{rows: ReturnType<typeof lines>}} p */
const Rows = ({ rows }) =>
  html`<div class="box">
    <table class="sessions" role="table" aria-label=${t('Sessions')}>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader">${t('Session')}</th>
          <th role="columnheader">${t('State')}</th>
          <th role="columnheader">${t('Folder')}</th>
          <th role="columnheader" class="num">${t('Tokens')}</th>
          <th role="columnheader" class="num">${t('Cost')}</th>
          <th role="columnheader">${t('Changed')}</th>
          <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
        </tr>
      </thead>
      <tbody role="rowgroup">${rows.map((l) => ('s' in l ? line(l) : inner(l)))}</tbody>
    </table>
  </div>`;

function List() {
  const [pages, setPages] = useState(/** @type {V1<'OutSessionsBody'>[]} */ ([]));
  const [find, setFind] = useState('');
  const first = useLoaded('/v1/sessions?limit=50', ['sessions', 'agents']);
  const cluster = useLoaded(may('agents:read') ? '/api/cluster' : null, ['agents']);
  const rows = [...(first.data?.sessions ?? []), ...pages.flatMap((p) => p.sessions)];
  const missing = new Set([first.data, ...pages].flatMap((p) => p?.missing_nodes ?? []));
  const shown = lines(rows, cluster.data?.agents ?? [], find.trim().toLowerCase());
  const next = pages.length ? pages.at(-1)?.next : first.data?.next;
  return html`<${View}
    title=${t('Sessions')}
    actions=${may('sessions:write') &&
    html`<a class="button primary" href=${href('chat', 'new')}>
      <${Icon} of="plus" />
      ${t('New session')}
    </a>`}>
    <${Of} of=${first}>
      ${() => html`
        ${missing.size > 0 &&
        html`<p class="notice" role="status">
          ${missing.size === 1
            ? t('Sessions are missing: {node} does not answer.', { node: listed([...missing]) })
            : t('Sessions are missing: {nodes} do not answer.', { nodes: listed([...missing]) })}
          ${may('agents:read') && html` <a href=${href('cluster')}>${t('Cluster')}</a>`}
        </p>`}
        ${rows.length > 0 &&
        html`<div class="filters">
          <input
            type="search"
            class="narrow"
            aria-label=${t('Filter the sessions')}
            placeholder=${t('Filter the sessions')}
            value=${find}
            maxlength="100"
            onInput=${typed(setFind)} />
        </div>`}
        ${rows.length === 0
          ? html`<${Empty} icon="session">
              ${rich('There are no sessions yet. {start}.', {
                start: html`<a href=${href('chat', 'new')}>${t('Start one')}</a>`,
              })}
            <//>`
          : shown.length === 0
            ? html`<${Empty} icon="search">${t('No sessions match.')}<//>`
            : html`<${Rows} rows=${shown} />`}
        ${next &&
        html`<${Do} run=${async () => {
          const p = await api('GET', `/v1/sessions?limit=50&cursor=${encodeURIComponent(next)}`);
          setPages([...pages, p]);
        }}>
          ${t('More')}
        <//>`}
      `}
    <//>
  <//>`;
}
