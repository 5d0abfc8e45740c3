// Notifications, as yaya lists them: calls and devices that wait, servers with problems,
// sessions that have finished. One that is read on one device is read on all.
// @ts-check
import { api } from './api.js';
import { href, may, route, useLoaded } from './state.js';
import { plain } from './text.js';
import { count, rich, t } from './words.js';

/** @typedef {Admin<'Notification'>} Notice */

/** How a notification is shown. Its texts are shown as text.
 * @typedef {{tone: 'bad' | 'busy' | 'good' | '', icon: string,
 * says: (who: Children) => Children[], detail?: string, to: string, action: string}} Look */

/** One thing that somebody should know of. @typedef {Notice & Look} Need */

/** @param {Notice} n @returns {Look} */
function look(n) {
  switch (n.kind) {
    case 'approval':
      return {
        tone: 'busy',
        icon: 'approval',
        says: (who) => rich('{who} waits for your approval', { who }),
        to: href('approvals'),
        action: t('Review'),
      };
    case 'server':
      return {
        tone: n.state === 'degraded' ? 'busy' : 'bad',
        icon: n.state === 'degraded' ? 'warning' : 'error',
        says: (who) =>
          n.state === 'failed'
            ? rich('{who} failed', { who })
            : n.state === 'invalid'
              ? rich('{who} has an invalid configuration', { who })
              : rich('{who} is degraded', { who }),
        detail: [n.detail, n.count && count(n.count, '{n} restart', '{n} restarts')]
          .filter(Boolean)
          .join(' · '),
        to: href('servers', n.of),
        action: t('Open'),
      };
    case 'trust':
      return {
        tone: 'busy',
        icon: 'shield',
        says: (who) =>
          n.state === 'waiting'
            ? rich('{who} waits for your approval to start', { who })
            : rich('{who} has {changes} that you have not approved', {
                who,
                changes: count(n.count ?? 1, '{n} change', '{n} changes'),
              }),
        to: href('servers', n.of, 'trust'),
        action: t('Compare'),
      };
    case 'device':
      return {
        tone: '',
        icon: 'device',
        says: (who) => rich('{who} asks for access', { who }),
        detail: n.detail ? t('from {address}', { address: n.detail }) : '',
        to: href('devices'),
        action: t('Review'),
      };
    case 'session':
      return {
        tone: n.state === 'failed' ? 'bad' : 'good',
        icon: n.state === 'failed' ? 'error' : 'check',
        says: (who) =>
          n.state === 'failed' ? rich('{who} failed', { who }) : rich('{who} is done', { who }),
        to: href('chat', n.of),
        action: t('Open'),
      };
  }
}

/** States in which a server does not do what it was configured for. */
export const TROUBLE = ['failed', 'invalid', 'degraded'];

/** How many changes of a server wait. @param {Admin<'Waiting'>} w */
export const changesOf = (w) => Math.max(1, w.tools.length + (w.instructions ? 1 : 0));

/** @type {Need[]} */
let latest = [];

/** Everything that this user should know of. needs is what somebody has to act on; fresh is
 * what nobody has read. @returns {{all: Need[], needs: Need[], fresh: Need[],
 * counts: {asks: number, failed: number, changes: number, devices: number}}} */
export function useAttention() {
  const parts = ['approvals', 'servers', 'quarantine', 'devices', 'sessions', 'notifications'];
  const [at, open] = route.use();
  const got = useLoaded('/api/notifications', parts).data ?? [];
  latest = got.map((n) => ({ ...n, ...look(n) }));
  const of = (/** @type {string} */ kind) => latest.filter((n) => n.kind === kind);
  return {
    all: latest,
    needs: latest.filter((n) => n.kind !== 'session'),
    // Somebody who has the session open sees that it has finished.
    fresh: latest.filter(
      (n) => !n.read && !(n.kind === 'session' && at === 'chat' && n.of === open),
    ),
    counts: {
      asks: of('approval').length,
      failed: of('server').filter((n) => n.state !== 'degraded').length,
      changes: of('trust').reduce((sum, n) => sum + (n.count ?? 1), 0),
      devices: of('device').length,
    },
  };
}

/** Marks notifications as read, on all devices. @param {Need[]} some */
export async function read(some) {
  const ids = some.filter((n) => !n.read).map((n) => n.id);
  if (ids.length && may('sessions:write')) await api('POST', '/api/notifications/read', { ids });
}

/** Marks what is known of a session as read: somebody has seen it. @param {string} session */
export const seen = (session) =>
  read(latest.filter((n) => n.kind === 'session' && n.of === session));

/** A notification in one sentence. @param {Need} n */
export const sentence = (n) => n.says(plain(n.name)).join('');
