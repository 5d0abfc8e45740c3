// Metrics: calls, their times, and how yaya itself is doing, for half an hour to thirty days.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { Copy } from './copy.js';
import { byTime, levels, rates, WINDOWS } from './readings.js';
import { Legend, Plot, useCross } from './plot.js';
import { Groups } from './metricgroups.js';
import { go, may, page, useLoaded } from './state.js';
import { style } from './style.js';
import { ms } from './text.js';
import { worded } from './traffic.js';
import { Empty, html, Name, Of, typed, View } from './ui.js';
import { locale, t } from './words.js';

style('servers');
style('metrics');

/** @typedef {import('./readings.js').Window} Window
 * @typedef {import('./plot.js').Line} Line
 * @typedef {{lines: Line[], times: number[], show: (n: number) => string}} Shown */

const RELOAD = 10_000; // ms between two loads of the calls while they grow

/** @param {number} n */
const number = (n) => n.toLocaleString(locale(), { maximumFractionDigits: n < 10 ? 2 : 0 });
/** @param {number} n */
const mib = (n) => `${number(n)} MiB`;
/** @param {number} n */
const percent = (n) => `${number(n)} %`;

/** A plot in its box. The legend has the newest values, or those that are given.
 * @param {Shown & {title: string, label: string, cross: ReturnType<typeof useCross>,
 * stacked?: boolean, open?: (i: number) => void, now?: string[]}} p */
function Chart({ title, label, times, lines, show, cross, stacked, open, now }) {
  const newest = (/** @type {Line} */ l) => l.values.findLast((v) => v !== null) ?? null;
  return html`<section class="box" aria-label=${title}>
    <header>
      <h2>${title}</h2>
      <${Legend} lines=${lines.map((l, i) => {
        const v = newest(l);
        return [l, now ? now[i] : v === null ? '–' : show(v)];
      })} />
    </header>
    <div class="body">
      <${Plot}
        label=${label}
        times=${times}
        lines=${lines}
        show=${show}
        cross=${cross}
        stacked=${stacked}
        open=${open} />
    </div>
  </section>`;
}

/** The calls of a window, which are read again as they grow: a reading says that they have.
 * @param {Window} w @param {string} server @param {string} by @param {number} calls */
function useSeries(w, server, by, calls) {
  const q = new URLSearchParams({ ...w.series, by });
  if (server) q.set('server', server);
  const of = useLoaded(may('audit:read') ? `/api/traffic/series?${q.toString()}` : null, []);
  useEffect(() => {
    const timer = setTimeout(of.reload, RELOAD);
    return () => clearTimeout(timer);
  }, [calls]);
  return of;
}

/** @param {{of: Admin<'Series'>, w: Window, server: string,
 * cross: ReturnType<typeof useCross>}} p */
function Calls({ of, w, server, cross }) {
  const times = of.slices.map((s) => Date.parse(s.ts));
  const from = Date.parse(of.from);
  const known = (/** @type {number} */ i) => !of.partial || times[i] >= from;
  const values = (/** @type {(s: Admin<'Slice'>) => number | null} */ f) =>
    of.slices.map((s, i) => (known(i) ? f(s) : null));
  const open = (/** @type {number} */ i) =>
    go(
      'traffic',
      worded({
        ...(server && { server }),
        span: 0,
        since: new Date(times[i]).toISOString(),
        until: new Date(times[i + 1] ?? Date.now()).toISOString(),
      }),
    );
  const { calls, errors, p50_ms, p95_ms, p99_ms } = of.total;
  return html`
    <${Chart}
      title=${t('Calls')}
      label=${t('Calls by time')}
      stacked
      cross=${cross}
      open=${may('audit:read') ? open : undefined}
      times=${times}
      lines=${[
        { name: t('answered'), tone: 's1', values: values((s) => s.calls - s.errors) },
        { name: t('failed'), tone: 'se', values: values((s) => s.errors) },
      ]}
      now=${[number(calls - errors), number(errors)]}
      show=${number} />
    <${Chart}
      title=${t('Time to answer')}
      label=${t('Time to answer by time')}
      cross=${cross}
      open=${open}
      times=${times}
      lines=${[
        { name: 'p50', tone: 's1', values: values((s) => (s.calls ? s.p50_ms : null)) },
        { name: 'p95', tone: 's2', values: values((s) => (s.calls ? s.p95_ms : null)) },
        { name: 'p99', tone: 's3', values: values((s) => (s.calls ? s.p99_ms : null)) },
      ]}
      now=${calls ? [ms(p50_ms), ms(p95_ms), ms(p99_ms)] : ['–', '–', '–']}
      show=${ms} />
  `;
}

/** yaya's own process. @param {{all: Admin<'Reading'>[], w: Window,
 * cross: ReturnType<typeof useCross>}} p */
function Process({ all, w, cross }) {
  const { times, slots } = byTime(all, w, Date.now());
  const shown = [
    {
      title: t('Memory'),
      label: t('Resident memory by time'),
      lines: [
        {
          name: t('resident'),
          tone: 's2',
          fill: true,
          values: levels(slots, (r) => r.rss_bytes / 2 ** 20),
        },
      ],
      show: mib,
    },
    {
      title: t('CPU'),
      label: t('CPU time by time'),
      lines: [
        {
          name: t('of one core'),
          tone: 's1',
          fill: true,
          values: rates(slots, (r) => r.cpu_seconds * 100),
        },
      ],
      show: percent,
    },
    {
      title: t('Servers and sessions'),
      label: t('Servers that work, and MCP sessions, by time'),
      lines: [
        { name: t('servers ready'), tone: 's2', values: levels(slots, (r) => r.servers_ready) },
        { name: t('MCP sessions'), tone: 's1', values: levels(slots, (r) => r.mcp_sessions) },
      ],
      show: number,
    },
    {
      title: t('Tokens a minute'),
      label: t('Tokens of models a minute, by time'),
      lines: [
        { name: t('to models'), tone: 's1', values: rates(slots, (r) => r.tokens_in * 60) },
        { name: t('from models'), tone: 's4', values: rates(slots, (r) => r.tokens_out * 60) },
      ],
      show: number,
    },
  ];
  return shown.map((s) => html`<${Chart} key=${s.title} ...${s} times=${times} cross=${cross} />`);
}

/** @param {{w: Window, server: string}} p */
function Filters({ w, server }) {
  const servers = useLoaded(may('config:read') ? '/api/mcp/servers' : null, ['servers']).data;
  return html`
    <span class="seg" role="group" aria-label=${t('Time')}>
      ${WINDOWS.map(
        (x) =>
          html`<button
            type="button"
            aria-pressed=${x === w}
            onClick=${() => go('metrics', x.at, ...(server ? [server] : []))}>
            ${x.title}
          </button>`,
      )}
    </span>
    ${servers &&
    html`<select
      class="pick"
      aria-label=${t('Server')}
      onChange=${typed((v) => go('metrics', w.at, ...(v ? [v] : [])))}>
      <option value="" selected=${!server}>${t('All servers')}</option>
      ${servers.map(
        (s) =>
          html`<option value=${s.name} selected=${s.name === server}>
            <${Name} text=${s.name} max=${48} />
          </option>`,
      )}
    </select>`}
  `;
}

/** @param {{rest: string[]}} p */
export default function Metrics({ rest: [at = '', server = ''] }) {
  const w = WINDOWS.find((x) => x.at === at) ?? WINDOWS[0];
  const past = useLoaded(`/api/metrics?window=${w.at}`, []);
  const [more, setMore] = useState(/** @type {Admin<'Reading'>[]} */ ([]));
  const [by, setBy] = useState(server ? 'tool' : 'server');
  const cross = useCross();
  useEffect(() => {
    const c = page.live?.join('dashboard:metrics', {
      event: (name, p) => name === 'reading' && setMore((all) => [...all, p.reading].slice(-360)),
    });
    return () => c?.leave();
  }, []);
  const series = useSeries(w, server, by, more.at(-1)?.calls ?? 0);
  return html`<${View}
    title=${t('Metrics')}
    actions=${html`
      <span class="faint nophone mono">GET /metrics</span>
      <span class="nophone">
        <${Copy} text=${location.origin + '/metrics'} label=${t('Copy address')} />
      </span>
    `}>
    <div class="filters"><${Filters} w=${w} server=${server} /></div>
    <div class="cols c11">
      ${may('audit:read')
        ? html`<${Of} of=${series}>
            ${(/** @type {Admin<'Series'>} */ d) =>
              html`<${Calls} of=${d} w=${w} server=${server} cross=${cross} />`}
          <//>`
        : html`<${Empty} icon="lock">
            ${t('Calls are shown to those who may read the audit log.')}
          <//>`}
      ${!server &&
      html`<${Of} of=${past}>
        ${(/** @type {Admin<'Reading'>[]} */ d) => {
          const last = d.at(-1)?.ts ?? '';
          return html`<${Process}
            all=${d.concat(more.filter((r) => r.ts > last))}
            w=${w}
            cross=${cross} />`;
        }}
      <//>`}
    </div>
    ${series.data &&
    html`<${Groups} of=${series.data} by=${by} set=${setBy} w=${w} server=${server} />`}
    <p class="faint">
      ${!server && t('Memory, CPU, servers, sessions and tokens are known since yaya was started.')}
      ${' '}
      ${series.data?.partial &&
      t('There were more calls than a view reads: the earliest are missing.')}
    </p>
  <//>`;
}
