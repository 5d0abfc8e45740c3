// Agents and kernels.
// @ts-check
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { plain } from './text.js';
import { Badge, Do, html, Name, Of, Table, Time, View } from './ui.js';

export default function Agents() {
  const cluster = useLoaded('/api/cluster', ['agents']);
  return html`<${View} title="Agents">
    <${Of} of=${cluster}>
      ${(/** @type {Admin<'Cluster'>} */ d) => html`
        <${Table}
          label="Agents"
          head=${['Agent', 'State', 'Skill', 'Kernel', 'Changed', null]}
          rows=${d.agents}
          empty="There are no agents."
          row=${(/** @type {Admin<'Agent'>} */ a) => html`<tr key=${a.id}>
            <td><a href=${href('chat', a.id)}><${Name} text=${a.id} max=${60} /></a></td>
            <td><${Badge} state=${a.status} /></td>
            <td><${Name} text=${a.skill || '–'} max=${40} /></td>
            <td><code><${Name} text=${a.kernel_id} max=${24} /></code></td>
            <td><${Time} at=${a.ts} /></td>
            <td>
              ${a.status === 'running' &&
              may('sessions:write') &&
              html`<${Do}
                kind="small"
                label=${`Stop ${plain(a.id)}`}
                run=${() => api('POST', `/v1/sessions/${seg(a.id)}/cancel`)}>
                Stop
              <//>`}
            </td>
          </tr>`} />
        <h2>Kernels</h2>
        <${Table}
          label="Kernels"
          head=${[
            'Kernel',
            'State',
            'Agents',
            'Entropy',
            'Drift',
            'Memories',
            'Capabilities',
            'Last seen',
          ]}
          rows=${d.kernels}
          empty="There are no kernels."
          row=${(/** @type {Admin<'KernelInfo'>} */ k) => html`<tr key=${k.kernel_id}>
            <td><code><${Name} text=${k.kernel_id} max=${32} /></code></td>
            <td><${Badge} state=${k.status} /></td>
            <td>${k.heartbeat?.agent_count ?? '–'}</td>
            <td>${k.heartbeat?.entropy?.toFixed(2) ?? '–'}</td>
            <td>${k.heartbeat?.drift_score?.toFixed(2) ?? '–'}</td>
            <td>${k.heartbeat?.memory_count ?? '–'}</td>
            <td><${Name} text=${k.capabilities.join(', ') || '–'} max=${120} /></td>
            <td><${Time} at=${k.last_seen} /></td>
          </tr>`} />
      `}
    <//>
  <//>`;
}
