// The things that need somebody: asks, servers with problems, changed tools, waiting devices.
// Those that stop work come first.
// @ts-check
import { href, may, useLoaded } from './state.js';
import { plain } from './text.js';
import { count, rich, t } from './words.js';

/** One thing that needs somebody. Its texts are shown as text.
 * @typedef {{key: string, tone: 'bad' | 'busy' | '', icon: string, who: string,
 * says: (who: Children) => Children[], detail: string, to: string, action: string}} Need */

/** @param {Admin<'Ask'>[]} asks @returns {Need[]} */
const fromAsks = (asks) =>
  asks.map((a) => ({
    key: 'ask ' + a.id,
    tone: 'busy',
    icon: 'approval',
    who: a.tool_name,
    says: (who) => rich('{who} waits for your approval', { who }),
    detail: a.brief ?? '',
    to: href('approvals'),
    action: t('Review'),
  }));

/** States in which a server does not do what it was configured for. */
export const TROUBLE = ['failed', 'invalid', 'degraded'];

/** @param {Admin<'Server'>[]} servers @returns {Need[]} */
const fromServers = (servers) =>
  servers
    .filter((s) => TROUBLE.includes(s.state))
    .map((s) => ({
      key: 'server ' + s.name,
      tone: s.state === 'degraded' ? 'busy' : 'bad',
      icon: s.state === 'degraded' ? 'warning' : 'error',
      who: s.name,
      says: (who) =>
        s.state === 'failed'
          ? rich('{who} failed', { who })
          : s.state === 'invalid'
            ? rich('{who} has an invalid configuration', { who })
            : rich('{who} is degraded', { who }),
      detail: [
        s.reason || s.last_error,
        s.restarts > 0 && count(s.restarts, '{n} restart', '{n} restarts'),
      ]
        .filter(Boolean)
        .join(' · '),
      to: href('servers', s.name),
      action: t('Open'),
    }));

/** How many changes of a server wait. @param {Admin<'Waiting'>} w */
export const changesOf = (w) => Math.max(1, w.tools.length + (w.instructions ? 1 : 0));

/** @param {Admin<'Waiting'>[]} waiting @returns {Need[]} */
const fromQuarantine = (waiting) =>
  waiting.map((w) => ({
    key: 'trust ' + w.server,
    tone: 'busy',
    icon: 'shield',
    who: w.server,
    says: (who) =>
      w.runs
        ? rich('{who} waits for your approval to start', { who })
        : rich('{who} has {changes} that you have not approved', {
            who,
            changes: count(changesOf(w), '{n} change', '{n} changes'),
          }),
    detail: w.tools
      .slice(0, 4)
      .map((x) => x.name)
      .join(', '),
    to: href('quarantine'),
    action: t('Compare'),
  }));

/** @param {Admin<'DeviceInfo'>[]} devices @returns {Need[]} */
const fromDevices = (devices) =>
  devices
    .filter((d) => d.status === 'pending')
    .map((d) => ({
      key: 'device ' + (d.request_id || d.device_id),
      tone: '',
      icon: 'device',
      who: d.label || d.device_id,
      says: (who) => rich('{who} asks for access', { who }),
      detail: d.peer ? t('from {address}', { address: d.peer }) : '',
      to: href('devices'),
      action: t('Review'),
    }));

/** Everything that needs somebody and that this user may see.
 * @returns {{needs: Need[], asks: Admin<'Ask'>[], failed: number, waiting: number,
 * pending: number}} */
export function useAttention() {
  const config = may('config:read');
  const asks = useLoaded('/api/approvals', ['approvals']).data ?? [];
  const servers = useLoaded(config ? '/api/mcp/servers' : null, ['servers']).data ?? [];
  const quarantine = useLoaded(config ? '/api/mcp/quarantine' : null, ['quarantine']).data ?? [];
  const devices = useLoaded(may('devices:read') ? '/api/devices' : null, ['devices']).data ?? [];
  const pending = fromDevices(devices);
  return {
    needs: [...fromAsks(asks), ...fromServers(servers), ...fromQuarantine(quarantine), ...pending],
    asks,
    failed: servers.filter((s) => s.state === 'failed' || s.state === 'invalid').length,
    waiting: quarantine.reduce((n, w) => n + changesOf(w), 0),
    pending: pending.length,
  };
}

/** A need in one sentence. @param {Need} n */
export const sentence = (n) => n.says(plain(n.who)).join('');
