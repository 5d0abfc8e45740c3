// Home: what needs somebody, what runs, the traffic of the last hour.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { useAttention } from './attention.js';
import { Needs } from './notify.js';
import { href, may, page, useLoaded } from './state.js';
import { stateWord } from './text.js';
import { Empty, html, Icon, Name, Of, State, Time, View } from './ui.js';
import { count, rich, t } from './words.js';

const ROOM = 8; // servers

/** @param {Admin<'Server'>} s */
const works = (s) => s.state === 'ready' || s.state === 'degraded';

/** Servers with problems come first. @param {Admin<'Server'>} s */
const rank = (s) =>
  ['failed', 'invalid', 'degraded', 'waiting', 'starting', 'installing'].indexOf(s.state) + 1 || 9;

/** The checks that are not in order. Servers and the sandbox have places of their own here, and
 * a model without a key is degraded until somebody wants to use it.
 * @param {Admin<'Diagnosis'>[]} all */
const unhealthy = (all) =>
  all.filter(
    (d) =>
      !['sandbox', 'mcp-bridge'].includes(d.plugin) &&
      (d.status === 'failed' || (d.status === 'degraded' && !d.plugin.startsWith('llm-'))),
  );

/** Checks of yaya itself that are not in order. @param {{all: Admin<'Diagnosis'>[]}} p */
const Checks = ({ all }) =>
  html`<section class="box" aria-label=${t('Checks')}>
    <header>
      <h2>${t('Checks')}</h2>
      <span class="faint">${t('of yaya itself; yaya doctor says more')}</span>
    </header>
    <ul class="rows">
      ${all.map(
        (d) =>
          html`<li key=${d.plugin + d.summary}>
            <span class=${d.status === 'failed' ? 'ico bad' : 'ico busy'}>
              <${Icon} of="warning" />
            </span>
            <span class="two">
              <b><${Name} text=${d.plugin} max=${40} /></b>
              <small><${Name} text=${d.summary} max=${300} /></small>
            </span>
          </li>`,
      )}
    </ul>
  </section>`;

/** @param {{of: import('./state.js').Loaded<V1<'OutSessionsBody'>>}} p */
const Sessions = ({ of }) =>
  html`<section class="box" aria-label=${t('Sessions')}>
    <header><h2>${t('Sessions')}</h2><a class="end" href=${href('chat')}>${t('All')}</a></header>
    <${Of} of=${of}>
      ${(/** @type {V1<'OutSessionsBody'>} */ d) =>
        d.sessions.length
          ? html`<div class="rows tight">
              ${d.sessions.map((s) => {
                const state = s.status === 'active' ? s.state : s.status;
                return html`<a key=${s.id} href=${href('chat', s.id)}>
                  <${State} state=${state} bare />
                  <span class="cut grow"><${Name} text=${s.title || s.id} max=${80} /></span>
                  <small class="faint nw">
                    ${state === 'idle' || state === 'completed'
                      ? html`<${Time} at=${s.updated_at} />`
                      : stateWord(state)}
                  </small>
                </a>`;
              })}
            </div>`
          : html`<${Empty} icon="session">${t('There are no sessions yet.')}<//>`}
    <//>
  </section>`;

/** @param {{all: Admin<'Server'>[]}} p */
const Servers = ({ all }) =>
  html`<section class="box" aria-label=${t('Servers')}>
    <header>
      <h2>${t('Servers')}</h2>
      <span class="faint">
        ${t('{good} of {all} work, with {tools}', {
          good: all.filter(works).length,
          all: all.length,
          tools: count(
            all.filter(works).reduce((n, s) => n + s.tools, 0),
            '{n} tool',
            '{n} tools',
          ),
        })}
      </span>
      <a class="end" href=${href('servers')}>
        ${all.length > ROOM ? t('{n} more', { n: all.length - ROOM }) : t('All')}
      </a>
    </header>
    <div class="rows tight">
      ${[...all]
        .sort((a, b) => rank(a) - rank(b))
        .slice(0, ROOM)
        .map(
          (s) =>
            html`<a key=${s.name} href=${href('servers', s.name)}>
              <${State} state=${s.state} bare />
              <span class="cut grow">
                <${Name} text=${s.name} max=${48} />
                ${!works(s) &&
                s.reason &&
                html`${' '}<small class="faint"><${Name} text=${s.reason} max=${160} /></small>`}
              </span>
              <small class="faint nw">
                ${works(s) ? count(s.tools, '{n} tool', '{n} tools') : stateWord(s.state)}
              </small>
            </a>`,
        )}
    </div>
  </section>`;

export default function Home() {
  page.me.use();
  const config = may('config:read');
  const setup = useLoaded(config ? '/api/setup' : null, ['config', 'servers']).data;
  const sessions = useLoaded('/v1/sessions?limit=6', ['sessions']);
  const servers = useLoaded(config ? '/api/mcp/servers' : null, ['servers']).data;
  const box = useLoaded(config ? '/api/sandbox' : null, ['config']).data;
  const checks = useLoaded(config ? '/api/doctor' : null, ['plugins', 'config']).data;
  const metrics = useLoaded(may('metrics:read') ? '/api/metrics' : null, ['sessions']).data;
  const { needs } = useAttention();
  const [parts, setParts] = useState(/** @type {typeof import('./board.js') | null} */ (null));
  useEffect(() => {
    import('./board.js').then(setParts, () => {}); // without it, the rest is there
  }, []);
  const wrong = unhealthy(checks ?? []);
  const left = html`
    ${needs.length > 0 &&
    html`<section class="box" aria-label=${t('Needs you')}>
      <header><h2>${t('Needs you')}</h2><span class="n warn">${needs.length}</span></header>
      <${Needs} needs=${needs} max=${8} act />
    </section>`}
    ${wrong.length > 0 && html`<${Checks} all=${wrong} />`}
  `;
  const below = servers && servers.length > 0 && html`<${Servers} all=${servers} />`;
  const right = html`<${Sessions} of=${sessions} />`;
  return html`<${View}
    title=${t('Home')}
    actions=${may('sessions:write') &&
    html`<a class="button primary" href=${href('chat', 'new')}>
      <${Icon} of="session" />
      ${t('New session')}
    </a>`}>
    ${setup &&
    !setup.done &&
    servers?.length === 0 &&
    html`<p class="notice">
      ${rich('No MCP servers are connected yet. {setup}: it takes a minute.', {
        setup: html`<a href=${href('start')}>${t('Set yaya up')}</a>`,
      })}
    </p>`}
    ${(box?.backend === 'off' || box?.status === 'failed') &&
    html`<p class="problem">
      <a href=${href('sandbox')}>${t('Sandbox')}</a> <${Name} text=${box.summary} max=${300} />
    </p>`}
    ${parts
      ? html`<${parts.Board}
          servers=${servers}
          connected=${metrics?.at(-1)?.mcp_sessions}
          left=${left}
          below=${below}
          right=${right} />`
      : html`<div class="cols c21">
          <div class="col">${left} ${below}</div>
          <div class="col">${right}</div>
        </div>`}
  <//>`;
}
