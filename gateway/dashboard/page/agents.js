// Agents and kernels.
// @ts-check
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { style } from './style.js';
import { plain } from './text.js';
import { Do, Empty, html, Name, Of, State, Time, View } from './ui.js';
import { locale, t } from './words.js';

style('servers');
style('models');

/** @param {{all: Admin<'Agent'>[]}} p */
const List = ({ all }) =>
  html`<section class="box" aria-label=${t('Agents')}>
    <header><h2>${t('Agents')}</h2><span class="faint">${all.length}</span></header>
    ${all.length
      ? html`<table class="list" role="table" aria-label=${t('Agents')}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${t('Agent')}</th>
              <th role="columnheader">${t('State')}</th>
              <th role="columnheader" class="wide">${t('Kernel')}</th>
              <th role="columnheader">${t('Since')}</th>
              <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${all.map(
              (a) => html`<tr role="row" key=${a.id}>
                <td role="cell" class="p1">
                  <span class="two">
                    <a class="strong" href=${href('chat', a.id)}>
                      <${Name} text=${a.id} max=${60} />
                    </a>
                    ${a.skill && html`<small><${Name} text=${a.skill} max=${40} /></small>`}
                  </span>
                </td>
                <td role="cell" class="p2"><${State} state=${a.status} /></td>
                <td role="cell" class="wide">
                  <code><${Name} text=${a.kernel_id} max=${24} /></code>
                </td>
                <td role="cell"><${Time} at=${a.ts} /></td>
                <td role="cell" class="p3">
                  ${a.status === 'running' &&
                  may('sessions:write') &&
                  html`<span class="acts">
                    <${Do}
                      kind="small"
                      label=${t('Stop {name}', { name: plain(a.id) })}
                      run=${() => api('POST', `/v1/sessions/${seg(a.id)}/cancel`)}>
                      ${t('Stop')}
                    <//>
                  </span>`}
                </td>
              </tr>`,
            )}
          </tbody>
        </table>`
      : html`<${Empty} icon="agent">
          ${t('No agents run. An agent of a session appears here while it works.')}
        <//>`}
  </section>`;

/** @param {number | undefined} n */
const figure = (n) =>
  n === undefined ? '–' : n.toLocaleString(locale(), { maximumFractionDigits: 2 });

/** @param {{all: Admin<'KernelInfo'>[]}} p */
const Kernels = ({ all }) =>
  html`<section class="box" aria-label=${t('Kernels')}>
    <header>
      <h2>${t('Kernels')}</h2>
      <span class="faint">${t('Processes that run agents, with their last report.')}</span>
    </header>
    ${all.length
      ? html`<table class="list" role="table" aria-label=${t('Kernels')}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${t('Kernel')}</th>
              <th role="columnheader">${t('State')}</th>
              <th role="columnheader" class="num">${t('Agents')}</th>
              <th role="columnheader" class="num wide">${t('Entropy')}</th>
              <th role="columnheader" class="num wide">${t('Drift')}</th>
              <th role="columnheader" class="num wide">${t('Memories')}</th>
              <th role="columnheader">${t('Seen')}</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${all.map(
              (k) => html`<tr role="row" key=${k.kernel_id}>
                <td role="cell" class="p1">
                  <span class="two">
                    <code class="strong"><${Name} text=${k.kernel_id} max=${32} /></code>
                    <small><${Name} text=${k.capabilities.join(', ')} max=${120} /></small>
                  </span>
                </td>
                <td role="cell" class="p2"><${State} state=${k.status} /></td>
                <td role="cell" class="num">${figure(k.heartbeat?.agent_count)}</td>
                <td role="cell" class="num wide">${figure(k.heartbeat?.entropy)}</td>
                <td role="cell" class="num wide">${figure(k.heartbeat?.drift_score)}</td>
                <td role="cell" class="num wide">${figure(k.heartbeat?.memory_count)}</td>
                <td role="cell" class="p3"><${Time} at=${k.last_seen} /></td>
              </tr>`,
            )}
          </tbody>
        </table>`
      : html`<${Empty}>${t('There are no kernels.')}<//>`}
  </section>`;

export default function Agents() {
  const cluster = useLoaded('/api/cluster', ['agents']);
  return html`<${View} title=${t('Agents')}>
    <${Of} of=${cluster}>
      ${(/** @type {Admin<'Cluster'>} */ d) => html`
        <${List} all=${d.agents} />
        <${Kernels} all=${d.kernels} />
      `}
    <//>
  <//>`;
}
