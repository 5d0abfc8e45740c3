// Metrics of yaya, as small plots.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { page, useLoaded } from './state.js';
import { ms, size } from './text.js';
import { html, Of, View } from './ui.js';

/** @param {{title: string, values: number[], show: (n: number) => string}} p */
function Plot({ title, values, show }) {
  const w = 320;
  const h = 72;
  const max = Math.max(...values, 1e-9);
  const x = (/** @type {number} */ i) => (values.length < 2 ? w : (i / (values.length - 1)) * w);
  const d = values
    .map((v, i) => `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${(h - 2 - (v / max) * (h - 6)).toFixed(1)}`)
    .join('');
  const now = values.at(-1) ?? 0;
  return html`<figure class="plot">
    <figcaption>
      ${title} <b>${show(now)}</b> <span class="muted">
        at most ${show(Math.max(...values, 0))}
      </span>
    </figcaption>
    <svg
      viewBox=${`0 0 ${w} ${h}`}
      role="img"
      aria-label=${`${title}: ${show(now)} now, at most ${show(Math.max(...values, 0))}`}
      preserveAspectRatio="none">
      <path class="area" d=${d && `${d}L${w} ${h}L${x(0)} ${h}Z`} />
      <path class="line" d=${d} />
    </svg>
  </figure>`;
}

export default function Metrics() {
  const past = useLoaded('/api/metrics', []);
  const [more, setMore] = useState(/** @type {Admin<'Reading'>[]} */ ([]));
  useEffect(() => {
    const c = page.live?.join('dashboard:metrics', {
      event: (name, p) => name === 'reading' && setMore((all) => [...all, p.reading].slice(-360)),
    });
    return () => c?.leave();
  }, []);
  return html`<${View}
    title="Metrics"
    lead="The last half hour, one sample every five seconds. Programs can read the same data at /metrics.">
    <${Of} of=${past}>
      ${(/** @type {Admin<'Reading'>[]} */ d) => {
        const at = d.at(-1)?.ts ?? '';
        const all = [...d, ...more.filter((r) => r.ts > at)].slice(-360);
        const rate = (/** @type {'calls' | 'errors' | 'cpu_seconds'} */ k) =>
          all.map((r, i) =>
            i
              ? Math.max(0, r[k] - all[i - 1][k]) /
                Math.max(0.001, (Date.parse(r.ts) - Date.parse(all[i - 1].ts)) / 1000)
              : 0,
          );
        const per = (/** @type {number} */ n) => n.toFixed(n < 10 ? 2 : 0) + '/s';
        const count = (/** @type {number} */ n) => String(Math.round(n));
        return html`<div class="plots">
          <${Plot} title="Tool calls" values=${rate('calls')} show=${per} />
          <${Plot} title="Failed calls" values=${rate('errors')} show=${per} />
          <${Plot} title="Median call" values=${all.map((r) => r.p50_ms)} show=${ms} />
          <${Plot} title="p95 call" values=${all.map((r) => r.p95_ms)} show=${ms} />
          <${Plot}
            title="Working servers"
            values=${all.map((r) => r.servers_ready)}
            show=${count} />
          <${Plot} title="MCP sessions" values=${all.map((r) => r.mcp_sessions)} show=${count} />
          <${Plot} title="WebSockets" values=${all.map((r) => r.websockets)} show=${count} />
          <${Plot} title="Goroutines" values=${all.map((r) => r.goroutines)} show=${count} />
          <${Plot} title="Memory" values=${all.map((r) => r.rss_bytes)} show=${size} />
          <${Plot}
            title="CPU"
            values=${rate('cpu_seconds')}
            show=${(/** @type {number} */ n) => (n * 100).toFixed(0) + ' %'} />
        </div>`;
      }}
    <//>
  <//>`;
}
