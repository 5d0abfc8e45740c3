// A list that keeps only its visible rows in the document, however long it is. Rows have their
// natural height; measured heights are cached by key.
// @ts-check
import { useEffect, useLayoutEffect, useReducer, useRef } from './vendor/hooks.js';
import { html } from './ui.js';

const GUESS = 64; // px of a row that nobody has seen
const AROUND = 800; // px that are there beyond what is seen
const NEAR = 48; // px from the end that still count as being there

/**
 * @template {{key: string}} T
 * @param {{items: T[], row: (item: T) => Children, label: string, onTop?: () => void,
 * foot?: Children, empty?: Children, sent?: string}} p
 * onTop is called when the oldest row becomes visible. sent is the reader's own last message:
 * sending one scrolls to the end.
 */
export function Virtual({ items, row, label, onTop, foot, empty, sent }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const heights = useRef(/** @type {Map<string, number>} */ (new Map()));
  const s = useRef({
    top: 0,
    height: 600,
    full: 0,
    end: true,
    anchor: '',
    offset: 0,
    ours: -1,
    sent,
  });
  const [, draw] = useReducer((/** @type {number} */ n) => n + 1, 0);
  const watch = useRef(/** @type {ResizeObserver | null} */ (null));

  if (sent && sent !== s.current.sent) {
    s.current.sent = sent;
    s.current.end = true;
  }

  const at = new Array(items.length + 1);
  at[0] = 0;
  for (let i = 0; i < items.length; i++)
    at[i + 1] = at[i] + (heights.current.get(items[i].key) ?? GUESS);
  const total = at[items.length];

  // The position of the view, relative to its first row: rows may have appeared before it.
  let top = s.current.top;
  if (s.current.end) top = Math.max(0, total - s.current.height);
  else if (s.current.anchor) {
    const i = items.findIndex((x) => x.key === s.current.anchor);
    if (i >= 0) top = at[i] + s.current.offset;
  }
  const find = (/** @type {number} */ y) => {
    let lo = 0;
    let hi = items.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (at[mid + 1] < y) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  };
  const from = find(top - AROUND);
  const to = Math.min(items.length, find(top + s.current.height + AROUND) + 1);

  const keep = (/** @type {HTMLElement} */ b) => {
    const i = find(b.scrollTop);
    s.current.anchor = items[i]?.key ?? '';
    s.current.offset = b.scrollTop - (at[i] ?? 0);
  };
  const note = () => {
    const b = box.current;
    if (!b) return;
    const moved = b.clientHeight !== s.current.height || b.scrollHeight !== s.current.full;
    const up = b.scrollTop < s.current.top;
    s.current.top = b.scrollTop;
    s.current.height = b.clientHeight;
    s.current.full = b.scrollHeight;
    // A question that appears next to the list, or a row that grows, scrolls the list, too: the
    // user has not left the end, and the next drawing returns to it.
    if (moved && s.current.end) return;
    // A position that the page set itself tells nothing about the user's intent: rows may have
    // grown since.
    if (Math.abs(b.scrollTop - s.current.ours) < 2) return;
    s.current.end = !up && b.scrollHeight - b.clientHeight - b.scrollTop < NEAR;
    keep(b);
  };
  // Turning the wheel up leaves the end before the list has moved: a slow start would otherwise
  // be scrolled back to the end.
  const wheel = (/** @type {WheelEvent} */ e) => {
    const b = box.current;
    if (!b || e.deltaY >= 0 || b.scrollTop === 0) return;
    s.current.end = false;
    keep(b);
  };
  const measure = () => {
    let changed = false;
    for (const el of box.current?.querySelectorAll('[data-key]') ?? []) {
      const key = /** @type {HTMLElement} */ (el).dataset.key ?? '';
      const h = el.getBoundingClientRect().height;
      if (h > 0 && Math.abs((heights.current.get(key) ?? 0) - h) > 0.5) {
        heights.current.set(key, h);
        changed = true;
      }
    }
    return changed;
  };

  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    const changed = measure();
    if (s.current.end) b.scrollTop = b.scrollHeight;
    else if (Math.abs(b.scrollTop - top) > 1 && s.current.anchor) b.scrollTop = top;
    else return void (changed && draw(0));
    s.current.ours = s.current.top = b.scrollTop;
    s.current.height = b.clientHeight;
    s.current.full = b.scrollHeight;
    if (changed) draw(0);
  });
  useEffect(() => {
    const b = box.current;
    if (!b) return undefined;
    s.current.height = b.clientHeight;
    watch.current = new ResizeObserver(() => draw(0));
    watch.current.observe(b);
    draw(0);
    return () => watch.current?.disconnect();
  }, []);
  useEffect(() => {
    if (from === 0 && onTop && items.length) onTop();
  });

  return html`<div
    class="virtual"
    ref=${box}
    tabindex="0"
    role="log"
    aria-label=${label}
    aria-live="off"
    onWheel=${wheel}
    onScroll=${() => {
      note();
      draw(0);
    }}>
    ${items.length === 0 && empty}
    <div style=${{ height: at[from] + 'px' }}></div>
    ${items
      .slice(from, to)
      .map((x) => html`<div key=${x.key} data-key=${x.key} class="row">${row(x)}</div>`)}
    <div style=${{ height: total - at[to] + 'px' }}></div>
    <div class="foot">${foot}</div>
  </div>`;
}
