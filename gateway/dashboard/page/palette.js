// The command palette, and the list of keys. Names from others are shown as text, and a command
// that cannot be undone opens its confirmation where it always is.
// @ts-check
import { useEffect, useMemo, useRef, useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Dialog } from './dialog.js';
import { PLACES, setSingle, single } from './keys.js';
import { href, may, page, useLoaded } from './state.js';
import { style } from './style.js';
import { plain, stateWord, words } from './text.js';
import { choose } from './theme.js';
import { THEMES } from './thisbrowser.js';
import { toast } from './toast.js';
import { html, Icon } from './ui.js';
import { VIEWS, viewAt } from './views.js';
import { language, LANGUAGES, rich, speak, t } from './words.js';

style('palette');

const MOST = 9; // entries of one group
const GROUPS = /** @type {const} */ ({
  commands: t('Commands'),
  places: t('Go to'),
  servers: t('Servers'),
  tools: t('Tools'),
  sessions: t('Sessions'),
  devices: t('Devices'),
});
/** @typedef {keyof typeof GROUPS} Group */
const ORDER = /** @type {Group[]} */ (Object.keys(GROUPS));

/** An entry. run does something; to is a place.
 * @typedef {{group: Group, icon: string, name: string, hint: string, to?: string,
 * run?: () => Promise<string>}} Entry */

/** The groups that a first character narrows the entries to.
 * @type {Record<string, readonly Group[]>} */
const NARROW = { '>': ['commands'], '@': ['servers', 'tools'], '#': ['sessions'] };

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
        group: 'commands',
        icon: 'session',
        name: t('New session'),
        hint: '',
        to: href('chat', 'new'),
      });
    if (may('devices:approve'))
      all.push({
        group: 'commands',
        icon: 'device',
        name: t('Add a device'),
        hint: '',
        to: href('devices'),
      });
    if (write)
      all.push({
        group: 'commands',
        icon: 'plus',
        name: t('Add a server'),
        hint: '',
        to: href('servers', '', 'new'),
      });
    for (const x of THEMES)
      all.push({
        group: 'commands',
        icon: 'sun',
        name: t('Theme: {now}', { now: x.title }),
        hint: '',
        run: async () => {
          choose(x.at);
          return t('Theme: {now}', { now: x.title });
        },
      });
    for (const l of LANGUAGES.filter((x) => x.at !== language()))
      all.push({
        group: 'commands',
        icon: 'settings',
        name: t('Language: {name}', { name: l.name }),
        hint: '',
        run: async () => {
          speak(l.at);
          return t('Language: {name}', { name: l.name });
        },
      });
    for (const v of VIEWS.filter((x) => may(x.needs)))
      all.push({ group: 'places', icon: v.icon, name: v.title, hint: '', to: href(v.at) });
    for (const s of servers ?? []) {
      all.push({
        group: 'servers',
        icon: 'server',
        name: s.name,
        hint: stateWord(s.state),
        to: href('servers', s.name),
      });
      if (write && !['disabled', 'waiting'].includes(s.state))
        all.push({
          group: 'commands',
          icon: 'restart',
          name: t('Restart {server}', { server: s.name }),
          hint: stateWord(s.state),
          run: async () => {
            await api('POST', `/api/mcp/servers/${seg(s.name)}/restart`);
            return t('{server} restarts.', { server: plain(s.name) });
          },
        });
    }
    for (const x of tools ?? [])
      all.push({
        group: 'tools',
        icon: 'tool',
        name: x.name,
        hint: x.title ?? '',
        to: href('tools', x.name),
      });
    for (const s of sessions.data?.sessions ?? [])
      all.push({
        group: 'sessions',
        icon: 'session',
        name: s.title || s.id,
        hint: stateWord(s.status === 'active' ? s.state : s.status),
        to: href('chat', s.id),
      });
    for (const d of devices ?? [])
      all.push({
        group: 'devices',
        icon: 'device',
        name: d.label || d.device_id,
        hint: stateWord(d.status),
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
  return ORDER.filter((g) => !narrow || narrow.includes(g)).flatMap((g) =>
    all
      .filter(
        (e) =>
          e.group === g &&
          (list.length > 0 || narrow || g === 'commands' || g === 'places') &&
          list.every((w) => e.name.toLowerCase().includes(w)),
      )
      .sort((a, b) => Number(begins(a)) - Number(begins(b)))
      .slice(0, list.length || !narrow ? MOST + (g === 'places' ? 10 : 0) : 50),
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
    aria-label=${t('Search or run')}
    onClick=${(/** @type {Event} */ e) => e.target === box.current && close()}
    onCancel=${(/** @type {Event} */ e) => {
      e.preventDefault();
      close();
    }}>
    <header>
      <${Icon} of="search" />
      <input
        role="combobox"
        aria-label=${t('Search or run')}
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
    <div role="listbox" id="found" aria-label=${t('Found')} tabindex="-1">
      ${ORDER.map((g) => {
        const some = entries.flatMap((e, i) => (e.group === g ? [{ e, i }] : []));
        return (
          some.length > 0 &&
          html`<div role="group" aria-label=${GROUPS[g]} key=${g}>
            <h3 aria-hidden="true">${GROUPS[g]}</h3>
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
                  <span class="cut">${plain(e.hint).slice(0, 80)}</span>
                </div>`,
            )}
          </div>`
        );
      })}
    </div>
    ${entries.length === 0 &&
    html`<p class="empty" role="status">${t('Nothing is called that.')}</p>`}
    <footer class="nophone">
      <span>${rich('{keys} move', { keys: html`<kbd>↑</kbd> <kbd>↓</kbd>` })}</span>
      <span>${rich('{key} run', { key: html`<kbd>↵</kbd>` })}</span>
      <span class="end">
        ${rich(
          'Start with {commands} for commands, {names} servers and tools, {sessions} sessions',
          {
            commands: html`<kbd>></kbd>`,
            names: html`<kbd>@</kbd>`,
            sessions: html`<kbd>#</kbd>`,
          },
        )}
      </span>
    </footer>
  </dialog>`;
}

/** The list of keys, and the switch that turns single keys off. */
export function Keys() {
  const on = single.use();
  const row = (/** @type {string[]} */ keys, /** @type {string} */ what) =>
    html`<dt>${keys.map((k, i) => html`${i > 0 && ' '}<kbd>${k}</kbd>`)}</dt><dd>${what}</dd>`;
  return html`<${Dialog} title=${t('Keys')} onClose=${() => page.over.set('')}>
    <dl>
      ${row(['Ctrl K'], t('Search or run'))}
      ${row(['/'], t('Filter the view'))}
      ${row(['c'], t('New session'))}
      ${PLACES.map(([k, at]) => {
        const v = viewAt(at);
        return v && may(v.needs) && row(['g', k], v.title);
      })}
      ${row(['Esc'], t('Close what is on top'))}
      ${row(['?'], t('This list'))}
    </dl>
    <label>
      <input
        type="checkbox"
        checked=${on}
        onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) =>
          setSingle(e.target.checked)} />
      ${' '}
      ${t('Single keys work in this browser')}
    </label>
  <//>`;
}
