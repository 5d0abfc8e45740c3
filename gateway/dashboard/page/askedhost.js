// Questions about a host: one that a command wants to reach, or that web_fetch wants to read from.
// @ts-check
import { Run, Typed } from './run.js';
import { plain } from './text.js';
import { html } from './ui.js';
import { t } from './words.js';

/** @typedef {Admin<'Ask'>} Ask */

/** @param {Ask} a the address that web_fetch wants to read, '' for questions about commands */
export function urlOf(a) {
  const q = /** @type {Record<string, unknown>} */ (a.params ?? {});
  return hostOf(a) && typeof q.url === 'string' ? q.url : '';
}

/** @param {Ask} a the host that a command or web_fetch wants to reach, '' for other questions */
export function hostOf(a) {
  const q = /** @type {Asked} */ (a.params ?? {});
  if (a.tool_name !== 'sandbox_host' || typeof q.host !== 'string') return '';
  return `${q.host.includes(':') ? `[${q.host}]` : q.host}:${q.port}`;
}

/** The words of the question. @param {Ask} a */
export function headOf(a) {
  const host = plain(hostOf(a)).slice(0, 300);
  return urlOf(a)
    ? t('May the agent read from {host}?', { host })
    : t('May the command reach {host}?', { host });
}

/** Shows the command, or the address, whole.
 * @param {{a: Ask, at: (dir: string | undefined) => Children}} p */
export function Host({ a, at }) {
  const q = /** @type {Asked} */ (a.params ?? {});
  if (urlOf(a)) {
    const text = plain(urlOf(a), true);
    return html`
      <p>
        ${t(
          'The agent wants to read this address, and the host is not on your list. The address can tell the host what the agent has read.',
        )}
      </p>
      <${Run} icon="globe" head=${t('Would read')} copied=${text}>
        <${Typed} text=${text} label=${t('The address, all of it')} />
      <//>
    `;
  }
  const text = plain(q.command, true);
  return html`
    <p>
      ${t(
        'The command runs in the sandbox, and the host is not on its list. It can send there everything that it can read.',
      )}
    </p>
    <${Run} head=${at(q.cwd)} copied=${text}>
      <${Typed} text=${text} label=${t('The command, all of it')} />
    <//>
  `;
}
