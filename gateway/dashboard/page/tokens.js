// Long-lived tokens for clients on other machines: create, show once, revoke.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Copy } from './copy.js';
import { may, useLoaded } from './state.js';
import { Confirm, Dialog } from './dialog.js';
import { plain } from './text.js';
import { Badge, Do, Field, html, Name, Of, Table, Time, typed } from './ui.js';

const DAYS = [
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'a year'],
  ['', 'never'],
];

/** @param {{done: () => void, Scopes: typeof import('./scopes.js').Scopes}} p */
function Create({ done, Scopes }) {
  const servers = useLoaded(may('config:read') ? '/api/mcp/servers' : null, ['servers']);
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const [scopes, setScopes] = useState(new Set(['tools:call']));
  const [only, setOnly] = useState(/** @type {Set<string>} */ (new Set()));
  const [made, setMade] = useState(/** @type {Admin<'NewToken'> | null} */ (null));
  if (made) {
    return html`<${Dialog} title="The token" onClose=${done}>
      <p>It is shown this once. A client sends it as <code>Authorization: Bearer …</code></p>
      <p class="big"><code>${plain(made.token)}</code> <${Copy} text=${made.token} /></p>
      <div class="buttons"><button type="button" class="primary" onClick=${done}>Done</button></div>
    <//>`;
  }
  const toggle = (/** @type {string} */ s) => {
    const next = new Set(only);
    if (!next.delete(s)) next.add(s);
    setOnly(next);
    if (next.size) setScopes(new Set(['tools:call']));
  };
  const make = async () => {
    const until = days && new Date(Date.now() + Number(days) * 86_400_000).toISOString();
    setMade(
      await api('POST', '/api/tokens', {
        name: name.trim(),
        scopes: [...scopes],
        ...(only.size && { servers: [...only] }),
        ...(until && { expires_at: until }),
      }),
    );
  };
  return html`<${Dialog} title="Create a token" onClose=${done}>
    <${Field}
      label="Name"
      hint="Rules, profiles and the audit log refer to the client as token:NAME.">
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${name} spellcheck="false" onInput=${typed(setName)} />`}
    <//>
    <${Field} label="Expires after">
      ${(/** @type {string} */ id) =>
        html`<select id=${id} value=${days} onChange=${typed(setDays)}>
          ${DAYS.map(([v, what]) => html`<option value=${v}>${what}</option>`)}
        </select>`}
    <//>
    ${servers.data &&
    servers.data.length > 0 &&
    html`<fieldset class="scopes">
      <legend>Only for these servers (none: for all)</legend>
      ${servers.data.map(
        (s) =>
          html`<label>
            <input
              type="checkbox"
              checked=${only.has(s.name)}
              onChange=${() => toggle(s.name)} /> <${Name} text=${s.name} max=${48} />
          </label>`,
      )}
    </fieldset>`}
    ${only.size
      ? html`<p class="muted">A token for selected servers can only call their tools.</p>`
      : html`<${Scopes} value=${scopes} set=${setScopes} token />`}
    <div class="buttons">
      <button type="button" onClick=${done}>Cancel</button>
      <${Do} arm kind="primary" disabled=${!name.trim()} run=${make}>Create<//>
    </div>
  <//>`;
}

/** @param {{Scopes: typeof import('./scopes.js').Scopes}} p */
export function Tokens({ Scopes }) {
  const tokens = useLoaded('/api/tokens', ['devices']);
  const [open, setOpen] = useState(false);
  const manage = may('devices:manage');
  return html`
    <header class="view">
      <h2>Tokens</h2>
      <div class="actions">
        ${manage &&
        html`<button type="button" onClick=${() => setOpen(true)}>Create a token</button>`}
      </div>
    </header>
    <p class="lead">For MCP clients on other machines that do not have their own key.</p>
    <${Of} of=${tokens}>
      ${(/** @type {Admin<'LastingInfo'>[]} */ d) =>
        html`<${Table}
          label="Tokens"
          head=${['Token', 'State', 'May', 'Servers', 'Expires', 'Last used', null]}
          rows=${d}
          empty="There are no tokens."
          row=${(/** @type {Admin<'LastingInfo'>} */ t) => html`<tr key=${t.name}>
            <td><b><${Name} text=${t.name} max=${64} /></b></td>
            <td><${Badge} state=${t.status} /></td>
            <td><small>${t.scopes.join(', ')}</small></td>
            <td>
              <small>
                ${t.servers?.length
                  ? html`<${Name} text=${t.servers.join(', ')} max=${80} />`
                  : 'all'}
              </small>
            </td>
            <td>${t.expires_at ? html`<${Time} at=${t.expires_at} />` : 'never'}</td>
            <td>${t.last_used ? html`<${Time} at=${t.last_used} />` : 'never'}</td>
            <td class="buttons">
              ${manage &&
              html`<${Confirm}
                kind="small danger"
                label=${`Revoke ${plain(t.name)}`}
                yes="Revoke"
                ask=${html`
                  Clients with the token <b><${Name} text=${t.name} /></b> lose access at once, and
                  their connections are closed.
                `}
                run=${() => api('DELETE', `/api/tokens/${seg(t.name)}`)}>
                Revoke
              <//>`}
            </td>
          </tr>`} />`}
    <//>
    ${open && html`<${Create} Scopes=${Scopes} done=${() => setOpen(false)} />`}
  `;
}
