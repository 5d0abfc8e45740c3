// One MCP server: its state, calls, tools, logs, configuration and trust.
// @ts-check
import { api, seg } from './api.js';
import { changesOf } from './attention.js';
import { Confirm } from './dialog.js';
import { Logs } from './logs.js';
import { Legend, Plot } from './plot.js';
import { Form } from './serverform.js';
import { Boxed } from './serversandbox.js';
import { Tools } from './servertools.js';
import { href, may, useLoaded } from './state.js';
import { ms, plain } from './text.js';
import { Ticks } from './ticks.js';
import { Tile } from './tile.js';
import { Trust } from './trust.js';
import { Do, html, Icon, Name, Pre, State, Time, View } from './ui.js';
import { rich, t } from './words.js';

/** @param {{s: Admin<'Server'>, part: string}} p */
export function Server({ s, part }) {
  const write = may('config:write');
  const waiting = useLoaded('/api/mcp/quarantine', ['quarantine', 'servers']).data?.filter(
    (w) => w.server === s.name,
  );
  const changes = (waiting ?? []).reduce((n, w) => n + changesOf(w), 0);
  const off = s.state === 'disabled';
  /** @type {[string, string, Children][]} */
  const tabs = [
    ['', t('Overview'), null],
    ['tools', t('Tools'), s.tools || null],
    ['logs', t('Logs'), null],
    ['config', t('Configuration'), null],
    ['trust', t('Trust'), changes || null],
  ];
  return html`<${View}
    title=${s.name}
    crumb=${html`<a href=${href('servers')}>${t('Servers')}</a>`}
    actions=${write &&
    html`
      ${s.editable &&
      s.state !== 'waiting' &&
      html`<${Do} run=${() => api('PATCH', `/api/mcp/servers/${seg(s.name)}`, { enabled: off })}>
        ${off ? t('Turn on') : t('Turn off')}
      <//>`}
      ${!['disabled', 'waiting'].includes(s.state) &&
      html`<${Do} run=${() => api('POST', `/api/mcp/servers/${seg(s.name)}/restart`)}>
        <${Icon} of="restart" />
        ${t('Restart')}
      <//>`}
    `}
    subs=${html`<nav class="subs" aria-label=${t('Parts of the server')}>
      ${tabs.map(
        ([at, title, n]) =>
          html`<a
            key=${at}
            href=${at ? href('servers', s.name, at) : href('servers', s.name)}
            aria-current=${at === part ? 'page' : undefined}>
            ${title}
            ${n !== null && html` <span class="faint">${n}</span>`}
          </a>`,
      )}
    </nav>`}>
    ${part === 'tools'
      ? html`<${Tools} s=${s} />`
      : part === 'logs'
        ? html`<${Logs} name=${s.name} />`
        : part === 'config'
          ? html`<${Config} s=${s} write=${write} />`
          : part === 'trust'
            ? html`<${Trust} s=${s} waiting=${waiting} />`
            : html`<${Overview} s=${s} />`}
  <//>`;
}

/** @param {{s: Admin<'Server'>}} p */
function Overview({ s }) {
  return html`
    <div class="head">
      <${Tile} name=${s.name} large />
      <div class="two">
        <p>
          <${State} state=${s.state} /> ${s.since &&
          html`<span class="faint">
            ${rich('since {time}', { time: html`<${Time} at=${s.since} />` })}
          </span>`}
          ${s.reason && html` <${Name} text=${s.reason} max=${1000} />`}
        </p>
        <code><${Name} text=${s.endpoint} max=${500} /></code>
      </div>
      <span class="badge">${s.transport === 'stdio' ? t('This machine') : t('Remote, HTTP')}</span>
    </div>
    ${s.state === 'waiting' &&
    html`<p class="notice">
      ${rich('It does not start until you approve it: {trust}.', {
        trust: html`<a href=${href('servers', s.name, 'trust')}>${t('Trust')}</a>`,
      })}
    </p>`}
    ${!!s.history?.length &&
    html`<section class="box" aria-label=${t('State')}>
      <header><h2>${t('State, last 24 hours')}</h2></header>
      <div class="body">
        <${Ticks} s=${s} n=${96} />
        <p class="flex faint">
          <small>${t('24 hours ago')}</small>
          <small class="end">${t('Now')}</small>
        </p>
      </div>
    </section>`}
    ${may('audit:read') && html`<${Charts} name=${s.name} />`}
    <div class=${s.sandbox ? 'cols c11' : 'cols'}>
      <section class="box" aria-label=${t('Facts')}>
        <header><h2>${t('Facts')}</h2></header>
        <div class="body">
          <dl>
            <dt>${t('Configured in')}</dt>
            <dd><code>${plain(s.file)}</code></dd>
            <dt>${t('Tools')}</dt>
            <dd><a href=${href('servers', s.name, 'tools')}>${s.tools}</a></dd>
            <dt>${t('Started in')}</dt>
            <dd>${s.start_ms ? ms(s.start_ms) : '–'}</dd>
            <dt>${t('Restarts')}</dt>
            <dd>${s.restarts}</dd>
            <dt>${t('Calls')}</dt>
            <dd>
              ${s.calls.total
                ? t('{n} since yaya runs, {bad} failed or refused; p50 {p50}, p95 {p95}', {
                    n: s.calls.total,
                    bad: s.calls.errors,
                    p50: ms(s.calls.p50_ms),
                    p95: ms(s.calls.p95_ms),
                  })
                : t('none since yaya runs')}
            </dd>
            ${s.last_error &&
            !['ready', 'installing'].includes(s.state) &&
            s.last_error !== s.reason &&
            html`<dt>${t('Last error')}</dt><dd><${Name} text=${s.last_error} max=${1000} /></dd>`}
          </dl>
        </div>
      </section>
      ${s.sandbox && html`<${Boxed} of=${s.sandbox} server=${s.name} />`}
    </div>
    ${!!s.diagnostics?.length &&
    html`
      <h2>${t('Last messages')}</h2>
      <${Pre}
        text=${s.diagnostics.map((/** @type {string} */ x) => plain(x)).join('\n')}
        label=${t('Diagnostics')} />
    `}
    ${s.stderr &&
    html`
      <h2>${t('Standard error')}</h2>
      <${Pre} text=${plain(s.stderr, true)} label=${t('The last lines of its standard error')} />
    `}
  `;
}

/** The calls of the last hour. @param {{name: string}} p */
function Charts({ name }) {
  const of = useLoaded(`/api/traffic/series?server=${encodeURIComponent(name)}`, ['servers']).data;
  if (!of) return null;
  const times = of.slices.map((x) => Date.parse(x.ts));
  const level = (/** @type {'p50_ms' | 'p95_ms'} */ k) =>
    of.slices.map((x) => (x.calls ? x[k] : null));
  const p50 = { name: 'p50', tone: 's1', values: level('p50_ms') };
  const p95 = { name: 'p95', tone: 's3', values: level('p95_ms') };
  const calls = { name: t('a minute'), tone: 's2', values: of.slices.map((x) => x.calls) };
  const errors = { name: t('a minute'), tone: 'se', values: of.slices.map((x) => x.errors) };
  const n = (/** @type {number} */ x) => String(x);
  return html`<div class="cols c111">
    <section class="box" aria-label=${t('Latency')}>
      <header>
        <h2>${t('Latency')}</h2>
        <${Legend} lines=${[
          [p50, of.total.calls ? ms(of.total.p50_ms) : '–'],
          [p95, of.total.calls ? ms(of.total.p95_ms) : '–'],
        ]} />
      </header>
      <div class="body low">
        <${Plot}
          label=${t('Latency in the last hour')}
          times=${times}
          lines=${[p50, p95]}
          show=${ms} />
      </div>
    </section>
    <section class="box" aria-label=${t('Calls')}>
      <header>
        <h2>${t('Calls')}</h2>
        <span class="faint">${t('last hour')}</span>
        <b class="end">${of.total.calls}</b>
      </header>
      <div class="body low">
        <${Plot}
          stacked
          label=${t('Calls by minute in the last hour')}
          times=${times}
          lines=${[calls]}
          show=${n} />
      </div>
    </section>
    <section class="box" aria-label=${t('Errors')}>
      <header>
        <h2>${t('Errors')}</h2>
        <span class="faint">${t('last hour')}</span>
        <b class="end">${of.total.errors}</b>
      </header>
      <div class="body low">
        <${Plot}
          stacked
          label=${t('Failed calls by minute in the last hour')}
          times=${times}
          lines=${[errors]}
          show=${n} />
      </div>
    </section>
  </div>`;
}

/** @param {{s: Admin<'Server'>, write: boolean}} p */
function Config({ s, write }) {
  if (!s.editable)
    return html`
      <p class="notice">
        ${rich('This server is configured in {file}, which yaya does not change: edit it there.', {
          file: html`<code>${plain(s.file)}</code>`,
        })}
      </p>
      <${Form} s=${s} readonly />
    `;
  return html`
    <${Form} s=${s} readonly=${!write} />
    ${write &&
    html`<div class="buttons">
      <${Confirm}
        kind="danger"
        yes=${t('Remove server')}
        ask=${html`
          ${rich('{server} is stopped and taken out of the configuration.', {
            server: html`<b><${Name} text=${s.name} /></b>`,
          })}
        `}
        run=${async () => {
          await api('DELETE', `/api/mcp/servers/${seg(s.name)}`);
          location.hash = href('servers');
        }}>
        <${Icon} of="trash" />
        ${t('Remove server')}
      <//>
    </div>`}
  `;
}
