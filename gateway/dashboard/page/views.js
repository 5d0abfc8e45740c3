// The views: address, title, required scope, module, and their place in the navigation.
// @ts-check
import { t } from './words.js';
import { may } from './state.js';

/** @typedef {import('./vendor/preact.js').ComponentType<{rest: string[]}>} Component */

/** A view. One with under has no entry of its own in the navigation: it is a tab of that view.
 * @typedef {{at: string, title: string, icon: string, needs: string, group: string,
 * under?: string, load: () => Promise<{default: Component}>}} Place */

/** @type {Place[]} */
export const VIEWS = [
  {
    at: '',
    title: t('Home'),
    icon: 'home',
    needs: 'sessions:read',
    group: '',
    load: () => import('./overview.js'),
  },
  {
    at: 'chat',
    title: t('Sessions'),
    icon: 'session',
    needs: 'sessions:read',
    group: t('Work'),
    load: () => import('./sessions.js'),
  },
  {
    at: 'approvals',
    title: t('Approvals'),
    icon: 'approval',
    needs: 'sessions:read',
    group: t('Work'),
    load: () => import('./approvals.js'),
  },
  {
    at: 'servers',
    title: t('Servers'),
    icon: 'server',
    needs: 'config:read',
    group: t('Connect'),
    load: () => import('./servers.js'),
  },
  {
    at: 'tools',
    title: t('Tools'),
    icon: 'tool',
    needs: 'config:read',
    group: t('Connect'),
    load: () => import('./tools.js'),
  },
  {
    at: 'catalogue',
    title: t('Catalogue'),
    icon: 'catalogue',
    needs: 'config:read',
    group: t('Connect'),
    load: () => import('./catalogue.js'),
  },
  {
    at: 'clients',
    title: t('Clients'),
    icon: 'client',
    needs: 'config:read',
    group: t('Connect'),
    load: () => import('./clients.js'),
  },
  {
    at: 'traffic',
    title: t('Traffic'),
    icon: 'traffic',
    needs: 'audit:read',
    group: t('Observe'),
    load: () => import('./traffic.js'),
  },
  {
    at: 'metrics',
    title: t('Metrics'),
    icon: 'chart',
    needs: 'metrics:read',
    group: t('Observe'),
    load: () => import('./metrics.js'),
  },
  {
    at: 'audit',
    title: t('Audit'),
    icon: 'audit',
    needs: 'audit:read',
    group: t('Observe'),
    load: () => import('./audit.js'),
  },
  {
    at: 'devices',
    title: t('Devices'),
    icon: 'device',
    needs: 'devices:read',
    group: t('Manage'),
    load: () => import('./devices.js'),
  },
  {
    at: 'providers',
    title: t('Models'),
    icon: 'model',
    needs: 'config:read',
    group: t('Manage'),
    load: () => import('./providers.js'),
  },
  {
    at: 'plugins',
    title: t('Plugins'),
    icon: 'plugin',
    needs: 'config:read',
    group: t('Manage'),
    load: () => import('./plugins.js'),
  },
  {
    at: 'config',
    title: t('Settings'),
    icon: 'settings',
    needs: 'config:read',
    group: t('Manage'),
    load: () => import('./config.js'),
  },
  {
    at: 'sandbox',
    title: t('Sandbox'),
    icon: 'lock',
    needs: 'config:read',
    group: t('Manage'),
    under: 'config',
    load: () => import('./sandbox.js'),
  },
  {
    at: 'cluster',
    title: t('Cluster'),
    icon: 'fork',
    needs: 'agents:read',
    group: t('Manage'),
    under: 'config',
    load: () => import('./cluster.js'),
  },
  {
    at: 'agents',
    title: t('Agents'),
    icon: 'agent',
    needs: 'agents:read',
    group: t('Manage'),
    under: 'config',
    load: () => import('./agents.js'),
  },
  {
    at: 'start',
    title: t('Setup'),
    icon: 'play',
    needs: 'config:read',
    group: t('Manage'),
    under: 'config',
    load: () => import('./start.js'),
  },
];

/** Addresses of earlier versions, and the views that have their content now.
 * @type {Record<string, string>} */
export const MOVED = { quarantine: 'servers' };

/** @param {string} at */
export const viewAt = (at) => VIEWS.find((v) => v.at === at);

/** The views that share a place in the navigation with one, if this user may see them.
 * @param {string} at @returns {Place[]} */
export function tabsOf(at) {
  const root = viewAt(at)?.under ?? at;
  const all = VIEWS.filter((v) => (v.under ?? v.at) === root && may(v.needs));
  return all.length > 1 ? all : [];
}

/** The entries of the navigation. A view that this user may not see is represented by the first
 * of its tabs that they may. @returns {{entry: Place, to: Place}[]} */
export function entries() {
  return VIEWS.filter((v) => !v.under).flatMap((entry) => {
    const to = VIEWS.find((v) => (v.under ?? v.at) === entry.at && may(v.needs));
    return to ? [{ entry, to }] : [];
  });
}
