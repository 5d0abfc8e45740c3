// A list of calls that keeps only its visible rows in the document. New rows wait while somebody
// reads.
// @ts-check
import { useEffect, useLayoutEffect, useRef, useState } from './vendor/hooks.js';
import { exact, ms, size, stateWord } from './text.js';
import { html, Name } from './ui.js';
import { count, t } from './words.js';

/** @typedef {Admin<'Record'>} Call */

const AROUND = 12; // rows beyond the visible ones

/** The outcome of a call as a state. @param {Call} c */
export const toneOf = (c) =>
  c.outcome === 'ok' ? 'good' : ['cancelled', 'canceled'].includes(c.outcome) ? 'off' : 'bad';

/** The outcome of a call in words. @param {Call} c */
export const outcomeOf = (c) => (c.outcome === 'ok' ? t('OK') : stateWord(c.outcome));

/** @param {string} at */
export function exactly(at) {
  const d = new Date(at);
  return `${d.toLocaleTimeString('en-GB')}.${String(d.getMilliseconds()).padStart(3, '0')}`;
}

/** @param {{calls: import('./calls.js').Calls, open: string, choose: (id: number) => void}} p */
export function List({ calls, open, choose }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [at, setAt] = useState({ top: 0, height: 600, row: 36 });
  const [active, setActive] = useState(Number(open) || 0);
  const [over, setOver] = useState(false);
  // The newest call that is shown: the others wait while the pointer is in the list, or while it
  // is not at its beginning.
  const until = useRef(0);
  const newest = calls.list.at(-1)?.id ?? 0;
  if (!until.current || (!over && at.top < at.row)) until.current = newest;
  let end = calls.list.length;
  while (end > 0 && calls.list[end - 1].id > until.current) end--;
  const waiting = calls.list.length - end;
  const call = (/** @type {number} */ i) => calls.list[end - 1 - i];
  const from = Math.max(0, Math.floor(at.top / at.row) - AROUND);
  const to = Math.min(end, Math.ceil((at.top + at.height) / at.row) + AROUND);
  const look = () => {
    const b = box.current;
    if (!b) return;
    const row = b.querySelector('[role="option"]')?.getBoundingClientRect().height || 36;
    setAt({ top: b.scrollTop, height: b.clientHeight, row });
    if (b.scrollTop + b.clientHeight > b.scrollHeight - 20 * row) void calls.older();
  };
  useLayoutEffect(look, [end === 0]);
  useEffect(() => {
    const o = new ResizeObserver(look);
    if (box.current) o.observe(box.current);
    return () => o.disconnect();
  }, []);
  const index = () => {
    for (let i = 0; i < end; i++) if (call(i).id === active) return i;
    return -1;
  };
  const key = (/** @type {KeyboardEvent} */ e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[e.key];
    const now = index();
    const i = step
      ? Math.max(0, Math.min(end - 1, now + step))
      : e.key === 'Home'
        ? 0
        : e.key === 'End'
          ? end - 1
          : -1;
    const b = box.current;
    if (i >= 0 && b) {
      setActive(call(i).id);
      if (i * at.row < b.scrollTop) b.scrollTop = i * at.row;
      else if ((i + 1) * at.row > b.scrollTop + b.clientHeight)
        b.scrollTop = (i + 1) * at.row - b.clientHeight;
    } else if (e.key === 'Enter' && now >= 0) choose(active);
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  const rows = [];
  for (let i = from; i < to; i++) rows.push(call(i));
  return html`<div
    class="calls"
    onPointerEnter=${() => setOver(true)}
    onPointerLeave=${() => setOver(false)}>
    ${waiting > 0 &&
    html`<button
      type="button"
      class="small fresh"
      onClick=${() => {
        until.current = newest;
        if (box.current) box.current.scrollTop = 0;
        look();
      }}>
      ${count(waiting, '{n} new call', '{n} new calls')}
    </button>`}
    <div
      class="scroller"
      ref=${box}
      role="listbox"
      aria-label=${t('Calls, newest first')}
      tabindex="0"
      aria-activedescendant=${rows.some((c) => c.id === active) ? `f${active}` : undefined}
      onScroll=${look}
      onKeyDown=${key}>
      <div role="presentation" style=${{ height: from * at.row + 'px' }}></div>
      ${rows.map(
        (c) =>
          html`<div
            key=${c.id}
            id=${`f${c.id}`}
            role="option"
            aria-selected=${String(c.id) === open}
            class=${c.id === active ? 'call active' : 'call'}
            onClick=${() => {
              setActive(c.id);
              choose(c.id);
            }}>
            <span class="faint" title=${exact(c.time)}>${exactly(c.time)}</span>
            <span class="cut who"><${Name} text=${c.client || c.origin} max=${40} /></span>
            <span class="cut what">
              <span class="faint"><${Name} text=${c.server || 'yaya'} max=${40} /></span>
              ${' '}
              <${Name} text=${c.tool} max=${80} />
            </span>
            <span class="num">${ms(c.took_ms)}</span>
            <span class="num faint size">${size(c.result_bytes)}</span>
            <span class=${'state ' + toneOf(c)}>
              <span class=${'dot ' + toneOf(c)}></span>
              <span class="cap cut">${outcomeOf(c)}</span>
            </span>
          </div>`,
      )}
      <div role="presentation" style=${{ height: (end - to) * at.row + 'px' }}></div>
    </div>
    <p class="faint foot">
      ${calls.more
        ? count(end, '{n} call, older ones as you scroll', '{n} calls, older ones as you scroll')
        : count(end, '{n} call', '{n} calls')}
    </p>
  </div>`;
}
