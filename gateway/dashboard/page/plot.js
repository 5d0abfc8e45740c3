// Plots: lines for levels, bars for counts. Shapes are stretched and words are not; a plot is
// read with the pointer or with the arrow keys.
// @ts-check
import { useRef, useState } from './vendor/hooks.js';
import { Signal } from './state.js';
import { style } from './style.js';
import { HOURS } from './text.js';
import { html } from './ui.js';
import { locale, t } from './words.js';

style('plot');

/** A series of a plot. A gap is null; tone is a class: s1 to s4, or se for errors.
 * @typedef {{name: string, tone: string, values: (number | null)[], fill?: boolean}} Line */

const W = 1000;
const H = 100;

/** Round numbers from zero on, the last one at least max.
 * @param {number} max @returns {number[]} */
export function ticks(max) {
  if (max <= 0) return [0, 1];
  const raw = Math.max(max, 1e-9) / 3;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((n) => n * unit >= raw) ?? 10) * unit;
  const n = Math.max(1, Math.ceil(max / step - 1e-9));
  return Array.from({ length: n + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

const DAY = 86_400_000;

/** Words for the moments of a plot: for its axis, and whole. @param {number[]} times */
function clocks(times) {
  const long = (times.at(-1) ?? 0) - times[0] > 1.5 * DAY;
  const day = /** @type {const} */ ({ month: 'short', day: 'numeric' });
  const time = /** @type {const} */ ({ hour: '2-digit', minute: '2-digit', ...HOURS });
  const words = (/** @type {Intl.DateTimeFormatOptions} */ o) => (/** @type {number} */ at) =>
    new Date(at).toLocaleString(locale(), o);
  const days = times[1] - times[0] > DAY / 2; // a day may have 23 hours
  return {
    axis: words(long ? day : time),
    whole: words(days ? day : long ? { ...day, ...time } : time),
  };
}

/** The path of a line, in pieces between its gaps. @param {Line} l @param {number} top */
function path(l, top) {
  const n = l.values.length;
  let pen = 'M';
  return l.values
    .map((v, i) => {
      if (v === null) {
        pen = 'M';
        return '';
      }
      const at = `${pen}${((i / Math.max(1, n - 1)) * W).toFixed(1)} ${(H - (v / top) * H).toFixed(1)}`;
      pen = 'L';
      return at;
    })
    .join('');
}

/** The areas below a line, one for each piece between its gaps. @param {Line} l @param {number} top */
function wash(l, top) {
  const n = l.values.length;
  const at = (/** @type {number} */ i) => ((i / Math.max(1, n - 1)) * W).toFixed(1);
  let d = '';
  let begun = -1;
  for (let i = 0; i <= n; i++) {
    const v = l.values[i] ?? null;
    if (v === null) {
      if (begun >= 0) d += `L${at(i - 1)} ${H}Z`;
      begun = -1;
      continue;
    }
    if (begun < 0) d += `M${at(i)} ${H}`;
    if (begun < 0) begun = i;
    d += `L${at(i)} ${(H - (v / top) * H).toFixed(1)}`;
  }
  return d;
}

/** The values of a line that stand alone between gaps. @param {Line} l @param {number} top */
function dots(l, top) {
  const n = l.values.length;
  const gap = (/** @type {number} */ i) => (l.values[i] ?? null) === null;
  return l.values
    .map((v, i) =>
      v !== null && gap(i - 1) && gap(i + 1)
        ? `M${((i / Math.max(1, n - 1)) * W).toFixed(1)} ${(H - (v / top) * H).toFixed(1)}h.1`
        : '',
    )
    .join('');
}

/** Bars that stand on each other. @param {Line[]} lines @param {number} top */
function bars(lines, top) {
  const n = lines[0]?.values.length ?? 0;
  const w = W / Math.max(1, n);
  return Array.from({ length: n }, (_, i) => {
    let y = H;
    return lines.map((l) => {
      const h = ((l.values[i] ?? 0) / top) * H;
      if (!h) return null;
      y -= h;
      return html`<rect
        class=${'f ' + l.tone}
        x=${(i * w + w * 0.12).toFixed(1)}
        y=${y.toFixed(1)}
        width=${(w * 0.76).toFixed(1)}
        height=${h.toFixed(1)} />`;
    });
  });
}

/** The largest value that a plot has to show. @param {Line[]} lines @param {boolean} stacked */
function most(lines, stacked) {
  const n = lines[0]?.values.length ?? 0;
  let max = 0;
  for (let i = 0; i < n; i++) {
    const here = lines.map((l) => l.values[i] ?? 0);
    max = Math.max(max, stacked ? here.reduce((a, b) => a + b, 0) : Math.max(...here));
  }
  return max;
}

/** The moment of a plot that is next to a point of time, -1 for none.
 * @param {number[]} times @param {number} at */
function nearest(times, at) {
  if (!at || !times.length) return -1;
  const i = times.findIndex((x) => x >= at);
  if (i < 0) return times.length - 1;
  return i > 0 && at - times[i - 1] < times[i] - at ? i - 1 : i;
}

/** A small line without axes, beside a number that says what it means.
 * @param {{values: (number | null)[], tone: string, label: string, fill?: boolean}} p */
export function Spark({ values, tone, label, fill }) {
  const l = { name: '', tone, values };
  const top = most([l], false) || 1;
  const d = path(l, top * 1.1);
  return html`<svg
    class="spark"
    viewBox=${`0 0 ${W} ${H}`}
    preserveAspectRatio="none"
    role="img"
    aria-label=${label}>
    ${fill && d && html`<path class=${'f wash ' + tone} d=${`${d}L${W} ${H}L0 ${H}Z`} />`}
    <path class=${'line ' + tone} d=${d} />
    <path class=${'line dots ' + tone} d=${dots(l, top * 1.1)} />
  </svg>`;
}

/** The point of time that all plots of a view mark, 0 for none. */
export const useCross = () =>
  (useRef(/** @type {Signal<number> | null} */ (null)).current ??= new Signal(0));

/** A plot with its axes. label says in a sentence what it shows.
 * @param {{times: number[], lines: Line[], show: (n: number) => string, label: string,
 * stacked?: boolean, open?: (i: number) => void, cross?: Signal<number>}} p open opens what lies
 * behind a moment; cross is shared with the other plots of the view */
export function Plot({ times, lines, show, label, stacked = false, open, cross }) {
  const own = useCross();
  const shared = cross ?? own;
  const [here, setHere] = useState(false); // others mark the moment, and this one reads it out
  const marks = ticks(most(lines, stacked));
  const top = marks[marks.length - 1];
  const n = times.length;
  const now = nearest(times, shared.use());
  const setAt = (/** @type {number} */ i) => {
    setHere(i >= 0);
    shared.set(i < 0 ? 0 : times[i]);
  };
  const { axis, whole } = clocks(times);
  const x = stacked ? ((now + 0.5) / n) * W : (now / Math.max(1, n - 1)) * W;
  const move = (/** @type {PointerEvent} */ e) => {
    const box = /** @type {HTMLElement} */ (e.currentTarget).getBoundingClientRect();
    const part = (e.clientX - box.left) / Math.max(1, box.width);
    setAt(
      Math.max(0, Math.min(n - 1, stacked ? Math.floor(part * n) : Math.round(part * (n - 1)))),
    );
  };
  const key = (/** @type {KeyboardEvent} */ e) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (step) setAt(Math.max(0, Math.min(n - 1, (now < 0 ? n : now) + step)));
    else if (e.key === 'Escape' && now >= 0) setAt(-1);
    else if (e.key === 'Enter' && now >= 0 && open) open(now);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const few = Math.min(5, n);
  const said = lines.map((l) => {
    const v = l.values[now];
    return [l, v === null || v === undefined ? '–' : show(v)];
  });
  return html`<div class="chart">
    <div class="y" aria-hidden="true">${marks.map((m) => html`<span>${show(m)}</span>`)}</div>
    <div
      class="area"
      tabindex="0"
      role="group"
      aria-label=${t('{label}. Arrow keys read the values.', { label })}
      onPointerMove=${move}
      onPointerLeave=${() => setAt(-1)}
      onBlur=${() => setAt(-1)}
      onClick=${() => now >= 0 && open?.(now)}
      onKeyDown=${key}>
      <svg viewBox=${`0 0 ${W} ${H}`} preserveAspectRatio="none" role="img" aria-label=${label}>
        ${marks.map((m) => {
          const y = H - (m / top) * H;
          return html`<path class=${m ? 'grid' : 'base'} d=${`M0 ${y.toFixed(1)}H${W}`} />`;
        })}
        ${stacked
          ? bars(lines, top)
          : lines.map((l) => {
              const d = path(l, top);
              return html`
                ${l.fill && html`<path class=${'f wash ' + l.tone} d=${wash(l, top)} />`}
                <path class=${'line ' + l.tone} d=${d} />
                <path class=${'line dots ' + l.tone} d=${dots(l, top)} />
              `;
            })}
        ${now >= 0 && html`<path class="cross" d=${`M${x.toFixed(1)} 0V${H}`} />`}
        ${now >= 0 &&
        !stacked &&
        lines.map((l) => {
          const v = l.values[now] ?? null;
          return (
            v !== null &&
            html`<path
              class=${'line at ' + l.tone}
              d=${`M${x.toFixed(1)} ${(H - (v / top) * H).toFixed(1)}h.1`} />`
          );
        })}
      </svg>
      ${now >= 0 &&
      here &&
      html`<div class=${x > W / 2 ? 'tip left' : 'tip'}>
        <b>${whole(times[now])}</b>
        ${said.map(
          ([l, v]) =>
            html`<span>
              <i class=${'mark ' + /** @type {Line} */ (l).tone}></i>
              ${/** @type {Line} */ (l).name} <b>${v}</b>
            </span>`,
        )}
      </div>`}
      <span class="sr" role="status">
        ${now >= 0 &&
        here &&
        t('{time}: {values}', {
          time: whole(times[now]),
          values: said.map(([l, v]) => `${/** @type {Line} */ (l).name} ${v}`).join(', '),
        })}
      </span>
    </div>
    <div class="x" aria-hidden="true">
      ${Array.from({ length: few }, (_, i) => {
        const k = Math.round((i / Math.max(1, few - 1)) * (n - 1));
        return html`<span>${axis(times[k])}</span>`;
      })}
    </div>
  </div>`;
}

/** The names of the series, with a value each. @param {{lines: [Line, string][]}} p */
export const Legend = ({ lines }) =>
  html`<span class="legend end">
    ${lines.map(
      ([l, v]) => html`<span><i class=${'mark ' + l.tone}></i>${l.name} <b>${v}</b></span>`,
    )}
  </span>`;
