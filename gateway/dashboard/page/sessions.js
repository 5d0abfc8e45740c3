// The list of sessions; each opens as a conversation (chat.js).
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Chat } from './chat.js';
import { Confirm } from './dialog.js';
import { New } from './newsession.js';
import { href, may, useLoaded } from './state.js';
import { listed, plain } from './text.js';
import { Do, html, Name, Of, SessionBadge, Table, Time, View } from './ui.js';

/** @param {{rest: string[]}} p */
export default function Sessions({ rest: [id] }) {
  if (id === 'new') return html`<${New} />`;
  return id ? html`<${Chat} key=${id} id=${id} />` : html`<${List} />`;
}

function List() {
  const [pages, setPages] = useState(/** @type {V1<'OutSessionsBody'>[]} */ ([]));
  const first = useLoaded('/v1/sessions?limit=50', ['sessions', 'agents']);
  const rows = [...(first.data?.sessions ?? []), ...pages.flatMap((p) => p.sessions)];
  const missing = new Set([first.data, ...pages].flatMap((p) => p?.missing_nodes ?? []));
  const next = pages.length ? pages.at(-1)?.next : first.data?.next;
  return html`<${View}
    title="Sessions"
    actions=${may('sessions:write') &&
    html`<a class="button primary" href=${href('chat', 'new')}>New session</a>`}>
    <${Of} of=${first}>
      ${() => html`
        ${missing.size > 0 &&
        html`<p class="notice" role="status">
          Sessions are missing: ${listed([...missing])}
          ${missing.size === 1 ? ' does' : ' do'} not answer.
          ${may('agents:read') && html` <a href=${href('cluster')}>Cluster</a>`}
        </p>`}
        <${Table}
          label="Sessions"
          head=${['Session', 'State', 'Folder', 'Changed', null]}
          rows=${rows}
          empty=${html`There are no sessions yet. <a href=${href('chat', 'new')}>Start one</a>.`}
          row=${(/** @type {V1<'SessionRow'>} */ s) => html`<tr key=${s.id}>
            <td>
              <a href=${href('chat', s.id)}><${Name} text=${s.title || s.id} max=${80} /></a>
              ${s.node && html` <span class="badge">on <${Name} text=${s.node} max=${63} /></span>`}
            </td>
            <td><${SessionBadge} s=${s} /></td>
            <td><code><${Name} text=${s.workspace_path} max=${60} /></code></td>
            <td><${Time} at=${s.updated_at} /></td>
            <td>
              ${may('sessions:write') &&
              html`<${Confirm}
                kind="small"
                label=${`Archive ${plain(s.title || s.id)}`}
                yes="Archive"
                ask=${html`
                  “
                  <${Name} text=${s.title || s.id} />
                  ” moves to the archive: it is no longer listed, but its tape is kept.
                `}
                run=${() => api('POST', `/v1/sessions/${seg(s.id)}/archive`)}>
                Archive
              <//>`}
            </td>
          </tr>`} />
        ${next &&
        html`<${Do} run=${async () => {
          const p = await api('GET', `/v1/sessions?limit=50&cursor=${encodeURIComponent(next)}`);
          setPages([...pages, p]);
        }}>
          More
        <//>`}
      `}
    <//>
  <//>`;
}
