// A session that no node has that answers: one that does not may have it.
// @ts-check
import { seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { listed } from './text.js';
import { html, Name, View } from './ui.js';
import { rich, t } from './words.js';

/** @param {{id: string, title: string}} p */
export function Absent({ id, title }) {
  const root = id.split('::agent::')[0] ?? id;
  const info = useLoaded(`/v1/sessions/${seg(root)}`, ['sessions', 'agents']);
  const all = useLoaded('/v1/sessions?limit=1000', ['sessions', 'agents']);
  const node = all.data?.sessions.find((s) => s.id === root)?.node;
  const missing = all.data?.missing_nodes ?? [];
  const known = (all.data || all.error) && (info.data || info.error);
  return html`<${View} title=${title}>
    ${!known && html`<p class="muted" role="status">${t('Loading …')}</p>`}
    ${known &&
    node &&
    html`<p class="notice" role="status">
      ${rich('This session is on the node {node}, which has not shown it. The page tries again.', {
        node: html`<b><${Name} text=${node} max=${63} /></b>`,
      })}
    </p>`}
    ${known && !node && html`<p class="problem" role="alert">${t('Session not found.')}</p>`}
    ${known &&
    !node &&
    missing.length > 0 &&
    html`<p>
      ${t('It may be on {nodes}, which cannot be reached from here.', { nodes: listed(missing) })}
    </p>`}
    <p>
      <a href=${href('chat')}>${t('All sessions')}</a>
      ${may('agents:read') && node && html` · <a href=${href('cluster')}>${t('Cluster')}</a>`}
    </p>
  <//>`;
}
