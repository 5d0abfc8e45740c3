// The entries of the palette: all that can be opened or run, and the search for it.
// @ts-check
import { useMemo } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { plain, stateWord } from './text.js';
import { choose } from './theme.js';
import { THEMES } from './thisbrowser.js';
import { VIEWS } from './views.js';
import { language, LANGUAGES, speak, t } from './words.js';

const MOST = 9; // entries of one group
export const GROUPS = /** @type {const} */ ({
  commands: t('Commands'),
  places: t('Go to'),
  servers: t('Servers'),
  tools: t('Tools'),
  sessions: t('Sessions'),
  devices: t('Devices'),
  plugins: t('Plugins'),
  settings: t('Settings'),
});
/** @typedef {keyof typeof GROUPS} Group */
export const ORDER = /** @type {Group[]} */ (Object.keys(GROUPS));

/** An entry. run does something; to is a place.
 * @typedef {{group: Group, icon: string, name: string, hint: string, to?: string,
 * run?: () => Promise<string>}} Entry */

/** The groups that a first character narrows the entries to.
 * @type {Record<string, readonly Group[]>} */
const NARROW = { '>': ['commands'], '@': ['servers', 'tools'], '#': ['sessions'] };

/** All that can be found, as far as it is loaded. @returns {Entry[]} */
export function useEntries() {
  const config = may('config:read');
  const servers = useLoaded(config ? '/api/mcp/servers' : null, ['servers']).data;
  const tools = useLoaded(config ? '/api/tools' : null, ['tools']).data;
  const sessions = useLoaded(may('sessions:read') ? '/v1/sessions?limit=100' : null, ['sessions']);
  const devices = useLoaded(may('devices:read') ? '/api/devices' : null, ['devices']).data;
  const plugins = useLoaded(config ? '/api/plugins' : null, ['plugins', 'config']).data?.plugins;
  const settings = useLoaded(config ? '/api/settings' : null, ['config']).data;
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
    for (const x of plugins ?? [])
      all.push({
        group: 'plugins',
        icon: 'plugin',
        name: x.name,
        hint: stateWord(x.status),
        to: href('plugins', x.name),
      });
    for (const s of settings ?? [])
      all.push({
        group: 'settings',
        icon: 'settings',
        name: s.key,
        hint: s.doc ?? '',
        to: href('config', s.key),
      });
    return all;
  }, [servers, tools, sessions.data, devices, plugins, settings]);
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
