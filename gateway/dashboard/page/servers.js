// MCP servers: their state, and what they are started as. A change is shown as exactly
// what would run before it is (HT-25).
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { Badge, Command, Confirm, Dialog, Do, Field, html, ms, Name, Of, plain, Pre, pretty, Problem, Table, Time, View } from './ui.js';

/** What a change would run: shown whole, and agreed to with a button that waits.
 * @param {{changes: any[], done: () => void, cancel: () => void}} p */
export function Agree({ changes, done, cancel }) {
  const [left, setLeft] = useState(changes);
  const [results, setResults] = useState(/** @type {Map<string, string>} */ (new Map()));
  const drop = (/** @type {any} */ c) => {
    const rest = left.filter((x) => x !== c);
    setLeft(rest);
    if (!rest.length) done();
  };
  const apply = async (/** @type {any[]} */ list) => {
    const failed = new Map(results);
    /** @type {any[]} */
    const rest = left.filter((c) => !list.includes(c));
    for (const c of list) {
      try {
        await api('POST', `/api/mcp/changes/${seg(c.id)}/apply`);
      } catch (e) {
        failed.set(c.id, /** @type {any} */ (e).message);
        rest.push(c);
      }
    }
    setResults(failed);
    setLeft(rest);
    if (!rest.length) done();
  };
  return html`<${Dialog} wide title=${left.length === 1 ? 'This would run' : `These ${left.length} would run`} onClose=${cancel}>
    <p>yaya starts these on this machine, as you, or talks to them. Agree only to what you know.</p>
    <ul class="plain changes">${left.map((c) => html`<li key=${c.id}><b><${Name} text=${c.server} /></b> <small class="muted">${c.action === 'add' ? 'new' : 'changed'}</small>
      <${Pre} all text=${c.runs} label=${`What ${plain(c.server)} would run`} />
      ${(c.notes ?? []).map((/** @type {string} */ n) => html`<p class="muted"><${Name} text=${n} max=${300} /></p>`)}
      <${Problem} error=${results.get(c.id)} />
      ${left.length > 1 && html`<${Do} kind="small" run=${async () => { await api('DELETE', `/api/mcp/changes/${seg(c.id)}`).catch(() => {}); drop(c); }}>Leave out<//>`}</li>`)}</ul>
    <div class="buttons"><button type="button" onClick=${cancel}>Cancel</button><${Do} arm kind="primary" run=${() => apply(left)}>${left.length === 1 ? 'Agree' : 'Agree to all'}<//></div><//>`;
}

const NEW = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'], env: {} };

/** @param {{server?: any, done: () => void}} p */
function Edit({ server, done }) {
  const [name, setName] = useState(server?.name ?? '');
  const [text, setText] = useState(JSON.stringify(server?.config ?? NEW, null, 2));
  const [change, setChange] = useState(/** @type {any} */ (null));
  const propose = async () => {
    let config;
    try {
      config = JSON.parse(text);
    } catch (e) {
      throw new Error(`That is no JSON: ${/** @type {any} */ (e).message}`);
    }
    setChange(server ? await api('PUT', `/api/mcp/servers/${seg(server.name)}`, { config }) : await api('POST', '/api/mcp/servers', { name: name.trim(), config }));
  };
  if (change) return html`<${Agree} changes=${[change]} done=${done} cancel=${() => setChange(null)} />`;
  return html`<${Dialog} wide title=${server ? `Change ${server.name}` : 'Add a server'} onClose=${done}>
    ${!server && html`<${Field} label="Name" hint="Its tools are called name__tool.">${(/** @type {string} */ id) => html`<input id=${id} value=${name} spellcheck="false" onInput=${(/** @type {any} */ e) => setName(e.target.value)} />`}<//>`}
    <${Field} label="Configuration" hint="As in any client's mcpServers: command, args, env; or type, url, headers. Secrets that are shown as **** stay as they are while the address or the command does.">${(/** @type {string} */ id) => html`<textarea id=${id} rows="12" class="code" spellcheck="false" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea>`}<//>
    <div class="buttons"><button type="button" onClick=${done}>Cancel</button><${Do} kind="primary" disabled=${!server && !name.trim()} run=${propose}>Next<//></div><//>`;
}

/** @param {{rest: string[]}} p */
export default function Servers({ rest: [name] }) {
  const servers = useLoaded('/api/mcp/servers', ['servers']);
  const [edit, setEdit] = useState(/** @type {any} */ (null));
  const write = may('config:write');
  const one = name ? servers.data?.find((/** @type {any} */ s) => s.name === name) : null;
  const dialog = edit && html`<${Edit} server=${edit === 'new' ? undefined : edit} done=${() => setEdit(null)} />`;
  if (name && servers.data && !one) return html`<${View} title=${name}><p class="empty">There is no such server. <a href=${href('servers')}>All servers</a></p><//>`;
  if (one) return html`<${One} s=${one} edit=${() => setEdit(one)} write=${write} />${dialog}`;
  return html`<${View} title="MCP servers" actions=${write && html`<a class="button" href=${href('start')}>Import</a><button type="button" class="primary" onClick=${() => setEdit('new')}>Add a server</button>`}>
    <${Of} of=${servers}>${(/** @type {any[]} */ d) => html`<${Table} label="MCP servers" head=${['Server', 'State', 'Tools', 'Calls', 'p50', 'p95', 'Errors', 'Started in']} rows=${d} empty=${html`No server is configured. <a href=${href('start')}>Import those of your other clients</a>, or add one.`} row=${(/** @type {any} */ s) => html`<tr key=${s.name}>
      <td><a href=${href('servers', s.name)}><${Name} text=${s.name} /></a><br /><small class="muted"><code><${Name} text=${s.endpoint} max=${60} /></code></small></td>
      <td><${Badge} state=${s.state} />${s.reason && html`<br /><small class="muted"><${Name} text=${s.reason} max=${120} /></small>`}</td>
      <td>${s.tools}</td><td>${s.calls.total}</td><td>${s.calls.total ? ms(s.calls.p50_ms) : '–'}</td><td>${s.calls.total ? ms(s.calls.p95_ms) : '–'}</td><td class=${s.calls.errors ? 'bad' : ''}>${s.calls.errors}</td><td>${s.start_ms ? ms(s.start_ms) : '–'}</td></tr>`} />`}<//>${dialog}<//>`;
}

/** What a server's process runs in, what that enforces, and what it was kept from.
 * @param {{of: any, server: string}} p */
function Sandbox({ of, server }) {
  const open = of.profile === 'off' || of.backend === 'off';
  return html`<h2>Sandbox</h2>
    ${open && html`<p class="problem">${of.profile === 'off' ? html`<b>Outside of the sandbox.</b> It runs with all rights of your user, and can read and change what belongs to yaya.` : html`<b>Nothing is enforced.</b> It runs with all rights of your user, although it is to run in one:`}</p>`}
    ${of.profile !== 'off' && html`<p><${Name} text=${of.allowed} max=${4096} /></p>`}
    ${!open && of.backend && html`<dl><dt>Enforced</dt><dd>${(of.enforced ?? []).join(', ') || 'nothing'} (${plain(of.backend)})</dd>
      ${of.missing?.length > 0 && html`<dt>Not enforced, or in part</dt><dd><ul class="plain">${of.missing.map((/** @type {string} */ m) => html`<li><${Name} text=${m} max=${1000} /></li>`)}</ul></dd>`}
      ${of.breaks?.length > 0 && html`<dt>Does not work here</dt><dd><ul class="plain">${of.breaks.map((/** @type {string} */ m) => html`<li><${Name} text=${m} max=${1000} /></li>`)}</ul></dd>`}</dl>`}
    ${of.denied?.length > 0 && html`<h3>What it was kept from</h3><ul class="plain changes">${of.denied.map((/** @type {any} */ d) => html`<li key=${d.what}><${Name} text=${d.what} max=${1024} />${d.allow && html`<${Command} text=${d.allow} label=${`The command that allows ${plain(server)} this`} />`}</li>`)}</ul>`}
    <p><a href=${href('sandbox')}>What sandboxes enforce here</a></p>`;
}

/** @param {{s: any, edit: () => void, write: boolean}} p */
function One({ s, edit, write }) {
  return html`<${View} title=${s.name} actions=${write && html`
      ${!['disabled', 'waiting'].includes(s.state) && html`<${Do} run=${() => api('POST', `/api/mcp/servers/${seg(s.name)}/restart`)}>Restart<//>`}
      ${s.editable && html`<button type="button" onClick=${edit}>Change</button>
      <${Confirm} kind="danger" yes="Remove" ask=${html`<b><${Name} text=${s.name} /></b> is stopped and taken out of the configuration.`} run=${async () => { await api('DELETE', `/api/mcp/servers/${seg(s.name)}`); location.hash = href('servers'); }}>Remove<//>`}`}>
    <p><${Badge} state=${s.state} /> ${s.reason && html`<${Name} text=${s.reason} max=${1000} />`}</p>
    <dl><dt>${s.transport === 'stdio' ? 'Command' : 'URL'}</dt><dd><code><${Name} text=${s.endpoint} max=${500} /></code></dd><dt>Configured in</dt><dd><code>${plain(s.file)}</code></dd>
      <dt>Since</dt><dd><${Time} at=${s.since} /></dd><dt>Restarts</dt><dd>${s.restarts}</dd>
      <dt>Calls</dt><dd>${s.calls.total}, ${s.calls.errors} failed; p50 ${ms(s.calls.p50_ms)}, p95 ${ms(s.calls.p95_ms)}</dd>
      ${s.last_error && !['ready', 'installing'].includes(s.state) && s.last_error !== s.reason && html`<dt>Last error</dt><dd><${Name} text=${s.last_error} max=${1000} /></dd>`}
      <dt>Tools</dt><dd><a href=${href('tools', '', s.name)}>${s.tools} tools</a></dd></dl>
    ${s.sandbox && html`<${Sandbox} of=${s.sandbox} server=${s.name} />`}
    ${s.state === 'waiting' && html`<p class="notice">It is not started before somebody agrees to it: <a href=${href('quarantine')}>Quarantine</a>.</p>`}
    ${s.diagnostics?.length > 0 && html`<h2>What it has last said</h2><${Pre} text=${s.diagnostics.map((/** @type {string} */ x) => plain(x)).join('\n')} label="Diagnostics" />`}
    ${s.stderr && html`<h2>Its standard error</h2><${Pre} text=${plain(s.stderr, true)} label="The last lines of its standard error" />`}
    <h2>Configuration</h2><${Pre} text=${pretty(s.config)} label="Configuration, secrets masked" /><//>`;
}
