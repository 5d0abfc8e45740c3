// The selection of a device's or a token's scopes.
// @ts-check
import { useState } from './vendor/hooks.js';
import { Dialog } from './dialog.js';
import { may } from './state.js';
import { listed } from './text.js';
import { Do, html } from './ui.js';
import { rich, t } from './words.js';

const SCOPES = [
  ['sessions:read', t('watch sessions')],
  ['sessions:write', t('send messages')],
  ['approvals:answer', t('answer approvals')],
  ['agents:read', t('see agents and kernels')],
  ['agents:kill', t('end agents')],
  ['memory:read', t('read the memory')],
  ['skills:invoke', t('invoke skills')],
  ['tools:call', t('call tools')],
  ['kernel:attach', t('attach as a kernel')],
  ['devices:read', t('see devices')],
  ['devices:approve', t('approve devices')],
  ['devices:manage', t('manage and revoke devices')],
  ['config:read', t('see the configuration')],
  ['config:write', t('change the configuration, start servers')],
  ['audit:read', t('read the audit log')],
  ['metrics:read', t('see metrics')],
];
/** The rights that people ask about first. @type {readonly {scope: string, title: string}[]} */
export const SHORT = [
  { scope: 'sessions:read', title: t('Watch') },
  { scope: 'sessions:write', title: t('Chat') },
  { scope: 'approvals:answer', title: t('Approve') },
  { scope: 'tools:call', title: t('Call tools') },
  { scope: 'config:write', title: t('Change settings') },
];

/** Scopes in words. @param {string[]} some */
export const summary = (some) =>
  listed(SCOPES.filter(([s]) => some.includes(s)).map(([, what]) => what)) || t('nothing');

/** Scopes for callers that prove their identity: a long-lived token cannot have them. */
const OF_DEVICES = ['devices:approve', 'devices:manage', 'kernel:attach', 'skills:invoke'];
export const DEFAULT = ['agents:read', 'memory:read', 'sessions:read', 'sessions:write'];

/** @param {{value: Set<string>, set: (s: Set<string>) => void, token?: boolean}} p */
export function Scopes({ value, set, token }) {
  const toggle = (/** @type {string} */ s) => {
    const next = new Set(value);
    if (!next.delete(s)) next.add(s);
    set(next);
  };
  return html`<fieldset class="scopes">
    <legend>${t('What it may do')}</legend>
    ${!token &&
    !value.has('approvals:answer') &&
    html`<p class="muted">
      ${rich('It cannot answer approvals. If it is your own device, and stays with you: {allow}', {
        allow: html`<button
          type="button"
          class="link"
          disabled=${!may('approvals:answer')}
          onClick=${() => toggle('approvals:answer')}>
          ${t('allow it to answer')}
        </button>`,
      })}
    </p>`}
    ${SCOPES.filter(([s]) => !token || !OF_DEVICES.includes(s)).map(
      ([s, what]) =>
        html`<label>
          <input
            type="checkbox"
            checked=${value.has(s)}
            disabled=${!may(s)}
            onChange=${() => toggle(s)} /> ${what} <code>${s}</code>
        </label>`,
    )}
  </fieldset>`;
}

/** @param {{title: string, yes: string, start: string[],
 * run: (scopes: string[]) => Promise<unknown>, done: () => void, children?: Children}} p */
export function Choose({ title, yes, start, run, done, children }) {
  const [scopes, setScopes] = useState(new Set(start));
  return html`<${Dialog} title=${title} onClose=${done}>
    ${children}
    <${Scopes} value=${scopes} set=${setScopes} />
    <div class="buttons">
      <button type="button" onClick=${done}>${t('Cancel')}</button>
      <${Do}
        arm
        kind="primary"
        run=${async () => {
          await run([...scopes]);
          done();
        }}>
        ${yes}
      <//>
    </div>
  <//>`;
}
