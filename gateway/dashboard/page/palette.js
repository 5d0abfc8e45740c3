// The command palette, and the list of keys. Names from others are shown as text, and a command
// that cannot be undone opens its confirmation where it always is.
// @ts-check
import { useEffect, useMemo, useRef, useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Dialog } from './dialog.js';
import { PLACES, setSingle, single } from './keys.js';
import { href, may, page, useLoaded } from './state.js';
import { style } from './style.js';
import { plain, words } from './text.js';
import { toast } from './toast.js';
import { html, Icon } from './ui.js';
import { VIEWS, viewAt } from './views.js';

style('palette');

const MOST = 9; // entries of one group
const GROUPS = /** @type {const} */ ([
  'Commands',
  'Go to',
  'Servers',
  'Tools',
  'Sessions',
  'Devices',
]);

/** An entry. run does something; to is a place.
 * @typedef {{group: typeof GROUPS[number], icon: string, name: string, hint: string, to?: string,
 * run?: () => Promise<string>}} Entry */

/** The groups that a first character narrows the entries to.
 * @type {Record<string, readonly string[]>} */
const NARROW = { '>': ['Commands'], '@': ['Servers', 'Tools'], '#': ['Sessions'] };

/** All that can be found, as far as it is loaded. @returns {Entry[]} */
function useEntries() {
  const config = may('config:read');
  const servers = useLoaded(config ? '/api/mcp/servers' : null, ['servers']).data;
  const tools = useLoaded(config ? '/api/tools' : null, ['tools']).data;
  const sessions = useLoaded(may('sessions:read') ? '/v1/sessions?limit=100' : null, ['sessions']);
  const devices = useLoaded(may('devices:read') ? '/api/devices' : null, ['devices']).data;
  return useMemo(() => {
    const write = may('config:write');
    /** @type {Entry[]} */
    const all = [];
    if (may('sessions:write'))
      all.push({
        group: 'Commands',
        icon: 'session',
        name: 'New session',
        hint: '',
        to: href('chat', 'new'),
      });
    if (may('devices:approve'))
      all.push({
        group: 'Commands',
        icon: 'device',
        name: 'Add a device',
        hint: '',
        to: href('devices'),
      });
    if (write)
      all.push({
        group: 'Commands',
        icon: 'plus',
        name: 'Add a server',
        hint: '',
        to: href('servers', '', 'new'),
      });
    for (const v of VIEWS.filter((x) => may(x.needs)))
      all.push({ group: 'Go to', icon: v.icon, name: v.title, hint: '', to: href(v.at) });
    for (const s of servers ?? []) {
      all.push({
        group: 'Servers',
        icon: 'server',
        name: s.name,
        hint: s.state,
        to: href('servers', s.name),
      });
      if (write && !['disabled', 'waiting'].includes(s.state))
        all.push({
          group: 'Commands',
          icon: 'restart',
          name: `Restart ${s.name}`,
          hint: s.state,
          run: async () => {
            await api('POST', `/api/mcp/servers/${seg(s.name)}/restart`);
            return `${plain(s.name)} restarts.`;
          },
        });
    }
    for (const t of tools ?? [])
      all.push({
        group: 'Tools',
        icon: 'tool',
        name: t.name,
        hint: t.title ?? '',
        to: href('tools', t.name),
      });
    for (const s of sessions.data?.sessions ?? [])
      all.push({
        group: 'Sessions',
        icon: 'session',
        name: s.title || s.id,
        hint: s.status === 'active' ? s.state : s.status,
        to: href('chat', s.id),
      });
    for (const d of devices ?? [])
      all.push({
        group: 'Devices',
        icon: 'device',
        name: d.label || d.device_id,
        hint: d.status,
        to: href('devices'),
      });
    return all;
  }, [servers, tools, sessions.data, devices]);
}

/** The entries that have all words, by group; those that begin with the first word come first.
 * @param {Entry[]} all @param {string} text @returns {Entry[]} */
export function found(all, text) {
  const narrow = Object.hasOwn(NARROW, text[0] ?? '') ? NARROW[text[0]] : null;
  const list = (narrow ? text.slice(1) : text).toLowerCase().split(/\s+/).filter(Boolean);
  const begins = (/** @type {Entry} */ e) => !e.name.toLowerCase().startsWith(list[0] ?? '');
  return GROUPS.filter((g) => !narrow || narrow.includes(g)).flatMap((g) =>
    all
      .filter(
        (e) =>
          e.group === g &&
          (list.length > 0 || narrow || g === 'Commands' || g === 'Go to') &&
          list.every((w) => e.name.toLowerCase().includes(w)),
      )
      .sort((a, b) => Number(begins(a)) - Number(begins(b)))
      .slice(0, list.length || !narrow ? MOST + (g === 'Go to' ? 10 : 0) : 50),
  );
}

export function Palette() {
  const all = useEntries();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const entries = found(all, text);
  const now = Math.min(at, entries.length - 1);
  const close = () => page.over.set('');
  useEffect(() => {
    const d = box.current;
    const before = document.activeElement;
    d?.showModal();
    return () => {
      d?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [now, text]);
  const run = (/** @type {Entry | undefined} */ e) => {
    if (!e) return;
    close();
    if (e.to !== undefined) location.hash = e.to;
    else e.run?.().then(toast, (error) => toast(words(error), 'error'));
  };
  const key = (/** @type {KeyboardEvent} */ e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && entries.length) setAt((now + step + entries.length) % entries.length);
    else if (e.key === 'Enter' && !e.isComposing) run(entries[now]);
    else return;
    e.preventDefault();
  };
  return html`<dialog
    ref=${box}
    class="palette"
    aria-label="Search or run"
    onClick=${(/** @type {Event} */ e) => e.target === box.current && close()}
    onCancel=${(/** @type {Event} */ e) => {
      e.preventDefault();
      close();
    }}>
    <header>
      <${Icon} of="search" />
      <input
        role="combobox"
        aria-label="Search or run"
        aria-expanded="true"
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant=${entries.length ? `found-${now}` : undefined}
        autocomplete="off"
        spellcheck="false"
        maxlength="200"
        value=${text}
        onInput=${(/** @type {Event & {target: HTMLInputElement}} */ e) => {
          setText(e.target.value);
          setAt(0);
        }}
        onKeyDown=${key} />
      <kbd>Esc</kbd>
    </header>
    <div role="listbox" id="found" aria-label="Found" tabindex="-1">
      ${GROUPS.map((g) => {
        const some = entries.flatMap((e, i) => (e.group === g ? [{ e, i }] : []));
        return (
          some.length > 0 &&
          html`<div role="group" aria-label=${g} key=${g}>
            <h3 aria-hidden="true">${g}</h3>
            ${some.map(
              ({ e, i }) =>
                html`<div
                  key=${i}
                  id=${`found-${i}`}
                  role="option"
                  aria-selected=${i === now}
                  onMouseMove=${() => i !== now && setAt(i)}
                  onClick=${() => run(e)}>
                  <${Icon} of=${e.icon} />
                  <b class="cut"><bdi>${plain(e.name).slice(0, 120)}</bdi></b>
                  <span class="cut">${plain(e.hint).slice(0, 80).replaceAll('_', ' ')}</span>
                </div>`,
            )}
          </div>`
        );
      })}
    </div>
    ${entries.length === 0 && html`<p class="empty" role="status">Nothing is called that.</p>`}
    <footer class="nophone">
      <span><kbd>↑</kbd> <kbd>↓</kbd> move</span>
      <span><kbd>↵</kbd> run</span>
      <span class="end">
        Start with <kbd>></kbd> for commands, <kbd>@</kbd> servers and tools, <kbd>#</kbd> sessions
      </span>
    </footer>
  </dialog>`;
}

/** The list of keys, and the switch that turns single keys off. */
export function Keys() {
  const on = single.use();
  const row = (/** @type {string[]} */ keys, /** @type {string} */ what) =>
    html`<dt>${keys.map((k, i) => html`${i > 0 && ' '}<kbd>${k}</kbd>`)}</dt><dd>${what}</dd>`;
  return html`<${Dialog} title="Keys" onClose=${() => page.over.set('')}>
    <dl>
      ${row(['Ctrl K'], 'Search or run')}
      ${row(['/'], 'Filter the view')}
      ${row(['c'], 'New session')}
      ${PLACES.map(([k, at]) => {
        const v = viewAt(at);
        return v && may(v.needs) && row(['g', k], v.title);
      })}
      ${row(['Esc'], 'Close what is on top')}
      ${row(['?'], 'This list')}
    </dl>
    <label>
      <input
        type="checkbox"
        checked=${on}
        onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) =>
          setSingle(e.target.checked)} />
      ${' '}Single keys work in this browser
    </label>
  <//>`;
}
