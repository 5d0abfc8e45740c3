// The cluster: the state of its log, its nodes, and how nodes join and leave.
// @ts-check
import { useState } from './vendor/hooks.js';
import { Invite, Remove } from './clusterdialogs.js';
import { Command } from './copy.js';
import { useLoaded } from './state.js';
import { ms, plain } from './text.js';
import { html, Icon, Name, Of, State as Mark, Table, Time, View } from './ui.js';
import { rich, t } from './words.js';

/** @typedef {Admin<'Cluster'>} State @typedef {Admin<'Member'>} Node */

/** From then on, a node without news refuses devices and lasting tokens, in ms. */
const OLD = 4000;

/** How many devices of a node are named. */
const NAMED = 4;

const LEAD = t('Several yayas that share devices, tokens, agents and the audit.');

export default function Cluster() {
  const cluster = useLoaded('/api/cluster', ['agents']);
  const [open, setOpen] = useState(/** @type {{invite?: true, remove?: string} | null} */ (null));
  const d = cluster.data;
  return html`<${View}
    title=${t('Cluster')}
    lead=${d?.node && LEAD}
    actions=${d?.node &&
    html`<button type="button" class="primary" onClick=${() => setOpen({ invite: true })}>
      <${Icon} of="plus" />
      ${t('Invite a node')}
    </button>`}>
    <${Of} of=${cluster}>
      ${(/** @type {State} */ c) =>
        c.node
          ? html`
              <${Log} c=${c} />
              <${Nodes} c=${c} remove=${(/** @type {string} */ n) => setOpen({ remove: n })} />
            `
          : html`<${Alone} />`}
    <//>
    ${open?.invite && d && html`<${Invite} c=${d} done=${() => setOpen(null)} />`}
    ${open?.remove &&
    d &&
    html`<${Remove} c=${d} name=${open.remove} done=${() => setOpen(null)} />`}
  <//>`;
}

const Alone = () => html`
  <p>
    ${t(
      'This yaya is alone. In a cluster, several yayas share devices, tokens, agents and the audit, and of three one may fail.',
    )}
  </p>
  <p>${t('To make this yaya the first node, stop it and run on its machine:')}</p>
  <${Command} text="yaya cluster init --listen HOST:PORT" label=${t('The nodes keep the log')} />
  <p>
    ${t(
      'HOST:PORT is the address at which the other nodes reach this machine. If NATS servers of your own are to keep the log:',
    )}
  </p>
  <${Command} text="yaya cluster init --nats URL" label=${t('NATS servers keep the log')} />
`;

/** How many of the servers that keep the log may fail. @param {number} n */
const spare = (n) => Math.floor((n - 1) / 2);

/** @param {{c: State}} p */
function Log({ c }) {
  const s = c.status;
  const since = c.quorum_since && html`<${Time} at=${c.quorum_since} />`;
  return html`
    ${!s.quorum &&
    html`<p class="problem" role="alert">
      ${since
        ? rich(
            'No changes can be made since {time}: this node reaches no majority of the servers that keep the log. The view may be out of date. Start the nodes or servers that are down, or mend the network between them.',
            { time: since },
          )
        : t(
            'No changes can be made: this node reaches no majority of the servers that keep the log. The view may be out of date. Start the nodes or servers that are down, or mend the network between them.',
          )}
    </p>`}
    <section class="box">
      <header><h2>${t('Log')}</h2></header>
      <div class="body">
        <dl>
          <dt>${t('State')}</dt>
          <dd>
            <${Mark} state=${s.state} />
            ${' '}
            ${s.quorum &&
            (since
              ? rich('changes can be made since {time}', { time: since })
              : t('changes can be made'))}
          </dd>
          <dt>${t('Leader')}</dt>
          <dd>
            ${rich('{leader}, term {term}', {
              leader: s.leader ? html`<${Name} text=${s.leader} max=${64} />` : t('none'),
              term: s.term,
            })}
          </dd>
          <dt>${t('Last entry')}</dt>
          <dd>${s.raft_log_index}</dd>
          <dt>${t('Servers')}</dt>
          <dd>
            ${s.node_count > 0
              ? s.quorum
                ? t('{n} keep the log, {spare} may fail', {
                    n: s.node_count,
                    spare: spare(s.node_count),
                  })
                : t('{n} keep the log, {least} have to run', {
                    n: s.node_count,
                    least: s.node_count - spare(s.node_count),
                  })
              : t('unknown while none answers')}
          </dd>
          <dt>${t('This node')}</dt>
          <dd><${Lag} c=${c} /></dd>
        </dl>
      </div>
    </section>
  `;
}

/** @param {{c: State}} p */
function Lag({ c }) {
  if (c.behind_ms === undefined)
    return html`<span class="bad">${t('has not heard of the log yet')}</span>`;
  if (c.behind_ms < OLD)
    return c.status.quorum
      ? t('is up to date, {time} behind at most', { time: ms(c.behind_ms) })
      : t('may be behind');
  return html`<span class="bad">
    ${t('has had no news for {time}, and refuses devices and lasting tokens', {
      time: ms(c.behind_ms),
    })}
  </span>`;
}

/** @param {{c: State, remove: (name: string) => void}} p */
function Nodes({ c, remove }) {
  const all = c.members ?? [];
  const routes = all.some((m) => m.route);
  const head = [
    t('Node'),
    ...(routes ? [t('Address')] : []),
    ...[t('Kernel'), t('Agents'), t('Devices'), t('Started'), t('Joined')],
    ...(all.length > 1 ? [null] : []),
  ];
  return html`<section class="box">
    <header><h2>${t('Nodes')}</h2></header>
    <${Table}
      label=${t('Nodes')}
      head=${head}
      rows=${all}
      empty=${t('No nodes.')}
      row=${(/** @type {Node} */ m) => {
        const kernel = c.kernels?.find((k) => k.kernel_id === m.kernel_id);
        return html`<tr key=${m.name}>
          <td>
            <b><${Name} text=${m.name} max=${63} /></b>
            ${m.name === c.node && html` <span class="badge">${t('this one')}</span>`}
          </td>
          ${routes && html`<td><code><${Name} text=${m.route || '–'} max=${260} /></code></td>`}
          <td>
            ${kernel
              ? html`<${Mark} state=${kernel.status} />`
              : html`<span class="muted">–</span>`}
            ${kernel?.status !== 'connected' &&
            kernel?.last_seen &&
            html`
              ${' '}
              <small class="muted">
                ${rich('heard of {time}', { time: html`<${Time} at=${kernel.last_seen} />` })}
              </small>
            `}
          </td>
          <td>
            ${c.agents?.filter((a) => m.kernel_id && a.kernel_id === m.kernel_id).length ?? 0}
          </td>
          <td><${Devices} all=${m.devices ?? []} /></td>
          <td>
            ${m.started_at
              ? html`<${Time} at=${m.started_at} />`
              : html`<span class="muted">${t('not yet')}</span>`}
          </td>
          <td><${Time} at=${m.joined_at} /></td>
          ${all.length > 1 &&
          html`<td>
            <button
              type="button"
              class="small danger"
              aria-label=${t('Remove {name}', { name: plain(m.name) })}
              onClick=${() => remove(m.name)}>
              ${t('Remove …')}
            </button>
          </td>`}
        </tr>`;
      }} />
  </section>`;
}

/** @param {{all: string[]}} p */
const Devices = ({ all }) =>
  all.length
    ? html`
        ${all
          .slice(0, NAMED)
          .map((x, i) => html`${i > 0 && ', '}<${Name} key=${x} text=${x} max=${40} />`)}
        ${all.length > NAMED && ' ' + t('and {n} more', { n: all.length - NAMED })}
      `
    : html`<span class="muted">${t('none')}</span>`;
