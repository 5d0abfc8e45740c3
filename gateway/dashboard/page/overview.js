// The overview: pending approvals, running sessions, servers, and health.
// @ts-check
import { href, may, page, useLoaded } from './state.js';
import { count, ms, size } from './text.js';
import { Badge, html, Name, Of, SessionBadge, Time, View } from './ui.js';

/** The number of servers that fit on a card. */
const ROOM = 8;

/** Working servers: the others are listed first, and only the working ones offer tools.
 * @param {Admin<'Server'>} s */
const works = (s) => s.state === 'ready' || s.state === 'degraded';

/** @param {number} n */
const tools = (n) => count(n, 'tool', 'tools');

/** @param {{title: string, to: string, children?: Children}} p */
const Card = ({ title, to, children }) =>
  html`<section class="card" aria-label=${title}>
    <h2><a href=${href(to)}>${title}</a></h2>
    ${children}
  </section>`;

export default function Overview() {
  page.me.use();
  const config = may('config:read');
  const setup = useLoaded(config ? '/api/setup' : null, ['config', 'servers']);
  const sessions = useLoaded('/v1/sessions?limit=6', ['sessions']);
  const asks = useLoaded('/api/approvals', ['approvals']);
  const servers = useLoaded(config ? '/api/mcp/servers' : null, ['servers']);
  const box = useLoaded(config ? '/api/sandbox' : null, ['config']).data;
  const metrics = useLoaded(may('metrics:read') ? '/api/metrics' : null, ['sessions', 'tools']);
  const cluster = useLoaded(may('agents:read') ? '/api/cluster' : null, ['agents']);
  const last = metrics.data?.at(-1);
  const fresh = setup.data && !setup.data.done && servers.data?.length === 0;
  return html`<${View}
    title="Home"
    actions=${html`<a class="button primary" href=${href('chat', 'new')}>New session</a>`}>
    ${fresh &&
    html`<p class="notice">
      No MCP servers are connected yet. <a href=${href('start')}>Set yaya up</a>: it takes a minute.
    </p>`}
    ${(box?.backend === 'off' || box?.status === 'failed') &&
    html`<p class="problem">
      <a href=${href('sandbox')}>Sandbox</a> <${Name} text=${box.summary} max=${300} />
    </p>`}
    <div class="cards">
      <${Card} title="Approvals" to="approvals">
        <${Of} of=${asks}>
          ${(/** @type {Admin<'Ask'>[]} */ d) =>
            d.length
              ? html`
                  <p class="big">${d.length}</p>
                  <p>${d.length === 1 ? 'call waits' : 'calls wait'} for approval</p>
                `
              : html`<p class="muted">No calls wait.</p>`}
        <//>
      <//>
      <${Card} title="Sessions" to="chat">
        <${Of} of=${sessions}>
          ${(/** @type {V1<'OutSessionsBody'>} */ d) =>
            d.sessions.length
              ? html`<ul class="plain">
                  ${d.sessions.map(
                    (s) =>
                      html`<li>
                        <a href=${href('chat', s.id)}>
                          <${Name} text=${s.title || s.id} max=${48} />
                        </a> <${SessionBadge} s=${s} /> <small class="muted">
                          <${Time} at=${s.updated_at} />
                        </small>
                      </li>`,
                  )}
                </ul>`
              : html`<p class="muted">There are no sessions yet.</p>`}
        <//>
      <//>
      ${config &&
      html`<${Card} title="MCP servers" to="servers">
        <${Of} of=${servers}>
          ${(/** @type {Admin<'Server'>[]} */ d) =>
            d.length
              ? html`
                  <p>
                    ${d.filter(works).length} of ${d.length} work,
                    with ${tools(d.filter(works).reduce((n, s) => n + s.tools, 0))}
                  </p>
                  <ul class="plain">
                    ${[...d.filter((s) => !works(s)), ...d.filter(works)]
                      .slice(0, ROOM)
                      .map(
                        (s) =>
                          html`<li>
                            <a href=${href('servers', s.name)}>
                              <${Name} text=${s.name} max=${32} />
                            </a> <${Badge} state=${s.state} /> <small class="muted">
                              ${works(s)
                                ? tools(s.tools)
                                : html`<${Name} text=${s.reason ?? ''} max=${60} />`}
                            </small>
                          </li>`,
                      )}
                  </ul>
                  ${d.length > ROOM &&
                  html`<p><a href=${href('servers')}>${d.length - ROOM} more</a></p>`}
                `
              : html`<p class="muted">
                  No servers are configured. <a href=${href('start')}>Import yours</a>
                </p>`}
        <//>
      <//>`}
      ${may('agents:read') &&
      html`<${Card} title="Agents" to="agents">
        <${Of} of=${cluster}>
          ${(/** @type {Admin<'Cluster'>} */ d) =>
            html`
              <p class="big">${d.agents.filter((a) => a.status === 'running').length}</p>
              <p>
                running, of ${d.agents.length} known ones,
                on ${d.kernels.length} ${d.kernels.length === 1 ? 'kernel' : 'kernels'}
              </p>
            `}
        <//>
      <//>`}
      ${last &&
      html`<${Card} title="Metrics" to="metrics">
        <p class="big">${last.calls}</p>
        <p>tool calls, ${last.errors} failed; p50 ${ms(last.p50_ms)}, p95 ${ms(last.p95_ms)}</p>
        <p class="muted">${size(last.rss_bytes)} of memory</p>
      <//>`}
    </div>
  <//>`;
}
