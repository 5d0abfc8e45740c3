// The cluster: the state of its log, its nodes, and how nodes join and leave.
// @ts-check
import { useState } from './vendor/hooks.js';
import { Command } from './copy.js';
import { Dialog } from './dialog.js';
import { useLoaded } from './state.js';
import { ms, plain } from './text.js';
import { count } from './words.js';
import { Badge, Field, html, Name, Of, Table, Time, typed, View } from './ui.js';

/** @typedef {Admin<'Cluster'>} State @typedef {Admin<'Member'>} Node */

/** From then on, a node without news refuses devices and lasting tokens, in ms. */
const OLD = 4000;

/** How many devices of a node are named. */
const NAMED = 4;

const LEAD = 'Several yayas that share devices, tokens, agents and the audit.';

export default function Cluster() {
  const cluster = useLoaded('/api/cluster', ['agents']);
  const [open, setOpen] = useState(/** @type {{invite?: true, remove?: string} | null} */ (null));
  const d = cluster.data;
  return html`<${View}
    title="Cluster"
    lead=${d?.node && LEAD}
    actions=${d?.node &&
    html`<button type="button" class="primary" onClick=${() => setOpen({ invite: true })}>
      Invite a node
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
    This yaya is alone. In a cluster, several yayas share devices, tokens, agents and the audit, and
    of three one may fail.
  </p>
  <p>To make this yaya the first node, stop it and run on its machine:</p>
  <${Command} text="yaya cluster init --listen HOST:PORT" label="The nodes keep the log" />
  <p>
    HOST:PORT is the address at which the other nodes reach this machine. If NATS servers of your
    own are to keep the log:
  </p>
  <${Command} text="yaya cluster init --nats URL" label="NATS servers keep the log" />
`;

/** How many of the servers that keep the log may fail. @param {number} n */
const spare = (n) => Math.floor((n - 1) / 2);

/** @param {{c: State}} p */
function Log({ c }) {
  const s = c.status;
  const since = c.quorum_since && html` since <${Time} at=${c.quorum_since} />`;
  return html`
    ${!s.quorum &&
    html`<p class="problem" role="alert">
      No changes can be made${since}: this node reaches no majority of the servers that keep the
      log. The view may be out of date. Start the nodes or servers that are down, or mend the
      network between them.
    </p>`}
    <h2>Log</h2>
    <dl>
      <dt>State</dt>
      <dd><${Badge} state=${s.state} /> ${s.quorum && html`changes can be made${since}`}</dd>
      <dt>Leader</dt>
      <dd>${s.leader ? html`<${Name} text=${s.leader} max=${64} />` : 'none'}, term ${s.term}</dd>
      <dt>Last entry</dt>
      <dd>${s.raft_log_index}</dd>
      <dt>Servers</dt>
      <dd>
        ${s.node_count > 0
          ? `${count(s.node_count, '{n} keeps', '{n} keep')} the log, ${s.quorum ? `${spare(s.node_count)} may fail` : `${s.node_count - spare(s.node_count)} have to run`}`
          : 'unknown while none answers'}
      </dd>
      <dt>This node</dt>
      <dd><${Lag} c=${c} /></dd>
    </dl>
  `;
}

/** @param {{c: State}} p */
function Lag({ c }) {
  if (c.behind_ms === undefined) return html`<span class="bad">has not heard of the log yet</span>`;
  if (c.behind_ms < OLD)
    return c.status.quorum ? `is up to date, ${ms(c.behind_ms)} behind at most` : 'may be behind';
  return html`<span class="bad">
    has had no news for ${ms(c.behind_ms)}
    , and refuses devices and lasting tokens
  </span>`;
}

/** @param {{c: State, remove: (name: string) => void}} p */
function Nodes({ c, remove }) {
  const all = c.members ?? [];
  const routes = all.some((m) => m.route);
  const head = [
    'Node',
    ...(routes ? ['Address'] : []),
    ...['Kernel', 'Agents', 'Devices', 'Started', 'Joined'],
    ...(all.length > 1 ? [null] : []),
  ];
  return html`
    <h2>Nodes</h2>
    <${Table}
      label="Nodes"
      head=${head}
      rows=${all}
      empty="No nodes."
      row=${(/** @type {Node} */ m) => {
        const kernel = c.kernels?.find((k) => k.kernel_id === m.kernel_id);
        return html`<tr key=${m.name}>
          <td>
            <b><${Name} text=${m.name} max=${63} /></b>
            ${m.name === c.node && html` <span class="badge">this one</span>`}
          </td>
          ${routes && html`<td><code><${Name} text=${m.route || '–'} max=${260} /></code></td>`}
          <td>
            ${kernel
              ? html`<${Badge} state=${kernel.status} />`
              : html`<span class="muted">–</span>`}
            ${kernel?.status !== 'connected' &&
            kernel?.last_seen &&
            html` <small class="muted">heard of <${Time} at=${kernel.last_seen} /></small>`}
          </td>
          <td>
            ${c.agents?.filter((a) => m.kernel_id && a.kernel_id === m.kernel_id).length ?? 0}
          </td>
          <td><${Devices} all=${m.devices ?? []} /></td>
          <td>
            ${m.started_at
              ? html`<${Time} at=${m.started_at} />`
              : html`<span class="muted">not yet</span>`}
          </td>
          <td><${Time} at=${m.joined_at} /></td>
          ${all.length > 1 &&
          html`<td>
            <button
              type="button"
              class="small danger"
              aria-label=${`Remove ${plain(m.name)}`}
              onClick=${() => remove(m.name)}>
              Remove …
            </button>
          </td>`}
        </tr>`;
      }} />
  `;
}

/** @param {{all: string[]}} p */
const Devices = ({ all }) =>
  all.length
    ? html`
        ${all
          .slice(0, NAMED)
          .map((x, i) => html`${i > 0 && ', '}<${Name} key=${x} text=${x} max=${40} />`)}
        ${all.length > NAMED && ` and ${all.length - NAMED} more`}
      `
    : html`<span class="muted">none</span>`;

/** The address of a yaya as a word of a command line; "" if it cannot be one.
 * @param {string} text */
function address(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  const at = url ? (url.origin + url.pathname).replace(/\/$/, '') : '';
  if (!/^https?:\/\/[A-Za-z0-9.:[\]_~/-]+$/.test(at)) return '';
  return at.includes('[') ? `'${at}'` : at;
}

const LOOPBACK = /^'?https?:\/\/(localhost|127\.|\[::1\])/;

/** Invitations hand out the identity of the cluster: yaya takes the command over its socket only,
 * from the user that runs it, so the page shows it.
 * @param {{c: State, done: () => void}} p */
function Invite({ c, done }) {
  const [at, setAt] = useState(location.origin);
  const [before] = useState(new Set(c.members?.map((m) => m.name)));
  const url = address(at);
  const come = c.members?.filter((m) => !before.has(m.name)) ?? [];
  return html`<${Dialog} title="Invite a node" onClose=${done}>
    <${Field}
      label="Address of this yaya for the new node"
      hint=${LOOPBACK.test(url)
        ? 'Other machines do not reach this address: enter the one at which they do.'
        : 'http://… or https://… as the new node reaches it.'}>
      ${(/** @type {string} */ id) =>
        html`<input
          id=${id}
          value=${at}
          maxlength="1024"
          spellcheck="false"
          onInput=${typed(setAt)} />`}
    <//>
    ${url
      ? html`
          <p>Run on the machine of <b><${Name} text=${c.node} max=${63} /></b>:</p>
          <${Command} text=${`yaya cluster invite --url ${url}`} label="The command that invites" />
        `
      : html`<p class="problem" role="alert">
          This is not the address of a yaya, such as https://gate.example:8787.
        </p>`}
    <p>
      It prints the command for the other machine, where yaya has to be stopped.
      ${c.members?.some((m) => m.route) &&
      html` Replace <code>HOST:PORT</code> in it with the address at which the other nodes reach
        that machine.
      `}
    </p>
    <p>
      The invitation works once, and expires half an hour after you run the command. Whoever has it
      can become a node, which has all rights: pass it on as you would a password.
    </p>
    ${come.map(
      (m) =>
        html`<p key=${m.name} class="boxed" role="status">
          <b><${Name} text=${m.name} max=${63} /></b> has joined.
        </p>`,
    )}
    <div class="buttons"><button type="button" class="primary" onClick=${done}>Done</button></div>
  <//>`;
}

/** @param {{c: State, name: string, done: () => void}} p */
function Remove({ c, name, done }) {
  const all = c.members ?? [];
  const gone = !all.some((m) => m.name === name);
  const own = all.some((m) => m.route);
  if (gone)
    return html`<${Dialog} title=${`Remove ${name}`} onClose=${done}>
      <p role="status"><b><${Name} text=${name} max=${63} /></b> is no longer a node.</p>
      <div class="buttons"><button type="button" class="primary" onClick=${done}>Done</button></div>
    <//>`;
  return html`<${Dialog} title=${`Remove ${name}`} onClose=${done}>
    <p>
      <b><${Name} text=${name} max=${63} /></b> stops when it hears of its removal, and cannot start
      again as a node. Its sessions, servers and settings stay on its machine, and no other node
      reaches them.
      ${name === c.node && ' This page is served by that node, and ends with it.'}
    </p>
    ${own &&
    all.length === 2 &&
    html`<p class="notice">Of two nodes, both have to run for a removal.</p>`}
    ${own &&
    all.length === 3 &&
    html`<p class="notice">Two nodes remain. Without either of them, no changes can be made.</p>`}
    <p>
      It has had the identity key of the cluster. If you no longer trust it, run${' '}
      <code>yaya device rotate-keys --drop-earlier</code> afterwards, and
      ${own
        ? ' close the port of the nodes to its machine.'
        : ' change the credentials of the NATS servers.'}
    </p>
    ${/^[a-z0-9][a-z0-9-]{0,62}$/.test(name) &&
    html`
      <p>To remove it, run on the machine of any node that stays:</p>
      <${Command} text=${`yaya cluster remove ${name}`} label="The command that removes the node" />
    `}
    <div class="buttons"><button type="button" onClick=${done}>Cancel</button></div>
  <//>`;
}
