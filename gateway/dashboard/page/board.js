// The traffic on the home view: sums, the calls of the last hour, the last ones, clients. It
// comes after the rest: most visits are for what needs somebody.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { Calls } from './calls.js';
import { Legend, Plot, Spark } from './plot.js';
import { href, may, useLoaded } from './state.js';
import { ms, stateWord } from './text.js';
import { Empty, html, Icon, Name } from './ui.js';
import { count, locale, rich, t } from './words.js';

/** @typedef {Admin<'Series'>} Series */

/** @param {Admin<'Server'>} s */
const works = (s) => s.state === 'ready' || s.state === 'degraded';

const number = (/** @type {number} */ n) => n.toLocaleString(locale());

/** How many of the servers are ready, as a bar. @param {{all: Admin<'Server'>[]}} p */
function Meter({ all }) {
  const of = (/** @type {(s: Admin<'Server'>) => boolean} */ f) => all.filter(f).length;
  const bad = of((s) => s.state === 'failed' || s.state === 'invalid');
  const off = of((s) => s.state === 'disabled' || s.state === 'stopped');
  const good = of(works);
  let x = 0;
  return html`<svg
    class="meter"
    viewBox="0 0 120 6"
    preserveAspectRatio="none"
    role="img"
    aria-label=${t('{good} ready, {bad} failed, {off} off', { good, bad, off })}>
    ${[
      ['sok', good],
      ['swarn', all.length - good - bad - off],
      ['se', bad],
      ['soff', off],
    ].map(([tone, n]) => {
      const w = (Number(n) / Math.max(1, all.length)) * 120;
      x += w;
      return w > 0 && html`<rect class=${'f ' + tone} x=${x - w} width=${w} height="6" />`;
    })}
  </svg>`;
}

/** @param {{servers: Admin<'Server'>[] | undefined, hour: Series | undefined}} p */
function Sums({ servers, hour }) {
  const sum = hour?.total;
  const worst = hour?.groups.reduce((a, b) => (b.errors > a.errors ? b : a), hour.groups[0]);
  return html`<div class="sums">
    ${servers &&
    html`<a href=${href('servers')}>
      <span class="k"><${Icon} of="server" />${t('Servers ready')}</span>
      <span class="v">
        ${servers.filter(works).length} <small>${t('of {n}', { n: servers.length })}</small>
      </span>
      <${Meter} all=${servers} />
    </a>`}
    ${hour &&
    sum &&
    html`
      <a href=${href('traffic', 'last:60')}>
        <span class="k"><${Icon} of="traffic" />${t('Calls, last hour')}</span>
        <span class="v">${number(sum.calls)}</span>
        <${Spark}
          tone="s1"
          fill
          label=${t('Calls by minute')}
          values=${hour.slices.map((s) => s.calls)} />
      </a>
      <a href=${href('traffic', 'failed last:60')}>
        <span class="k"><${Icon} of="error" />${t('Failed')}</span>
        <span class="v">
          ${sum.calls ? ((sum.errors / sum.calls) * 100).toFixed(1) + ' %' : '–'}
          ${worst &&
          worst.errors > 0 &&
          html`<small class="bad">
            ${rich('{n} of {all} in {server}', {
              n: worst.errors,
              all: sum.errors,
              server: html`<${Name} text=${worst.name || 'yaya'} max=${24} />`,
            })}
          </small>`}
        </span>
        <${Spark}
          tone="se"
          label=${t('Failed calls by minute')}
          values=${hour.slices.map((s) => s.errors)} />
      </a>
      <a href=${href('metrics')} title=${t('95 % of the calls took at most that long')}>
        <span class="k"><${Icon} of="clock" />p95</span>
        <span class="v">
          ${sum.calls ? ms(sum.p95_ms) : '–'}
          ${sum.calls > 0 && html`<small>${t('median {time}', { time: ms(sum.p50_ms) })}</small>`}
        </span>
        <${Spark}
          tone="s2"
          label=${t('p95 by minute')}
          values=${hour.slices.map((s) => (s.calls ? s.p95_ms : null))} />
      </a>
    `}
  </div>`;
}

/** @param {{hour: Series}} p */
function Traffic({ hour }) {
  const failed = { name: t('failed'), tone: 'se', values: hour.slices.map((s) => s.errors) };
  const good = {
    name: t('answered'),
    tone: 's1',
    values: hour.slices.map((s) => s.calls - s.errors),
  };
  const sum = hour.total;
  return html`<section class="box" aria-label=${t('Calls')}>
    <header>
      <h2>${t('Calls')}</h2>
      <span class="faint">${t('a minute')}</span>
      <${Legend} lines=${[
        [good, number(sum.calls - sum.errors)],
        [failed, number(sum.errors)],
      ]} />
    </header>
    <div class="body">
      <${Plot}
        stacked
        label=${t('Calls by minute in the last hour')}
        times=${hour.slices.map((s) => Date.parse(s.ts))}
        lines=${[good, failed]}
        show=${number} />
    </div>
  </section>`;
}

/** The last calls, as they end. @param {{calls: Admin<'Record'>[]}} p */
function Now({ calls }) {
  return html`<section class="box" aria-label=${t('Last calls')}>
    <header>
      <h2>${t('Last calls')}</h2>
      <a class="end" href=${href('traffic')}>${t('Traffic')}</a>
    </header>
    ${calls.length
      ? html`<ul class="rows tight">
          ${calls.map(
            (/** @type {Admin<'Record'>} */ c) =>
              html`<li key=${c.id}>
                <span class=${c.outcome === 'ok' ? 'dot good' : 'dot bad'}></span>
                <span class="cut grow">
                  <span class="faint"><${Name} text=${c.server || 'yaya'} max=${32} /></span>
                  ${' '}
                  <${Name} text=${c.tool} max=${60} />
                </span>
                <small class=${c.outcome === 'ok' ? 'faint nw' : 'bad nw'}>
                  ${c.outcome === 'ok' ? ms(c.took_ms) : stateWord(c.outcome)}
                </small>
              </li>`,
          )}
        </ul>`
      : html`<${Empty}>${t('No calls are recorded yet.')}<//>`}
  </section>`;
}

/** @param {{list: Admin<'Group'>[], connected: number | undefined}} p */
const Clients = ({ list, connected }) =>
  html`<section class="box" aria-label=${t('Clients')}>
    <header>
      <h2>${t('Clients')}</h2>
      <span class="faint">${t('last hour')}</span>
      ${connected !== undefined &&
      html`<span class="faint end">
        ${count(connected, '{n} MCP session', '{n} MCP sessions')}
      </span>`}
    </header>
    ${list.length
      ? html`<ul class="rows tight">
          ${list
            .slice(0, 6)
            .map(
              (g) =>
                html`<li key=${g.name}>
                  <span class="cut grow">
                    <${Name} text=${g.name || t('yaya’s own agents and page')} max=${48} />
                  </span>
                  <small class="faint nw">${count(g.calls, '{n} call', '{n} calls')}</small>
                  ${g.errors > 0 &&
                  html`<small class="bad nw">${t('{n} failed', { n: g.errors })}</small>`}
                </li>`,
            )}
        </ul>`
      : html`<${Empty}>
          ${rich('No client has called in the last hour. {connect}', {
            connect: html`<a href=${href('start')}>${t('Connect one')}</a>`,
          })}
        <//>`}
  </section>`;

/** The last calls and the sums of the last hour, which follow each other.
 * @returns {{calls: Admin<'Record'>[], hour: Series | undefined, clients: Series | undefined}} */
function useTraffic() {
  const on = may('audit:read');
  const [calls, setCalls] = useState(/** @type {Admin<'Record'>[]} */ ([]));
  const hour = useLoaded(on ? '/api/traffic/series?by=server' : null, []);
  const clients = useLoaded(on ? '/api/traffic/series?by=client' : null, []);
  const last = calls[0]?.id;
  useEffect(() => {
    if (!on) return undefined;
    const c = new Calls({}, 6, () => setCalls(c.list.slice(-6).reverse()));
    return () => c.close();
  }, [on]);
  useEffect(() => {
    if (!last) return undefined;
    const timer = setTimeout(() => {
      hour.reload();
      clients.reload();
    }, 2000);
    return () => clearTimeout(timer);
  }, [last]);
  return { calls, hour: hour.data, clients: clients.data };
}

/** The home view with its traffic, around the parts that come without it.
 * @param {{servers: Admin<'Server'>[] | undefined, connected: number | undefined,
 * left: Children, below: Children, right: Children}} p */
export function Board({ servers, connected, left, below, right }) {
  const { calls, hour, clients } = useTraffic();
  return html`
    <${Sums} servers=${servers} hour=${hour} />
    <div class="cols c21">
      <div class="col">${left} ${hour && html`<${Traffic} hour=${hour} />`} ${below}</div>
      <div class="col">
        ${right} ${hour && html`<${Now} calls=${calls} />`}
        ${clients && html`<${Clients} list=${clients.groups} connected=${connected} />`}
      </div>
    </div>
  `;
}
