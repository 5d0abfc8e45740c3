// The building blocks of all views. Text only becomes text nodes: no view turns strings into
// markup, and the page's policy (Trusted Types) would prevent it.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { cloneElement, toChildArray } from './vendor/preact.js';
import { html, Icon } from './html.js';
import { href, page, route, Signal } from './state.js';
import { exact, plain, size, stateWord, when, words } from './text.js';
import { tabsOf } from './views.js';
import { t } from './words.js';

export { html, Icon };

/** How long a button that approves something is disabled at first: a key or click from before the
 * question appeared is not an answer to it. */
export const ARMING = 500;

/** An untrusted name or short text, on one line, isolated from its surroundings.
 * @param {{text: unknown, max?: number}} p */
export function Name({ text, max = 160 }) {
  const s = plain(text);
  return html`<bdi>${s.length > max ? s.slice(0, max) + '…' : s}</bdi>`;
}

const CUT = 64 * 1024;

/** Preformatted text; long text is truncated until the user expands it.
 * @param {{text: string, label?: string, all?: boolean, diff?: boolean}} p */
export function Pre({ text, label, all, diff }) {
  const [whole, setWhole] = useState(false);
  const cut = !all && !whole && text.length > CUT;
  const shown = cut ? text.slice(0, CUT) : text;
  return html`
    <pre
      class=${diff ? 'diff' : ''}
      tabindex="0"
      role=${label ? 'group' : undefined}
      aria-label=${label}>
      ${diff ? lines(shown) : shown}
    </pre>
    ${cut &&
    html`<button class="link" onClick=${() => setWhole(true)}>
      ${t('Show all {size}', { size: size(text.length) })}
    </button>`}
  `;
}

/** @param {string} text */
export function lines(text) {
  return text.split('\n').map((l) => {
    const kind = l.startsWith('+')
      ? 'ins'
      : l.startsWith('-')
        ? 'del'
        : l.startsWith('@@')
          ? 'hunk'
          : '';
    return kind ? html`<span class=${kind}>${l + '\n'}</span>` : l + '\n';
  });
}

/** Changes every half minute: relative times follow it. */
const moment = new Signal(0);
setInterval(() => document.hidden || moment.set(moment.value + 1), 30_000);

/** A time: relative for a day, and exact in its title.
 * @param {{at: string | undefined}} p */
export function Time({ at }) {
  moment.use();
  const d = new Date(at ?? '');
  if (Number.isNaN(d.getTime()) || d.getTime() <= 0) return null;
  return html`<time class="nw" datetime=${d.toISOString()} title=${exact(d)}>
    ${when(d, Date.now())}
  </time>`;
}

const TONES = new Map(
  Object.entries({
    ready: 'good',
    active: 'good',
    loaded: 'good',
    ok: 'good',
    connected: 'good',
    healthy: 'good',
    completed: 'good',
    starting: 'busy',
    installing: 'busy',
    draining: 'busy',
    running: 'busy',
    pending: 'busy',
    waiting: 'busy',
    declared: 'busy',
    waiting_approval: 'busy',
    requires_action: 'busy',
    unloading: 'busy',
    degraded: 'busy',
    stale: 'busy',
    failed: 'bad',
    invalid: 'bad',
    revoked: 'bad',
    error: 'bad',
    no_quorum: 'bad',
    canceled: 'bad',
    disconnected: 'bad',
  }),
);

/** @param {{state: string}} p */
export function Badge({ state }) {
  return html`<span class=${'badge ' + (TONES.get(state) ?? '')}>${stateWord(state)}</span>`;
}

const DOTS = new Map(Object.entries({ disabled: 'off', stopped: 'off', declared: 'off' }));

/** A state as a shape and a word; bare leaves the word to the line that it begins.
 * @param {{state: string, bare?: boolean}} p */
export function State({ state, bare }) {
  const tone = DOTS.get(state) ?? TONES.get(state) ?? '';
  const word = stateWord(state);
  if (bare) return html`<span class=${'dot ' + tone} title=${word}></span>`;
  return html`<span class=${'state ' + tone}>
    <span class=${'dot ' + tone}></span><span class="cap">${word}</span>
  </span>`;
}

/** The activity of a session, or its problem.
 * @param {{s: V1<'SessionRow'>}} p */
export const SessionBadge = ({ s }) =>
  html`<${Badge} state=${s.status === 'active' ? s.state : s.status} />`;

/** @param {{error: unknown}} p */
export function Problem({ error }) {
  return error ? html`<p class="problem" role="alert">${words(error)}</p>` : null;
}

/** A view: its bar with the title and the actions, its tabs, its content; bare leaves the room
 * for the content to it.
 * @param {{title: string, crumb?: Children, actions?: Children, subs?: Children,
 * children?: Children, lead?: Children, bare?: boolean}} p */
export function View({ title, crumb, actions, subs, children, lead, bare }) {
  useEffect(() => page.title.set(title), [title]);
  const [at = ''] = route.use();
  const tabs = subs ? [] : tabsOf(at);
  return html`
    <header class="bar">
      ${crumb && html`<span class="crumb">${crumb} /</span>`}
      <h1>${plain(title)}</h1>
      <div class="actions">
        ${actions}
        <button
          type="button"
          class="quiet sq phone"
          aria-label=${t('Search or run')}
          onClick=${() => page.over.set('palette')}>
          <${Icon} of="search" />
        </button>
      </div>
    </header>
    ${tabs.length > 0 &&
    html`<nav class="subs" aria-label=${t('Settings')}>
      ${tabs.map(
        (v) =>
          html`<a key=${v.at} href=${href(v.at)} aria-current=${v.at === at ? 'page' : undefined}>
            ${v.title}
          </a>`,
      )}
    </nav>`}
    ${subs}
    ${bare
      ? children
      : html`<div class="view">
          <div class="measure">${lead && html`<p class="lead">${lead}</p>`}${children}</div>
        </div>`}
  `;
}

/** An empty state: the subject, why it is empty, the one thing to do.
 * @param {{icon?: string, children?: Children}} p */
export const Empty = ({ icon, children }) =>
  html`<div class="empty">${icon && html`<${Icon} of=${icon} />`} ${children}</div>`;

/** A placeholder of loading content. It appears after a moment: most content loads at once.
 * @param {{rows?: number}} p */
export const Skeleton = ({ rows = 4 }) =>
  html`<div class="skeleton" role="status">
    <span class="sr">${t('Loading …')}</span>
    ${Array.from({ length: rows }, (_, i) => html`<i key=${i}></i>`)}
  </div>`;

/** The view of loaded data.
 * @template T @param {{of: import('./state.js').Loaded<T>, children: (data: T) => Children}} p */
export function Of({ of, children }) {
  if (of.error)
    return html`
      <${Problem} error=${of.error} />
      <button type="button" class="small" onClick=${of.reload}>${t('Try again')}</button>
    `;
  if (of.data === undefined) return html`<${Skeleton} />`;
  return children(of.data);
}

/** @typedef {import('./vendor/preact.js').VNode<{children?: Children}>} Element */

/** @template T
 * @param {{label: string, head: (string | null)[], rows: T[], empty: Children,
 * row: (x: T) => Element}} p */
export function Table({ label, head, rows, empty, row }) {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
    <table>
      <thead>
        <tr>
          ${head.map(
            (h) => html`<th scope="col">${h ?? html`<span class="sr">${t('Actions')}</span>`}</th>`,
          )}
        </tr>
      </thead>
      <tbody>${rows.map((x) => labelled(row(x), head))}</tbody>
    </table>
  </div>`;
}

/** A row whose cells have labels, for screens without room for a table head.
 * @param {Element} tr @param {(string | null)[]} head */
function labelled(tr, head) {
  const cells = toChildArray(tr.props.children).filter((c) => typeof c === 'object');
  return cloneElement(
    tr,
    undefined,
    cells.map((td, i) =>
      cloneElement(
        /** @type {Element} */ (td),
        /** @type {object} */ ({ 'data-label': head[i] ?? '' }),
      ),
    ),
  );
}

/** A button for an action that takes a while; it shows the error if the action fails.
 * @param {{run: () => unknown, children?: Children, kind?: string, disabled?: boolean,
 * label?: string, arm?: boolean | string}} p */
export function Do({ run, children, kind = '', disabled, label, arm }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [armed, setArmed] = useState(!arm);
  const there = useRef(true);
  useEffect(() => {
    there.current = true;
    return () => void (there.current = false);
  }, []);
  // When its surroundings change, the button may have moved under the user's finger.
  useEffect(() => {
    if (!arm) return undefined;
    setArmed(false);
    const timer = setTimeout(() => setArmed(true), ARMING);
    return () => clearTimeout(timer);
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
  return html`
    <button
      type="button"
      class=${kind}
      aria-label=${label}
      disabled=${busy || disabled || !armed}
      onClick=${click}>
      ${children}
    </button>
    <${Problem} error=${error} />
  `;
}

/** Takes over what is written into a field. @param {(value: string) => void} set */
export const typed = (set) => (/** @type {Event & {target: HTMLInputElement}} */ e) =>
  set(e.target.value);

let fields = 0;

/** @param {{label: Children, hint?: Children, children: (id: string) => Children}} p */
export function Field({ label, hint, children }) {
  const id = useRef('');
  id.current ||= 'f' + ++fields;
  return html`<div class="field">
    <label for=${id.current}>${label}</label>
    ${children(id.current)}
    ${hint && html`<small>${hint}</small>`}
  </div>`;
}
