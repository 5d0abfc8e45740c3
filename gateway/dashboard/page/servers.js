// MCP servers: their state and their configuration. Before a change, the page shows exactly
// what would run.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Command } from './copy.js';
import { Confirm } from './dialog.js';
import { Edit } from './editserver.js';
import { href, may, useLoaded } from './state.js';
import { count, ms, plain, pretty } from './text.js';
import { Badge, Do, html, Name, Of, Pre, Table, Time, View } from './ui.js';

/** @param {{rest: string[]}} p */
export default function Servers({ rest: [name, part] }) {
  const servers = useLoaded('/api/mcp/servers', ['servers']);
  const [edit, setEdit] = useState(
    /** @type {Admin<'Server'> | 'new' | null} */ (!name && part === 'new' ? 'new' : null),
  );
  const write = may('config:write');
  const one = name ? servers.data?.find((s) => s.name === name) : null;
  const dialog =
    edit &&
    html`<${Edit} server=${edit === 'new' ? undefined : edit} done=${() => setEdit(null)} />`;
  if (name && servers.data && !one)
    return html`<${View} title=${name}>
      <p class="empty">Server not found. <a href=${href('servers')}>All servers</a></p>
    <//>`;
  if (one) return html`<${One} s=${one} edit=${() => setEdit(one)} write=${write} />${dialog}`;
  return html`<${View}
    title="Servers"
    actions=${write &&
    html`
      <a class="button" href=${href('start')}>Import</a>
      <button type="button" class="primary" onClick=${() => setEdit('new')}>Add a server</button>
    `}>
    <${Of} of=${servers}>
      ${(/** @type {Admin<'Server'>[]} */ d) =>
        html`<${Table}
          label="MCP servers"
          head=${['Server', 'State', 'Tools', 'Calls', 'p50', 'p95', 'Errors', 'Started in']}
          rows=${d}
          empty=${html`
            No servers are
            configured. <a href=${href('start')}>Import those of your other clients</a>, or add one.
          `}
          row=${(/** @type {Admin<'Server'>} */ s) => html`<tr key=${s.name}>
            <td>
              <a href=${href('servers', s.name)}><${Name} text=${s.name} /></a>
              <br />
              <small class="muted"><code><${Name} text=${s.endpoint} max=${60} /></code></small>
            </td>
            <td>
              <${Badge} state=${s.state} />
              ${s.reason &&
              html`<br /><small class="muted"><${Name} text=${s.reason} max=${120} /></small>`}
            </td>
            <td>${s.tools}</td>
            <td>${s.calls.total}</td>
            <td>${s.calls.total ? ms(s.calls.p50_ms) : '–'}</td>
            <td>${s.calls.total ? ms(s.calls.p95_ms) : '–'}</td>
            <td class=${s.calls.errors ? 'bad' : ''}>${s.calls.errors}</td>
            <td>${s.start_ms ? ms(s.start_ms) : '–'}</td>
          </tr>`} />`}
    <//>
    ${dialog}
  <//>`;
}

/** The sandbox of a server's process, its enforced parts, and its refusals.
 * @param {{of: Admin<'ServerSandbox'>, server: string}} p */
function Sandbox({ of, server }) {
  const open = of.profile === 'off' || of.backend === 'off';
  return html`
    <h2>Sandbox</h2>
    ${open &&
    html`<p class="problem">
      ${of.profile === 'off'
        ? html`
            <b>Outside the sandbox.</b> It runs with all rights of your user, and can read and
            change yaya's own files.
          `
        : html`
            <b>Nothing is enforced.</b> It runs with all rights of your user, although it should be
            sandboxed:
          `}
    </p>`}
    ${of.profile !== 'off' && html`<p><${Name} text=${of.allowed} max=${4096} /></p>`}
    ${!open &&
    of.backend &&
    html`<dl>
      <dt>Enforced</dt>
      <dd>${(of.enforced ?? []).join(', ') || 'nothing'} (${plain(of.backend)})</dd>
      ${!!of.missing?.length &&
      html`
        <dt>Not enforced, or only in part</dt>
        <dd>
          <ul class="plain">
            ${of.missing.map(
              (/** @type {string} */ m) => html`<li><${Name} text=${m} max=${1000} /></li>`,
            )}
          </ul>
        </dd>
      `}
      ${!!of.breaks?.length &&
      html`
        <dt>Does not work here</dt>
        <dd>
          <ul class="plain">
            ${of.breaks.map(
              (/** @type {string} */ m) => html`<li><${Name} text=${m} max=${1000} /></li>`,
            )}
          </ul>
        </dd>
      `}
    </dl>`}
    ${!!of.denied?.length &&
    html`
      <h3>What it was kept from</h3>
      <ul class="plain changes">
        ${of.denied.map(
          (d) =>
            html`<li key=${d.what}>
              <${Name} text=${d.what} max=${1024} />
              ${d.allow &&
              html`<${Command}
                text=${d.allow}
                label=${`The command that allows ${plain(server)} this`} />`}
            </li>`,
        )}
      </ul>
    `}
    <p><a href=${href('sandbox')}>What sandboxes enforce here</a></p>
  `;
}

/** @param {{s: Admin<'Server'>, edit: () => void, write: boolean}} p */
function One({ s, edit, write }) {
  return html`<${View}
    title=${s.name}
    actions=${write &&
    html`
      ${!['disabled', 'waiting'].includes(s.state) &&
      html`<${Do} run=${() => api('POST', `/api/mcp/servers/${seg(s.name)}/restart`)}>Restart<//>`}
      ${s.editable &&
      html`
        <button type="button" onClick=${edit}>Change</button>
        <${Confirm}
          kind="danger"
          yes="Remove"
          ask=${html`
            <b><${Name} text=${s.name} /></b> is stopped and taken out of the configuration.
          `}
          run=${async () => {
            await api('DELETE', `/api/mcp/servers/${seg(s.name)}`);
            location.hash = href('servers');
          }}>
          Remove
        <//>
      `}
    `}>
    <p>
      <${Badge} state=${s.state} /> ${s.reason && html`<${Name} text=${s.reason} max=${1000} />`}
    </p>
    <dl>
      <dt>${s.transport === 'stdio' ? 'Command' : 'URL'}</dt>
      <dd><code><${Name} text=${s.endpoint} max=${500} /></code></dd>
      <dt>Configured in</dt>
      <dd><code>${plain(s.file)}</code></dd>
      <dt>Since</dt>
      <dd><${Time} at=${s.since} /></dd>
      <dt>Restarts</dt>
      <dd>${s.restarts}</dd>
      <dt>Calls</dt>
      <dd>
        ${s.calls.total}, ${s.calls.errors} failed or refused; p50 ${ms(s.calls.p50_ms)}
        , p95 ${ms(s.calls.p95_ms)}
      </dd>
      ${s.last_error &&
      !['ready', 'installing'].includes(s.state) &&
      s.last_error !== s.reason &&
      html`<dt>Last error</dt><dd><${Name} text=${s.last_error} max=${1000} /></dd>`}
      <dt>Tools</dt>
      <dd><a href=${href('tools', '', s.name)}>${count(s.tools, 'tool', 'tools')}</a></dd>
    </dl>
    ${s.sandbox && html`<${Sandbox} of=${s.sandbox} server=${s.name} />`}
    ${s.state === 'waiting' &&
    html`<p class="notice">
      It does not start until you approve it: <a href=${href('quarantine')}>Quarantine</a>.
    </p>`}
    ${!!s.diagnostics?.length &&
    html`
      <h2>What it has last said</h2>
      <${Pre}
        text=${s.diagnostics.map((/** @type {string} */ x) => plain(x)).join('\n')}
        label="Diagnostics" />
    `}
    ${s.stderr &&
    html`
      <h2>Its standard error</h2>
      <${Pre} text=${plain(s.stderr, true)} label="The last lines of its standard error" />
    `}
    <h2>Configuration</h2>
    <${Pre} text=${pretty(s.config)} label="Configuration, secrets masked" />
  <//>`;
}
