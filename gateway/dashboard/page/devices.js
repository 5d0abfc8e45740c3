// Devices: those that wait for approval, those that have it, their rights; and lasting tokens.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Confirm } from './dialog.js';
import { Invite } from './invite.js';
import { Choose, DEFAULT, SHORT, summary } from './scopes.js';
import { may, page, useLoaded } from './state.js';
import { style } from './style.js';
import { plain } from './text.js';
import { Tokens } from './tokens.js';
import { Do, Empty, html, Icon, Name, Of, State, Time, View } from './ui.js';
import { count, rich, t } from './words.js';

style('servers');
style('models');
style('devices');

/** @typedef {Admin<'DeviceInfo'>} Device */

/** The dialog that is open. @typedef {{invite?: true, approve?: Device, scopes?: Device}} Open */

/** The question about a device that waits for approval.
 * @param {{x: Device, choose: (x: Device) => void}} p */
const Waiting = ({ x, choose }) =>
  html`<section
    class="ask"
    aria-label=${t('yaya asks: approve {name}?', {
      name: plain(x.label || x.device_id).slice(0, 64),
    })}>
    <header>
      <span class="seal"><${Icon} of="shield" />${t('yaya asks')}</span>
      <h2>
        ${rich('Approve {name}?', {
          name: html`<${Name} text=${x.label || x.device_id} max=${64} />`,
        })}
      </h2>
      <span class="end faint"><${Time} at=${x.since} /></span>
    </header>
    <div class="body flex waits">
      <span class="ico busy"><${Icon} of="device" /></span>
      <div class="grow">
        <p>
          ${rich(
            'It asks from {peer}. It must show the same id as here: if it does not, reject it.',
            {
              peer: plain(x.peer),
            },
          )}
        </p>
        <p class="faint">
          ${rich('The fingerprint of its key is {fingerprint}', {
            fingerprint: html`<code>${plain(x.fingerprint)}</code>`,
          })}
        </p>
      </div>
      <code class="id"><${Name} text=${x.device_id} max=${48} /></code>
    </div>
    ${may('devices:approve') &&
    html`<footer>
      <button type="button" class="primary" onClick=${() => choose(x)}>
        <${Icon} of="check" />
        ${t('Approve …')}
      </button>
      <${Do}
        kind="danger"
        run=${() => api('POST', '/api/devices/reject', { request: x.request_id ?? '' })}>
        ${t('Reject')}
      <//>
    </footer>`}
  </section>`;

/** When a device was seen. @param {{x: Device}} p */
const Seen = ({ x }) =>
  x.connections
    ? html`<span class="state good">
        <span class="dot good"></span>
        ${count(x.connections, '{n} connection', '{n} connections')}
      </span>`
    : x.last_seen
      ? html`<${Time} at=${x.last_seen} />`
      : html`<span class="faint">${t('never')}</span>`;

/** @param {{x: Device, change: (x: Device) => void}} p */
function Row({ x, change }) {
  const me = page.me.use();
  const own = x.device_id === me?.id;
  const label = plain(x.label || x.device_id);
  return html`<tr role="row" class=${x.status === 'active' ? '' : 'gone'}>
    <td role="cell" class="p1">
      <span class="flex">
        <span class="ico"><${Icon} of="device" /></span>
        <span class="two">
          <span>
            <b class="strong"><${Name} text=${label} max=${64} /></b>
            ${own && html` <span class="badge">${t('this one')}</span>`}
          </span>
          <small class="mono cut" title=${plain(x.fingerprint)}>
            <${Name} text=${x.fingerprint} max=${24} />
          </small>
        </span>
      </span>
    </td>
    ${x.status === 'active'
      ? SHORT.map(
          (s) =>
            html`<td role="cell" key=${s.title} class="tick wide">
              ${x.scopes.includes(s.scope)
                ? html`<${Icon} of="check" /><span class="sr">${t('yes')}</span>`
                : html`
                    <span class="faint" aria-hidden="true">–</span>
                    <span class="sr">${t('no')}</span>
                  `}
            </td>`,
        )
      : html`<td role="cell" class="wide" colspan=${SHORT.length}>
          <${State} state=${x.status} />
        </td>`}
    <td role="cell" class="p2"><${Seen} x=${x} /></td>
    <td role="cell" class="p3">
      <span class="only-narrow faint">
        ${x.status === 'active' ? summary(x.scopes) : html`<${State} state=${x.status} />`}
      </span>
      ${x.status === 'active' &&
      may('devices:manage') &&
      html`<span class="acts">
        <button
          type="button"
          class="small"
          aria-label=${t('Rights of {name}', { name: label })}
          onClick=${() => change(x)}>
          ${t('Rights …')}
        </button>
        <${Confirm}
          kind="small danger"
          label=${t('Revoke {name}', { name: label })}
          yes=${t('Revoke')}
          ask=${rich('{name} loses access at once, and its connections are closed.', {
            name: html`<b><${Name} text=${label} /></b>`,
          })}
          run=${() => api('POST', `/api/devices/${seg(x.device_id)}/revoke`, {})}>
          ${t('Revoke')}
        <//>
      </span>`}
    </td>
  </tr>`;
}

export default function Devices() {
  const devices = useLoaded('/api/devices', ['devices']);
  const setup = useLoaded(may('config:read') ? '/api/setup' : null, []);
  const [open, setOpen] = useState(/** @type {Open | null} */ (null));
  const done = () => setOpen(null);
  const { approve, scopes } = open ?? {};
  return html`<${View}
    title=${t('Devices')}
    actions=${may('devices:approve') &&
    html`<button type="button" class="primary" onClick=${() => setOpen({ invite: true })}>
      <${Icon} of="plus" />
      ${t('Add a device')}
    </button>`}>
    <${Of} of=${devices}>
      ${(/** @type {Device[]} */ d) => {
        const rows = d.filter((x) => x.status !== 'pending');
        const active = rows.filter((x) => x.status === 'active').length;
        return html`
          ${d
            .filter((x) => x.status === 'pending')
            .map(
              (x) =>
                html`<${Waiting}
                  key=${x.request_id}
                  x=${x}
                  choose=${(/** @type {Device} */ y) => setOpen({ approve: y })} />`,
            )}
          <section class="box" aria-label=${t('Devices')}>
            <header>
              <h2>${t('Devices')}</h2>
              <span class="faint">
                ${t(
                  'Phones, other machines, other browsers. Each has a key of its own, and rights that you can revoke at once.',
                )}
              </span>
              <span class="faint end">${active > 0 && t('{n} approved', { n: active })}</span>
            </header>
            ${rows.length
              ? html`<table class="list" role="table" aria-label=${t('Devices')}>
                  <thead role="rowgroup">
                    <tr role="row">
                      <th role="columnheader">${t('Device')}</th>
                      ${SHORT.map(
                        (s) => html`<th role="columnheader" class="tick wide">${s.title}</th>`,
                      )}
                      <th role="columnheader">${t('Seen')}</th>
                      <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
                    </tr>
                  </thead>
                  <tbody role="rowgroup">
                    ${rows.map(
                      (x) =>
                        html`<${Row}
                          key=${x.device_id}
                          x=${x}
                          change=${(/** @type {Device} */ y) => setOpen({ scopes: y })} />`,
                    )}
                  </tbody>
                </table>`
              : html`<${Empty} icon="device">
                  ${t('No devices are approved. Add one with a code, or open this page on it.')}
                <//>`}
          </section>
        `;
      }}
    <//>
    <${Tokens} />
    ${open?.invite &&
    html`<${Invite} done=${done} url=${setup.data?.remote ? setup.data.url : ''} />`}
    ${approve &&
    html`<${Choose}
      title=${t('Approve the device')}
      yes=${t('Approve')}
      start=${DEFAULT}
      done=${done}
      run=${(/** @type {string[]} */ some) =>
        api('POST', '/api/devices/approve', { request: approve.request_id ?? '', scopes: some })}>
      <p>
        ${rich('{name} asks from {peer}. Its id is {id}. Does the device show the same?', {
          name: html`<b><${Name} text=${approve.label} max=${64} /></b>`,
          peer: plain(approve.peer),
          id: html`<code><${Name} text=${approve.device_id} max=${64} /></code>`,
        })}
      </p>
    <//>`}
    ${scopes &&
    html`<${Choose}
      title=${t('Rights of {name}', { name: plain(scopes.label || scopes.device_id) })}
      yes=${t('Change')}
      start=${scopes.scopes}
      done=${done}
      run=${(/** @type {string[]} */ some) =>
        api('PUT', `/api/devices/${seg(scopes.device_id)}/scopes`, { scopes: some })} />`}
  <//>`;
}
