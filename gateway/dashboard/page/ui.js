// What all views are made of. Text becomes text nodes and nothing else: no view makes
// markup of strings, and the page's policy (Trusted Types) would not let it.
// @ts-check
import { cloneElement, h, toChildArray } from './vendor/preact.js';
import { useEffect, useRef, useState } from './vendor/hooks.js';
import htm from './vendor/htm.js';

export const html = htm.bind(h);

/** How long a button that lets something run waits before it can be pressed: what was
 * typed or clicked before the question could be read is no answer to it (UI-07). */
export const ARMING = 500;

/** @typedef {import('./vendor/preact.js').ComponentChildren} Children */

/** Characters that are not seen, or change how others are: control characters,
 * directional marks, tags, joiners. They are shown as what they are.
 * @param {unknown} s @param {boolean} [lines] keeps line breaks and tabs
 * @returns {string} */
export function plain(s, lines) {
  return String(s ?? '').replace(/[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u{e0000}-\u{e007f}]/gu, (c) =>
    lines && (c === '\n' || c === '\t') ? c : '\\u{' + (c.codePointAt(0) ?? 0).toString(16) + '}');
}

/** The same for prose, which may have joiners: emoji and many scripts need them.
 * @param {unknown} s @returns {string} */
export function prose(s) {
  return String(s ?? '').replace(/[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\u{e0000}-\u{e007f}]/gu, (c) =>
    c === '\n' || c === '\t' ? c : c === '\r' ? '' : '\\u{' + (c.codePointAt(0) ?? 0).toString(16) + '}');
}

/** A name or a short text of somebody else's, on one line, isolated from its
 * surroundings.
 * @param {{text: unknown, max?: number}} p */
export function Name({ text, max = 160 }) {
  const s = plain(text);
  return html`<bdi>${s.length > max ? s.slice(0, max) + '…' : s}</bdi>`;
}

/** @param {unknown} v @returns {string} */
export function pretty(v) {
  try {
    return plain(JSON.stringify(v, null, 2) ?? '', true);
  } catch {
    return '';
  }
}

const CUT = 64 * 1024;

/** Preformatted text; what is long is cut until somebody wants it.
 * @param {{text: string, label?: string, all?: boolean, diff?: boolean}} p */
export function Pre({ text, label, all, diff }) {
  const [whole, setWhole] = useState(false);
  const cut = !all && !whole && text.length > CUT;
  const shown = cut ? text.slice(0, CUT) : text;
  return html`<pre class=${diff ? 'diff' : ''} tabindex="0" role=${label ? 'group' : undefined} aria-label=${label}>${diff ? lines(shown) : shown}</pre>
    ${cut && html`<button class="link" onClick=${() => setWhole(true)}>Show all ${size(text.length)}</button>`}`;
}

/** @param {string} text */
function lines(text) {
  return text.split('\n').map((l) => {
    const kind = l.startsWith('+') ? 'ins' : l.startsWith('-') ? 'del' : l.startsWith('@@') ? 'hunk' : '';
    return kind ? html`<span class=${kind}>${l + '\n'}</span>` : l + '\n';
  });
}

/** @param {number} n @returns {string} */
export function size(n) {
  if (!(n >= 1024)) return `${n ?? 0} B`;
  const i = Math.min(Math.floor(Math.log2(n) / 10), 4);
  return `${(n / 2 ** (10 * i)).toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][i]}`;
}

/** @param {number} n @returns {string} */
export const ms = (n) => (n >= 1000 ? `${(n / 1000).toFixed(1)} s` : n >= 10 ? `${Math.round(n)} ms` : `${(n ?? 0).toFixed(1)} ms`);

/** @param {{at: string | undefined}} p */
export function Time({ at }) {
  const d = new Date(at ?? '');
  if (Number.isNaN(d.getTime()) || d.getTime() <= 0) return null;
  const today = d.toDateString() === new Date().toDateString();
  return html`<time datetime=${d.toISOString()} title=${d.toLocaleString()}>${today ? d.toLocaleTimeString() : d.toLocaleString()}</time>`;
}

const TONES = new Map(Object.entries({
  ready: 'good', active: 'good', loaded: 'good', ok: 'good', connected: 'good', healthy: 'good', completed: 'good',
  starting: 'busy', installing: 'busy', draining: 'busy', running: 'busy', pending: 'busy', waiting: 'busy', declared: 'busy', waiting_approval: 'busy', requires_action: 'busy', unloading: 'busy', degraded: 'busy', stale: 'busy',
  failed: 'bad', invalid: 'bad', revoked: 'bad', error: 'bad', no_quorum: 'bad', canceled: 'bad', disconnected: 'bad',
}));

/** @param {{state: string}} p */
export function Badge({ state }) {
  return html`<span class=${'badge ' + (TONES.get(state) ?? '')}>${plain(state).replaceAll('_', ' ')}</span>`;
}

/** What a session is doing, where nothing is wrong with it; else what.
 * @param {{s: any}} p */
export const SessionBadge = ({ s }) => html`<${Badge} state=${s.status === 'active' ? s.state : s.status} />`;

/** @param {{error: any}} p */
export function Problem({ error }) {
  return error ? html`<p class="problem" role="alert">${plain(error.message ?? error)}</p>` : null;
}

/** @param {{title: string, actions?: Children, children?: Children, lead?: Children}} p */
export function View({ title, actions, children, lead }) {
  useEffect(() => { document.title = `${plain(title)} · yaya`; }, [title]);
  return html`<header class="view"><h1>${plain(title)}</h1><div class="actions">${actions}</div></header>
    ${lead && html`<p class="lead">${lead}</p>`}${children}`;
}

/** What a view shows of something that is loaded.
 * @param {{of: import('./state.js').Loaded<any>, children: (data: any) => Children}} p */
export function Of({ of, children }) {
  if (of.error) return html`<${Problem} error=${of.error} />`;
  if (of.data === undefined) return html`<p class="muted" role="status">Loading …</p>`;
  return children(of.data);
}

/** @param {{label: string, head: (string | null)[], rows: any[], empty: Children, row: (x: any) => Children}} p */
export function Table({ label, head, rows, empty, row }) {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
    <thead><tr>${head.map((t) => html`<th scope="col">${t ?? html`<span class="sr">Actions</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map((x) => labelled(row(x), head))}</tbody></table></div>`;
}

/** A row whose cells say what they are, where there is no room for a head.
 * @param {any} tr @param {(string | null)[]} head */
function labelled(tr, head) {
  const cells = toChildArray(tr.props.children).filter((c) => typeof c === 'object');
  return cloneElement(tr, undefined, cells.map((td, i) => cloneElement(/** @type {any} */ (td), { 'data-label': head[i] ?? '' })));
}

/** A button that does something that takes a while, and says what went wrong.
 * @param {{run: () => Promise<any> | any, children?: Children, kind?: string, disabled?: boolean, label?: string, arm?: boolean | string}} p */
export function Do({ run, children, kind = '', disabled, label, arm }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [armed, setArmed] = useState(!arm);
  const there = useRef(true);
  useEffect(() => {
    there.current = true;
    return () => void (there.current = false);
  }, []);
  // Whenever what is around it changes, it may have moved under somebody's finger.
  useEffect(() => {
    if (!arm) return undefined;
    setArmed(false);
    const t = setTimeout(() => setArmed(true), ARMING);
    return () => clearTimeout(t);
  }, [arm]);
  const click = async () => {
    setBusy(true);
    setError(null);
    try {
      await run();
    } catch (e) {
      if (there.current) setError(e);
    }
    if (there.current) setBusy(false);
  };
  return html`<button type="button" class=${kind} aria-label=${label} disabled=${busy || disabled || !armed} onClick=${click}>${children}</button><${Problem} error=${error} />`;
}

/** @param {{title: string, onClose: () => void, children?: Children, wide?: boolean}} p */
export function Dialog({ title, onClose, children, wide }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const d = ref.current;
    const before = document.activeElement;
    d?.showModal();
    return () => {
      d?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return html`<dialog ref=${ref} class=${wide ? 'wide' : ''} aria-label=${plain(title)} onCancel=${(/** @type {Event} */ e) => { e.preventDefault(); onClose(); }}>
    <header><h2>${plain(title)}</h2><button type="button" class="icon" aria-label="Close" onClick=${onClose}>✕</button></header>
    <div class="body">${children}</div></dialog>`;
}

/** Asks before something cannot be taken back.
 * @param {{children?: Children, ask: Children, yes: string, run: () => Promise<any>, kind?: string, label?: string}} p */
export function Confirm({ children, ask, yes, run, kind = '', label }) {
  const [open, setOpen] = useState(false);
  return html`<button type="button" class=${kind} aria-label=${label} onClick=${() => setOpen(true)}>${children}</button>
    ${open && html`<${Dialog} title=${yes} onClose=${() => setOpen(false)}>
      <p>${ask}</p>
      <div class="buttons"><button type="button" onClick=${() => setOpen(false)}>Cancel</button>
      <${Do} arm kind="danger" run=${async () => { await run(); setOpen(false); }}>${yes}<//></div><//>`}`;
}

let fields = 0;

/** @param {{label: Children, hint?: Children, children: (id: string) => Children}} p */
export function Field({ label, hint, children }) {
  const id = useRef('');
  id.current ||= 'f' + ++fields;
  return html`<div class="field"><label for=${id.current}>${label}</label>${children(id.current)}${hint && html`<small>${hint}</small>`}</div>`;
}

/** @param {{text: string, label?: string}} p */
export function Copy({ text, label = 'Copy' }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    const t = done ? setTimeout(() => setDone(false), 1500) : 0;
    return () => clearTimeout(t);
  }, [done]);
  return html`<button type="button" class="small" onClick=${() => navigator.clipboard?.writeText(text).then(() => setDone(true))}>${done ? 'Copied' : label}</button>`;
}

/** A command to run on yaya's machine: what is shown, all of it, is what is copied.
 * @param {{text: string, label: string}} p */
export const Command = ({ text, label }) => html`<div class="command"><${Pre} all text=${plain(text)} label=${label} /><${Copy} text=${plain(text)} /></div>`;

/** Markup that only browsers' own elements are made of.
 * @param {{rows: string[], label: string}} p */
export function QR({ rows, label }) {
  const n = rows.length;
  const path = rows.flatMap((r, y) => [...r].map((c, x) => (c === '1' ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  return html`<svg class="qr" role="img" aria-label=${label} viewBox=${`0 0 ${n} ${n}`}><rect width=${n} height=${n} fill="#fff" /><path d=${path} fill="#000" /></svg>`;
}
