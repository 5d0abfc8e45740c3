// Creates a code that enrolls one device.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api } from './api.js';
import { Copy } from './copy.js';
import { Dialog } from './dialog.js';
import { QR } from './qr.js';
import { DEFAULT, Scopes } from './scopes.js';
import { plain } from './text.js';
import { Do, Field, html, Time, typed } from './ui.js';

/** @param {{done: () => void, url?: string}} p */
export function Invite({ done, url = '' }) {
  const [at, setAt] = useState(url);
  const [label, setLabel] = useState('');
  const [scopes, setScopes] = useState(new Set(DEFAULT));
  const [made, setMade] = useState(/** @type {Admin<'Invitation'> | null} */ (null));
  if (made) {
    return html`<${Dialog} title="Enroll the device" onClose=${done}>
      ${made.qr &&
      html`<${QR} rows=${made.qr} label="QR code of the page’s address with the code" />`}
      <p>
        ${at
          ? html`
              On the device, open <code>${plain(at)}</code> or scan the QR code, and enter the code
            `
          : html`On the other machine: <code>yaya connect URL --code …</code>, with the code`}
      </p>
      <p class="big"><code>${plain(made.code)}</code> <${Copy} text=${made.code} /></p>
      <p class="muted">The code works once, until <${Time} at=${made.expires_at} />.</p>
      ${made.tls_fingerprint &&
      html`
        <p>
          No authority vouches for this yaya’s certificate. <code>yaya connect</code> accepts the
          key with <code>--fingerprint</code>, or the link in the QR code. In a browser, check the
          certificate before you accept the warning: its public key (SHA-256) must be
        </p>
        <p><code>${plain(made.tls_fingerprint)}</code> <${Copy} text=${made.tls_fingerprint} /></p>
      `}
      <div class="buttons"><button type="button" class="primary" onClick=${done}>Done</button></div>
    <//>`;
  }
  return html`<${Dialog} title="Add a device" onClose=${done}>
    <${Field}
      label="Address of this yaya for the device"
      hint="https://… as the device reaches it; leave it empty for no QR code.">
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${at} spellcheck="false" onInput=${typed(setAt)} />`}
    <//>
    <${Field} label="Name" hint="If empty, the device chooses its name.">
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${label} onInput=${typed(setLabel)} />`}
    <//>
    <${Scopes} value=${scopes} set=${setScopes} />
    <div class="buttons">
      <button type="button" onClick=${done}>Cancel</button>
      <${Do}
        kind="primary"
        run=${async () =>
          setMade(
            await api('POST', '/api/devices/invite', {
              scopes: [...scopes],
              ...(label && { label }),
              ...(at && { url: at }),
            }),
          )}>
        Create a code
      <//>
    </div>
  <//>`;
}
