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
import { rich, t } from './words.js';

/** @param {{done: () => void, url?: string}} p */
export function Invite({ done, url = '' }) {
  const [at, setAt] = useState(url);
  const [label, setLabel] = useState('');
  const [scopes, setScopes] = useState(new Set(DEFAULT));
  const [made, setMade] = useState(/** @type {Admin<'Invitation'> | null} */ (null));
  if (made) {
    return html`<${Dialog} title=${t('Enroll the device')} onClose=${done}>
      ${made.qr &&
      html`<${QR} rows=${made.qr} label=${t('QR code of the page’s address with the code')} />`}
      <p>
        ${at
          ? rich('On the device, open {address} or scan the QR code, and enter the code', {
              address: html`<code>${plain(at)}</code>`,
            })
          : rich('On the other machine, run {command} with the code', {
              command: html`<code>yaya connect URL --code …</code>`,
            })}
      </p>
      <p class="big"><code>${plain(made.code)}</code> <${Copy} text=${made.code} /></p>
      <p class="muted">
        ${rich('The code works once, until {time}.', {
          time: html`<${Time} at=${made.expires_at} />`,
        })}
      </p>
      ${made.tls_fingerprint &&
      html`
        <p>
          ${rich(
            'No authority vouches for this yaya’s certificate. {connect} accepts the key with {flag}, or the link in the QR code. In a browser, check the certificate before you accept the warning: its public key (SHA-256) must be',
            {
              connect: html`<code>yaya connect</code>`,
              flag: html`<code>--fingerprint</code>`,
            },
          )}
        </p>
        <p><code>${plain(made.tls_fingerprint)}</code> <${Copy} text=${made.tls_fingerprint} /></p>
      `}
      <div class="buttons">
        <button type="button" class="primary" onClick=${done}>${t('Done')}</button>
      </div>
    <//>`;
  }
  return html`<${Dialog} title=${t('Add a device')} onClose=${done}>
    <${Field}
      label=${t('Address of this yaya for the device')}
      hint=${t('https://… as the device reaches it; leave it empty for no QR code.')}>
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${at} spellcheck="false" onInput=${typed(setAt)} />`}
    <//>
    <${Field} label=${t('Name')} hint=${t('If empty, the device chooses its name.')}>
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${label} onInput=${typed(setLabel)} />`}
    <//>
    <${Scopes} value=${scopes} set=${setScopes} />
    <div class="buttons">
      <button type="button" onClick=${done}>${t('Cancel')}</button>
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
        ${t('Create a code')}
      <//>
    </div>
  <//>`;
}
