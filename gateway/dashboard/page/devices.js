// Devices: who waits, who is in, what each may do.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { may, page, useLoaded } from './state.js';
import { Tokens } from './tokens.js';
import { Badge, Confirm, Copy, Dialog, Do, Field, html, Name, Of, plain, QR, Table, Time, View } from './ui.js';

const SCOPES = [['sessions:read', 'watch sessions'], ['sessions:write', 'converse'], ['approvals:answer', 'answer what tools ask'], ['agents:read', 'see agents and kernels'], ['agents:kill', 'end agents'], ['memory:read', 'read the memory'], ['skills:invoke', 'invoke skills'], ['tools:call', 'call tools'], ['kernel:attach', 'be a kernel'],
  ['devices:read', 'see devices'], ['devices:approve', 'let devices in'], ['devices:manage', 'throw devices out'], ['config:read', 'see the configuration'], ['config:write', 'change the configuration, start servers'], ['audit:read', 'read the audit'], ['metrics:read', 'see metrics']];
/** Those that prove who they are: a lasting token cannot have them. */
const OF_DEVICES = ['devices:approve', 'devices:manage', 'kernel:attach', 'skills:invoke'];
const DEFAULT = ['agents:read', 'memory:read', 'sessions:read', 'sessions:write'];

/** @param {{value: Set<string>, set: (s: Set<string>) => void, token?: boolean}} p */
function Scopes({ value, set, token }) {
  const toggle = (/** @type {string} */ s) => {
    const next = new Set(value);
    if (!next.delete(s)) next.add(s);
    set(next);
  };
  return html`<fieldset class="scopes"><legend>What it may do</legend>${!token && !value.has('approvals:answer') && html`<p class="muted">It cannot answer what tools ask. If it is yours, and stays with you: <button type="button" class="link" disabled=${!may('approvals:answer')} onClick=${() => toggle('approvals:answer')}>let it answer</button></p>`}${SCOPES.filter(([s]) => !token || !OF_DEVICES.includes(s)).map(([s, what]) => html`<label><input type="checkbox" checked=${value.has(s)} disabled=${!may(s)} onChange=${() => toggle(s)} /> ${what} <code>${s}</code></label>`)}</fieldset>`;
}

/** @param {{title: string, yes: string, start: string[], run: (scopes: string[]) => Promise<any>, done: () => void, children?: any}} p */
function Choose({ title, yes, start, run, done, children }) {
  const [scopes, setScopes] = useState(new Set(start));
  return html`<${Dialog} title=${title} onClose=${done}>${children}<${Scopes} value=${scopes} set=${setScopes} />
    <div class="buttons"><button type="button" onClick=${done}>Cancel</button><${Do} arm kind="primary" run=${async () => { await run([...scopes]); done(); }}>${yes}<//></div><//>`;
}

/** @param {{done: () => void, url?: string}} p */
export function Invite({ done, url = '' }) {
  const [at, setAt] = useState(url);
  const [label, setLabel] = useState('');
  const [scopes, setScopes] = useState(new Set(DEFAULT));
  const [made, setMade] = useState(/** @type {any} */ (null));
  if (made) {
    return html`<${Dialog} title="Let it in" onClose=${done}>
      ${made.qr && html`<${QR} rows=${made.qr} label="QR code of the page’s address with the code" />`}
      <p>${at ? html`On the device, open <code>${plain(at)}</code> or point its camera at the picture, and use the code` : html`On the other machine: <code>yaya connect URL --code …</code>, with the code`}</p>
      <p class="big"><code>${plain(made.code)}</code> <${Copy} text=${made.code} /></p><p class="muted">It is good once, until <${Time} at=${made.expires_at} />.</p>
      ${made.tls_fingerprint && html`<p>Nobody else speaks for this yaya’s certificate. <code>yaya connect</code> takes the key with <code>--fingerprint</code>, or the link of the picture. In a browser, look at the certificate before you go past the warning: its public key (SHA-256) has to be</p>
      <p><code>${plain(made.tls_fingerprint)}</code> <${Copy} text=${made.tls_fingerprint} /></p>`}
      <div class="buttons"><button type="button" class="primary" onClick=${done}>Done</button></div><//>`;
  }
  return html`<${Dialog} title="Add a device" onClose=${done}>
    <${Field} label="Where the device reaches this yaya" hint="https://… as the device sees it; empty for no QR code.">${(/** @type {string} */ id) => html`<input id=${id} value=${at} spellcheck="false" onInput=${(/** @type {any} */ e) => setAt(e.target.value)} />`}<//>
    <${Field} label="What to call it" hint="Whatever it calls itself if this is empty.">${(/** @type {string} */ id) => html`<input id=${id} value=${label} onInput=${(/** @type {any} */ e) => setLabel(e.target.value)} />`}<//>
    <${Scopes} value=${scopes} set=${setScopes} />
    <div class="buttons"><button type="button" onClick=${done}>Cancel</button><${Do} kind="primary" run=${async () => setMade(await api('POST', '/api/devices/invite', { scopes: [...scopes], ...(label && { label }), ...(at && { url: at }) }))}>Make a code<//></div><//>`;
}

export default function Devices() {
  const devices = useLoaded('/api/devices', ['devices']);
  const setup = useLoaded(may('config:read') ? '/api/setup' : null, []);
  const [open, setOpen] = useState(/** @type {any} */ (null));
  const done = () => setOpen(null);
  const me = page.me.use();
  return html`<${View} title="Devices" lead="Phones, other machines, other browsers. Each has a key of its own, and rights that end at once when they are taken." actions=${may('devices:approve') && html`<button type="button" class="primary" onClick=${() => setOpen({ invite: true })}>Add a device</button>`}>
    <${Of} of=${devices}>${(/** @type {any[]} */ d) => html`<${Table} label="Devices" head=${['Device', 'State', 'Open', 'May', 'Since', null]} rows=${d} empty="There are no devices. Add one, or open this page on it." row=${(/** @type {any} */ x) => html`<tr key=${x.request_id || x.device_id}>
      <td><b><${Name} text=${x.label || x.device_id} max=${64} /></b>${x.device_id === me?.id && html` <span class="badge">this one</span>`}<br /><small class="muted"><code><${Name} text=${x.device_id} max=${48} /></code>${x.peer && html` from ${plain(x.peer)}`}</small></td>
      <td><${Badge} state=${x.status} /></td><td>${x.connections}</td><td><small>${(x.scopes ?? []).join(', ') || '–'}</small></td><td><${Time} at=${x.since} /></td>
      <td class="buttons">${x.status === 'pending' && may('devices:approve') && html`<button type="button" class="small primary" onClick=${() => setOpen({ approve: x })}>Let in …</button><${Do} kind="small" run=${() => api('POST', '/api/devices/reject', { request: x.request_id })}>Send away<//>`}
        ${x.status === 'active' && may('devices:manage') && html`<button type="button" class="small" onClick=${() => setOpen({ scopes: x })}>Rights …</button>
        <${Confirm} kind="small danger" label=${`Revoke ${plain(x.label || x.device_id)}`} yes="Revoke" ask=${html`<b><${Name} text=${x.label || x.device_id} /></b> is thrown out at once, with all that it has open.`} run=${() => api('POST', `/api/devices/${seg(x.device_id)}/revoke`, {})}>Revoke<//>`}</td></tr>`} />`}<//>
    <${Tokens} Scopes=${Scopes} />
    ${open?.invite && html`<${Invite} done=${done} url=${setup.data?.remote ? setup.data.url : ''} />`}
    ${open?.approve && html`<${Choose} title="Let it in" yes="Let it in" start=${DEFAULT} done=${done} run=${(/** @type {string[]} */ scopes) => api('POST', '/api/devices/approve', { request: open.approve.request_id, scopes })}>
      <p><b><${Name} text=${open.approve.label} /></b> asks from ${plain(open.approve.peer)}. Its id is <code><${Name} text=${open.approve.device_id} /></code>, and its key’s fingerprint <code>${plain(open.approve.fingerprint)}</code>. Is it what you see there?</p><//>`}
    ${open?.scopes && html`<${Choose} title=${`Rights of ${open.scopes.label || open.scopes.device_id}`} yes="Change" start=${open.scopes.scopes} done=${done} run=${(/** @type {string[]} */ scopes) => api('PUT', `/api/devices/${seg(open.scopes.device_id)}/scopes`, { scopes })} />`}<//>`;
}
