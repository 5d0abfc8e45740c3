// Long-lived tokens for clients on other machines: create, show once, revoke.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Copy } from './copy.js';
import { may, useLoaded } from './state.js';
import { Confirm, Dialog } from './dialog.js';
import { plain } from './text.js';
import { Scopes, summary } from './scopes.js';
import { Do, Empty, Field, html, Name, Of, State, Time, typed } from './ui.js';
import { rich, t } from './words.js';

const DAYS = [
  ['30', t('30 days')],
  ['90', t('90 days')],
  ['365', t('a year')],
  ['', t('never')],
];

/** @param {{done: () => void}} p */
function Create({ done }) {
  const servers = useLoaded(may('config:read') ? '/api/mcp/servers' : null, ['servers']);
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const [scopes, setScopes] = useState(new Set(['tools:call']));
  const [only, setOnly] = useState(/** @type {Set<string>} */ (new Set()));
  const [made, setMade] = useState(/** @type {Admin<'NewToken'> | null} */ (null));
  if (made) {
    return html`<${Dialog} title=${t('The token')} onClose=${done}>
      <p>
        ${rich('It is shown this once. A client sends it as {header}', {
          header: html`<code>Authorization: Bearer …</code>`,
        })}
      </p>
      <p class="big"><code>${plain(made.token)}</code> <${Copy} text=${made.token} /></p>
      <div class="buttons">
        <button type="button" class="primary" onClick=${done}>${t('Done')}</button>
      </div>
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
  return html`<${Dialog} title=${t('Create a token')} onClose=${done}>
    <${Field}
      label=${t('Name')}
      hint=${t('Rules, profiles and the audit log refer to the client as token:NAME.')}>
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${name} spellcheck="false" onInput=${typed(setName)} />`}
    <//>
    <${Field} label=${t('Expires after')}>
      ${(/** @type {string} */ id) =>
        html`<select id=${id} value=${days} onChange=${typed(setDays)}>
          ${DAYS.map(([v, what]) => html`<option value=${v}>${what}</option>`)}
        </select>`}
    <//>
    ${servers.data &&
    servers.data.length > 0 &&
    html`<fieldset class="scopes">
      <legend>${t('Only for these servers (none: for all)')}</legend>
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
      ? html`<p class="muted">${t('A token for selected servers can only call their tools.')}</p>`
      : html`<${Scopes} value=${scopes} set=${setScopes} token />`}
    <div class="buttons">
      <button type="button" onClick=${done}>${t('Cancel')}</button>
      <${Do} arm kind="primary" disabled=${!name.trim()} run=${make}>${t('Create')}<//>
    </div>
  <//>`;
}

/** @param {{x: Admin<'LastingInfo'>, manage: boolean}} p */
const Row = ({ x, manage }) =>
  html`<tr role="row">
    <td role="cell" class="p1"><b class="strong"><${Name} text=${x.name} max=${64} /></b></td>
    <td role="cell" class="p2"><${State} state=${x.status} /></td>
    <td role="cell" class="wide">
      <small title=${x.scopes.join(', ')}>${summary(x.scopes)}</small>
    </td>
    <td role="cell" class="wide">
      ${x.servers?.length
        ? html`<${Name} text=${x.servers.join(', ')} max=${80} />`
        : t('all servers')}
    </td>
    <td role="cell">${x.expires_at ? html`<${Time} at=${x.expires_at} />` : t('never')}</td>
    <td role="cell">${x.last_used ? html`<${Time} at=${x.last_used} />` : t('never')}</td>
    <td role="cell" class="p3">
      <span class="only-narrow faint">${summary(x.scopes)}</span>
      ${manage &&
      html`<span class="acts">
        <${Confirm}
          kind="small danger"
          label=${t('Revoke {name}', { name: plain(x.name) })}
          yes=${t('Revoke')}
          ask=${rich(
            'Clients with the token {name} lose access at once, and their connections are closed.',
            {
              name: html`<b><${Name} text=${x.name} /></b>`,
            },
          )}
          run=${() => api('DELETE', `/api/tokens/${seg(x.name)}`)}>
          ${t('Revoke')}
        <//>
      </span>`}
    </td>
  </tr>`;

export function Tokens() {
  const tokens = useLoaded('/api/tokens', ['devices']);
  const [open, setOpen] = useState(false);
  const manage = may('devices:manage');
  return html`
    <section class="box" aria-label=${t('Tokens')}>
      <header>
        <h2>${t('Tokens')}</h2>
        <span class="faint">
          ${t('For MCP clients on other machines that do not have their own key.')}
        </span>
        ${manage &&
        html`<button type="button" class="small end" onClick=${() => setOpen(true)}>
          ${t('Create a token')}
        </button>`}
      </header>
      <${Of} of=${tokens}>
        ${(/** @type {Admin<'LastingInfo'>[]} */ d) =>
          d.length
            ? html`<table class="list" role="table" aria-label=${t('Tokens')}>
                <thead role="rowgroup">
                  <tr role="row">
                    <th role="columnheader">${t('Token')}</th>
                    <th role="columnheader">${t('State')}</th>
                    <th role="columnheader" class="wide">${t('May')}</th>
                    <th role="columnheader" class="wide">${t('Servers')}</th>
                    <th role="columnheader">${t('Expires')}</th>
                    <th role="columnheader">${t('Last used')}</th>
                    <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
                  </tr>
                </thead>
                <tbody role="rowgroup">
                  ${d.map((x) => html`<${Row} key=${x.name} x=${x} manage=${manage} />`)}
                </tbody>
              </table>`
            : html`<${Empty}>${t('There are no tokens.')}<//>`}
      <//>
    </section>
    ${open && html`<${Create} done=${() => setOpen(false)} />`}
  `;
}
