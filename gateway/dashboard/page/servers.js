// The list of MCP servers: those with problems first.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { changesOf, TROUBLE } from './attention.js';
import { Server } from './server.js';
import { New } from './serverform.js';
import { href, may, useLoaded } from './state.js';
import { style } from './style.js';
import { ms, plain } from './text.js';
import { Ticks } from './ticks.js';
import { Tile } from './tile.js';
import { Do, Empty, html, Icon, Name, Of, State, typed, View } from './ui.js';
import { count, rich, t } from './words.js';

style('plot');
style('servers');

/** The parts of the list.
 * @type {{word: string, has: (s: Admin<'Server'>) => boolean}[]} */
const PARTS = [
  { word: t('All'), has: () => true },
  { word: t('Ready'), has: (s) => s.state === 'ready' },
  { word: t('Trouble'), has: (s) => TROUBLE.includes(s.state) || s.state === 'waiting' },
  { word: t('Off'), has: (s) => s.state === 'disabled' || s.state === 'stopped' },
];

/** @param {Admin<'Server'>} s */
const rank = (s) =>
  ['failed', 'invalid', 'degraded', 'waiting', 'starting', 'installing', 'ready'].indexOf(s.state) +
    1 || 9;

/** @param {{rest: string[]}} p */
export default function Servers({ rest: [name, part] }) {
  const servers = useLoaded('/api/mcp/servers', ['servers']);
  if (!name && part === 'new' && may('config:write')) return html`<${New} />`;
  const one = name ? servers.data?.find((s) => s.name === name) : null;
  if (name && servers.data && !one)
    return html`<${View} title=${name}>
      <${Empty} icon="server">
        ${t('Server not found.')} <a href=${href('servers')}>${t('All servers')}</a>
      <//>
    <//>`;
  if (one) return html`<${Server} key=${name} s=${one} part=${part ?? ''} />`;
  return html`<${List} of=${servers} />`;
}

/** @param {{of: import('./state.js').Loaded<Admin<'Server'>[]>}} p */
function List({ of }) {
  const [filter, setFilter] = useState('');
  const [part, setPart] = useState(PARTS[0]);
  const write = may('config:write');
  const waiting = useLoaded('/api/mcp/quarantine', ['quarantine', 'servers']).data ?? [];
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = (of.data ?? [])
    .filter(part.has)
    .filter((s) => words.every((w) => `${s.name} ${s.endpoint}`.toLowerCase().includes(w)))
    .sort((a, b) => rank(a) - rank(b));
  return html`<${View}
    title=${t('Servers')}
    actions=${write &&
    html`
      <a class="button" href=${href('start')}><${Icon} of="download" />${t('Import')}</a>
      <a class="button nophone" href=${href('catalogue')}>
        <${Icon} of="catalogue" />
        ${t('Catalogue')}
      </a>
      <a class="button primary" href=${href('servers', '', 'new')}>
        <${Icon} of="plus" />
        ${t('Add a server')}
      </a>
    `}>
    <${Of} of=${of}>
      ${(/** @type {Admin<'Server'>[]} */ d) =>
        d.length === 0
          ? html`<${Empty} icon="server">
              ${rich('No servers are configured. {bring}, or add one.', {
                bring: html`<a href=${href('start')}>
                  ${t('Import those of your other clients')}
                </a>`,
              })}
            <//>`
          : html`
              <div class="filters">
                <input
                  type="search"
                  class="narrow"
                  aria-label=${t('Filter servers')}
                  placeholder=${t('Filter servers')}
                  value=${filter}
                  onInput=${typed(setFilter)} />
                <div class="seg" role="group" aria-label=${t('Show')}>
                  ${PARTS.map(
                    (p) =>
                      html`<button
                        type="button"
                        aria-pressed=${p === part}
                        onClick=${() => setPart(p)}>
                        ${t('{part} {n}', { part: p.word, n: d.filter(p.has).length })}
                      </button>`,
                  )}
                </div>
              </div>
              ${rows.length
                ? html`<${Rows} rows=${rows} write=${write} waiting=${waiting} />`
                : html`<${Empty}>${t('No servers match.')}<//>`}
            `}
    <//>
  <//>`;
}

/** A table in its box: where it is narrow, its rows have two lines.
 * @param {{rows: Admin<'Server'>[], write: boolean, waiting: Admin<'Waiting'>[]}} p */
const Rows = ({ rows, write, waiting }) =>
  html`<div class="box">
    <table class="list" role="table" aria-label=${t('Servers')}>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader">${t('Server')}</th>
          <th role="columnheader">${t('State')}</th>
          <th role="columnheader" class="wide">${t('Last 24 hours')}</th>
          <th role="columnheader" class="num">${t('Calls')}</th>
          <th role="columnheader" class="num">p50</th>
          <th role="columnheader" class="num">p95</th>
          <th role="columnheader" class="num">${t('Errors')}</th>
          <th role="columnheader" class="num">${t('Tools')}</th>
          <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (s) => html`<${Row}
            key=${s.name}
            s=${s}
            write=${write}
            waits=${waiting.find((w) => w.server === s.name)} />`,
        )}
      </tbody>
    </table>
  </div>`;

/** @param {{s: Admin<'Server'>, write: boolean, waits?: Admin<'Waiting'>}} p */
function Row({ s, write, waits }) {
  const off = s.state === 'disabled';
  const rate = s.calls.total ? (s.calls.errors / s.calls.total) * 100 : 0;
  const first = html`<tr role="row" class=${s.reason ? 'more' : ''}>
    <td role="cell" class="p1">
      <span class="flex">
        <${Tile} name=${s.name} />
        <span class="two">
          <a class="strong" href=${href('servers', s.name)}><${Name} text=${s.name} max=${64} /></a>
          <small class="cut run"><code><${Name} text=${s.endpoint} max=${120} /></code></small>
        </span>
      </span>
    </td>
    <td role="cell" class="p2"><${State} state=${s.state} /></td>
    <td role="cell" class="wide"><${Ticks} s=${s} /></td>
    <td role="cell" class="num">${s.calls.total}</td>
    <td role="cell" class="num">${s.calls.total ? ms(s.calls.p50_ms) : '–'}</td>
    <td role="cell" class="num">${s.calls.total ? ms(s.calls.p95_ms) : '–'}</td>
    <td role="cell" class=${rate ? 'num bad' : 'num'}>
      ${s.calls.total ? `${rate.toFixed(rate && rate < 10 ? 1 : 0)} %` : '–'}
    </td>
    <td role="cell" class="num">${s.tools}</td>
    <td role="cell" class="p3">
      <span class="flex">
        ${waits &&
        html`<a class="button small" href=${href('servers', s.name, 'trust')}>
          ${count(changesOf(waits), 'Compare {n} change', 'Compare {n} changes')}
        </a>`}
        ${write &&
        TROUBLE.includes(s.state) &&
        html`<${Do}
          kind="small"
          label=${t('Restart {server}', { server: plain(s.name) })}
          run=${() => api('POST', `/api/mcp/servers/${seg(s.name)}/restart`)}>
          ${t('Restart')}
        <//>`}
        ${write &&
        off &&
        s.editable &&
        html`<${Do}
          kind="small"
          label=${t('Turn on {server}', { server: plain(s.name) })}
          run=${() => api('PATCH', `/api/mcp/servers/${seg(s.name)}`, { enabled: true })}>
          ${t('Turn on')}
        <//>`}
      </span>
    </td>
  </tr>`;
  if (!s.reason) return first;
  return html`
    ${first}
    <tr role="row" class="why">
      <td role="cell" colspan="9">
        <small class=${TROUBLE.includes(s.state) ? 'bad' : 'faint'}>
          <${Name} text=${s.reason} max=${240} />
        </small>
      </td>
    </tr>
  `;
}
