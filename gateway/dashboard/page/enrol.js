// A browser on another machine: it enrolls with a code, or asks for approval.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { takeCode } from './address.js';
import { ApiError } from './api.js';
import * as device from './device.js';
import { plain } from './text.js';
import { Do, Field, html, Problem, typed } from './ui.js';
import { rich, t } from './words.js';

function guess() {
  const ua = navigator.userAgent;
  const browser = /Firefox/.test(ua)
    ? 'Firefox'
    : /Edg/.test(ua)
      ? 'Edge'
      : /Chrom/.test(ua)
        ? 'Chrome'
        : /Safari/.test(ua)
          ? 'Safari'
          : t('Browser');
  const os = /Android/.test(ua)
    ? 'Android'
    : /iPhone|iPad/.test(ua)
      ? 'iOS'
      : /Mac/.test(ua)
        ? 'macOS'
        : /Win/.test(ua)
          ? 'Windows'
          : 'Linux';
  return t('{browser} on {os}', { browser, os });
}

const EVERY = 2000; // ms between looks while somebody has to approve: there is no connection yet

/** @param {{device: device.Device | null, admitted: (d: device.Device,
 * t: device.Token) => Promise<void>, out?: boolean}} p */
export default function Enrol({ device: known, admitted, out }) {
  const [code, setCode] = useState(takeCode);
  const [label, setLabel] = useState(known?.label ?? guess());
  const [waiting, setWaiting] = useState(
    known && !out ? known : /** @type {device.Device | null} */ (null),
  );
  const [request, setRequest] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const wait = useRef({ request: '' });
  const me = useRef(known);
  useEffect(() => {
    document.title = 'yaya';
  }, []);

  useEffect(() => {
    if (!waiting) return undefined;
    let timer = 0;
    let gone = false;
    const look = async () => {
      try {
        const token = await device.ask(waiting, wait.current);
        if (gone) return;
        if (token) return void (await admitted(waiting, token));
        setRequest(wait.current.request);
        setError(null);
      } catch (e) {
        if (gone) return;
        setError(e);
        if (e instanceof ApiError && e.status >= 400 && e.status < 500 && e.status !== 429)
          return void setWaiting(null);
      }
      timer = window.setTimeout(look, EVERY);
    };
    void look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [waiting]);

  const ready = async () => (me.current ??= await device.create(label));
  if (!globalThis.isSecureContext || !crypto.subtle) {
    return html`<main class="alone">
      <h1>${t('This page needs HTTPS')}</h1>
      <p>
        ${t(
          'On another machine, a browser proves its identity with a key, and browsers support such keys only on secure pages. Start yaya with --acme --host NAME, with --tls-self-signed in a home network, with --tls-cert and --tls-key, or behind a proxy that serves TLS (--behind-proxy --host NAME).',
        )}
      </p>
    </main>`;
  }
  if (waiting) {
    return html`<main class="alone" aria-live="polite">
      <h1>${t('Waiting for approval')}</h1>
      <p>
        ${t(
          'Somebody with the right to do so has to approve this browser: under Devices on the page, or with',
        )}
      </p>
      ${request && html`<pre tabindex="0">yaya device approve ${plain(request)}</pre>`}
      <p class="muted">
        ${rich('Its name is {name}, and its id is {id}.', {
          name: html`<b>${plain(waiting.label)}</b>`,
          id: html`<code>${plain(waiting.id)}</code>`,
        })}
      </p>
      <${Problem} error=${error} />
      <div class="buttons">
        <button type="button" onClick=${() => setWaiting(null)}>${t('Use a code instead')}</button>
      </div>
    </main>`;
  }
  return html`<main class="alone">
    <h1>${out ? t('This browser was revoked') : t('Enroll this browser')}</h1>
    <p>
      ${out
        ? t('It no longer has access, and its connections are closed.')
        : t('It becomes a device of this yaya, with a key that never leaves the browser.')}
    </p>
    <form onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
      ${!me.current &&
      html`<${Field} label=${t('Name of this browser')}>
        ${(/** @type {string} */ id) =>
          html`<input id=${id} value=${label} maxlength="64" onInput=${typed(setLabel)} />`}
      <//>`}
      <${Field}
        label=${t('Code')}
        hint=${t('From “yaya device invite”, or from the page on an enrolled device.')}>
        ${(/** @type {string} */ id) =>
          html`<input
            id=${id}
            value=${code}
            autocomplete="off"
            spellcheck="false"
            placeholder="XXXX-XXXX-XXXX"
            onInput=${typed(setCode)} />`}
      <//>
      <div class="buttons">
        <${Do}
          kind="primary"
          disabled=${!code.trim()}
          run=${async () => {
            const d = await ready();
            await admitted(d, await device.enrol(d, code.trim()));
          }}>
          ${t('Enroll with the code')}
        <//>
        <${Do} run=${async () => {
          setError(null);
          setWaiting(await ready());
        }}>
          ${out ? t('Ask again') : t('Ask for approval')}
        <//>
      </div>
      <${Problem} error=${error} />
    </form>
  </main>`;
}
