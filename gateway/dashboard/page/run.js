// The box with what would run, whole: one component, the same wherever somebody approves something.
// @ts-check
import { command, marked } from './code.js';
import { Copy } from './copy.js';
import { plain, pretty } from './text.js';
import { html, Icon } from './ui.js';
import { count, t } from './words.js';

/** A box with what would run, never cut. head says where, and copied is what a button copies.
 * @param {{icon?: string, head: Children, note?: Children, copied?: string,
 * children?: Children}} p */
export const Run = ({ icon = 'terminal', head, note, copied, children }) =>
  html`<div class="exact">
    <header>
      <${Icon} of=${icon} />
      <span class="grow">${head}</span>
      ${note && html`<span class="faint nophone">${note}</span>`}
      ${copied !== undefined && html`<${Copy} text=${copied} label=${t('Copy')} />`}
    </header>
    ${children}
  </div>`;

/** A command as it was typed. @param {{text: string, label: string}} p */
export const Typed = ({ text, label }) =>
  html`<pre tabindex="0" role="group" aria-label=${label}>${command(text)}</pre>`;

/** Values, each under its name: texts as they are, other values as JSON.
 * @param {{of: Record<string, unknown>}} p */
export function Fields({ of }) {
  const all = Object.entries(of);
  if (!all.length) return html`<p class="faint args">${t('No arguments.')}</p>`;
  return html`<dl class="args">
    ${all.map(([name, v]) => {
      const text = typeof v === 'string' ? plain(v, true) : pretty(v);
      return html`
        <dt><bdi>${plain(name)}</bdi></dt>
        <dd class=${typeof v === 'string' && !/\n/.test(v) ? '' : 'mono'}>
          ${typeof v === 'string' ? text : marked(text, 'json')}
        </dd>
      `;
    })}
  </dl>`;
}

/** @param {unknown} v @returns {v is Record<string, unknown>} */
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

/** Arguments as fields, or as JSON where they are not an object. @param {{of: unknown}} p */
export const Arguments = ({ of }) =>
  isObject(of)
    ? html`<${Fields} of=${of} />`
    : html`<pre tabindex="0" role="group" aria-label=${t('Arguments, all of them')}>
        ${marked(pretty(of), 'json')}
      </pre>`;

/** All arguments, as they are. @param {{of: unknown}} p */
export function Whole({ of }) {
  const n = isObject(of) ? Object.keys(of).length : 1;
  return html`<details class="tc">
    <summary>
      <${Icon} of="file" />
      <span class="strong">${t('All arguments')}</span>
      <span class="stat">
        ${count(n, '{n} field, nothing hidden', '{n} fields, nothing hidden')}
      </span>
      <${Icon} of="right" />
    </summary>
    <pre tabindex="0" role="group" aria-label=${t('Arguments, all of them')}>
      ${marked(pretty(of), 'json')}
    </pre>
  </details>`;
}
