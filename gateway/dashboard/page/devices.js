// Devices: waiting and enrolled ones, and their rights.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Confirm } from './dialog.js';
import { Invite } from './invite.js';
import { Choose, DEFAULT, Scopes } from './scopes.js';
import { may, page, useLoaded } from './state.js';
import { plain } from './text.js';
import { Tokens } from './tokens.js';
import { Badge, Do, html, Name, Of, Table, Time, View } from './ui.js';

/** The dialog that is open.
 * @typedef {{invite?: true, approve?: Admin<'DeviceInfo'>, scopes?: Admin<'DeviceInfo'>}} Open */

export default function Devices() {
  const devices = useLoaded('/api/devices', ['devices']);
  const setup = useLoaded(may('config:read') ? '/api/setup' : null, []);
  const [open, setOpen] = useState(/** @type {Open | null} */ (null));
  const done = () => setOpen(null);
  const { approve, scopes } = open ?? {};
  const me = page.me.use();
  return html`<${View}
    title="Devices"
    lead="Phones, other machines, other browsers. Each has its own key, and rights that you can revoke at once."
    actions=${may('devices:approve') &&
    html`<button type="button" class="primary" onClick=${() => setOpen({ invite: true })}>
      Add a device
    </button>`}>
    <${Of} of=${devices}>
      ${(/** @type {Admin<'DeviceInfo'>[]} */ d) =>
        html`<${Table}
          label="Devices"
          head=${['Device', 'State', 'Open', 'May', 'Since', null]}
          rows=${d}
          empty="There are no devices. Add one, or open this page on it."
          row=${(/** @type {Admin<'DeviceInfo'>} */ x) => html`<tr key=${x.request_id ||
          x.device_id}>
            <td>
              <b><${Name} text=${x.label || x.device_id} max=${64} /></b>
              ${x.device_id === me?.id && html` <span class="badge">this one</span>`}
              <br />
              <small class="muted">
                <code><${Name} text=${x.device_id} max=${48} /></code>
                ${x.peer && html` from ${plain(x.peer)}`}
              </small>
            </td>
            <td><${Badge} state=${x.status} /></td>
            <td>${x.connections}</td>
            <td><small>${(x.scopes ?? []).join(', ') || '–'}</small></td>
            <td><${Time} at=${x.since} /></td>
            <td class="buttons">
              ${x.status === 'pending' &&
              may('devices:approve') &&
              html`
                <button
                  type="button"
                  class="small primary"
                  onClick=${() => setOpen({ approve: x })}>
                  Approve …
                </button>
                <${Do}
                  kind="small"
                  run=${() => api('POST', '/api/devices/reject', { request: x.request_id ?? '' })}>
                  Reject
                <//>
              `}
              ${x.status === 'active' &&
              may('devices:manage') &&
              html`
                <button type="button" class="small" onClick=${() => setOpen({ scopes: x })}>
                  Rights …
                </button>
                <${Confirm}
                  kind="small danger"
                  label=${`Revoke ${plain(x.label || x.device_id)}`}
                  yes="Revoke"
                  ask=${html`
                    <b><${Name} text=${x.label || x.device_id} /></b> loses access at once, and its
                    connections are closed.
                  `}
                  run=${() => api('POST', `/api/devices/${seg(x.device_id)}/revoke`, {})}>
                  Revoke
                <//>
              `}
            </td>
          </tr>`} />`}
    <//>
    <${Tokens} Scopes=${Scopes} />
    ${open?.invite &&
    html`<${Invite} done=${done} url=${setup.data?.remote ? setup.data.url : ''} />`}
    ${approve &&
    html`<${Choose}
      title="Approve the device"
      yes="Approve"
      start=${DEFAULT}
      done=${done}
      run=${(/** @type {string[]} */ some) =>
        api('POST', '/api/devices/approve', { request: approve.request_id ?? '', scopes: some })}>
      <p>
        <b><${Name} text=${approve.label} /></b> asks from ${plain(approve.peer)}
        . Its id is <code><${Name} text=${approve.device_id} /></code>
        , and its key’s fingerprint <code>${plain(approve.fingerprint)}</code>
        . Does the device show the same?
      </p>
    <//>`}
    ${scopes &&
    html`<${Choose}
      title=${`Rights of ${scopes.label || scopes.device_id}`}
      yes="Change"
      start=${scopes.scopes}
      done=${done}
      run=${(/** @type {string[]} */ some) =>
        api('PUT', `/api/devices/${seg(scopes.device_id)}/scopes`, { scopes: some })} />`}
  <//>`;
}
