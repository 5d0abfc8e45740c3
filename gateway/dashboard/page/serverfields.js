// The fields of a server's configuration, and the entry that they stand for.
// @ts-check
import { Field, html, Icon, typed } from './ui.js';
import { t } from './words.js';

/** An entry of mcpServers. Members that the form does not know stay as they are.
 * @typedef {Record<string, unknown>} Entry */

/** A variable or a header. @typedef {[name: string, value: string]} Pair */

/** The fields of the form.
 * @typedef {{remote: boolean, command: string, args: string[], env: Pair[], cwd: string,
 * url: string, headers: Pair[]}} Fields */

/** @param {unknown} v @returns {v is Record<string, string>} */
const texts = (v) =>
  typeof v === 'object' &&
  v !== null &&
  !Array.isArray(v) &&
  Object.values(v).every((x) => typeof x === 'string');

/** The fields of an entry; null if the form cannot show it whole. @param {unknown} of
 * @returns {Fields | null} */
export function fieldsOf(of) {
  if (typeof of !== 'object' || of === null || Array.isArray(of)) return null;
  const c = /** @type {Entry} */ (of);
  const { command = '', args = [], env = {}, cwd = '', url = '', headers = {} } = c;
  if (typeof command !== 'string' || typeof cwd !== 'string' || typeof url !== 'string')
    return null;
  if (!Array.isArray(args) || !args.every((a) => typeof a === 'string')) return null;
  if (!texts(env) || !texts(headers)) return null;
  return {
    remote: Boolean(url) || (!command && ['http', 'sse'].includes(String(c.type))),
    command,
    args: [...args],
    env: Object.entries(env),
    cwd,
    url,
    headers: Object.entries(headers),
  };
}

/** The entry that a filled form stands for. @param {Entry} c @param {Fields} f @returns {Entry} */
export function entryOf(c, f) {
  const { command, args, env, cwd, url, headers, type, ...rest } = c;
  const pairs = (/** @type {Pair[]} */ all) => {
    const out = /** @type {Record<string, string>} */ ({});
    for (const [k, v] of all)
      if (k.trim())
        Object.defineProperty(out, k.trim(), {
          value: v,
          enumerable: true,
          configurable: true,
          writable: true,
        });
    return out;
  };
  const has = (/** @type {object} */ o) => Object.keys(o).length > 0;
  if (f.remote)
    return {
      type: url && type ? type : 'http',
      url: f.url.trim(),
      ...(has(pairs(f.headers)) && { headers: pairs(f.headers) }),
      ...rest,
    };
  return {
    ...(command && type ? { type } : {}),
    command: f.command.trim(),
    ...(f.args.length > 0 && { args: f.args }),
    ...(has(pairs(f.env)) && { env: pairs(f.env) }),
    ...(f.cwd.trim() && { cwd: f.cwd.trim() }),
    ...rest,
  };
}

/** A list of texts, each in a field of its own.
 * @param {{label: string, add: string, all: string[], readonly: boolean,
 * set: (all: string[]) => void}} p */
function Texts({ label, add, all, readonly, set }) {
  return html`<fieldset class="texts">
    <legend>${label}</legend>
    ${all.map(
      (a, i) =>
        html`<div class="flex" key=${i}>
          <input
            class="code"
            aria-label=${t('Argument {n}', { n: i + 1 })}
            spellcheck="false"
            value=${a}
            readonly=${readonly}
            onInput=${typed((v) => set(all.with(i, v)))} />
          ${!readonly &&
          html`<button
            type="button"
            class="quiet sq"
            aria-label=${t('Remove argument {n}', { n: i + 1 })}
            onClick=${() => set(all.filter((_, k) => k !== i))}>
            <${Icon} of="close" />
          </button>`}
        </div>`,
    )}
    ${!readonly &&
    html`<button type="button" class="quiet small" onClick=${() => set([...all, ''])}>
      <${Icon} of="plus" />
      ${add}
    </button>`}
  </fieldset>`;
}

/** Names with values. Secrets are masked, and stay as they are unless somebody writes over them.
 * @param {{label: string, add: string, kind: 'header' | 'variable', all: Pair[], readonly: boolean,
 * set: (all: Pair[]) => void}} p */
function Pairs({ label, add, kind, all, readonly, set }) {
  const nth = (/** @type {number} */ n) =>
    kind === 'header' ? t('header {n}', { n }) : t('variable {n}', { n });
  return html`<fieldset class="texts">
    <legend>${label}</legend>
    ${all.map(
      ([k, v], i) =>
        html`<div class="flex" key=${i}>
          <input
            class="code"
            aria-label=${t('Name of {what}', { what: nth(i + 1) })}
            placeholder=${t('NAME')}
            spellcheck="false"
            value=${k}
            readonly=${readonly}
            onInput=${typed((x) => set(all.with(i, [x, v])))} />
          <input
            class="code"
            aria-label=${t('Value of {what}', { what: k || nth(i + 1) })}
            placeholder=${t('value')}
            spellcheck="false"
            value=${v}
            readonly=${readonly}
            onInput=${typed((x) => set(all.with(i, [k, x])))} />
          ${!readonly &&
          html`<button
            type="button"
            class="quiet sq"
            aria-label=${t('Remove {what}', { what: k || nth(i + 1) })}
            onClick=${() => set(all.filter((_, n) => n !== i))}>
            <${Icon} of="close" />
          </button>`}
        </div>`,
    )}
    ${!readonly &&
    html`<button type="button" class="quiet small" onClick=${() => set([...all, ['', '']])}>
      <${Icon} of="plus" />
      ${add}
    </button>`}
  </fieldset>`;
}

/** @param {{f: Fields, readonly: boolean, set: (f: Fields) => void}} p */
export function Inputs({ f, readonly, set }) {
  const text = (
    /** @type {'command' | 'cwd' | 'url'} */ k,
    /** @type {string} */ label,
    /** @type {string} */ hint,
  ) =>
    html`<${Field} label=${label} hint=${hint}>
      ${(/** @type {string} */ id) =>
        html`<input
          id=${id}
          class="code"
          spellcheck="false"
          value=${f[k]}
          readonly=${readonly}
          onInput=${typed((v) => set({ ...f, [k]: v }))} />`}
    <//>`;
  return html`
    <div class="seg" role="group" aria-label=${t('Runs by')}>
      ${[false, true].map(
        (remote) =>
          html`<button
            type="button"
            aria-pressed=${f.remote === remote}
            disabled=${readonly}
            onClick=${() => set({ ...f, remote })}>
            ${remote ? 'URL' : t('Command')}
          </button>`,
      )}
    </div>
    ${f.remote
      ? html`
          ${text('url', 'URL', '')}
          <${Pairs}
            label=${t('Headers')}
            add=${t('Add a header')}
            kind="header"
            all=${f.headers}
            readonly=${readonly}
            set=${(/** @type {Pair[]} */ headers) => set({ ...f, headers })} />
        `
      : html`
          ${text('command', t('Command'), '')}
          <${Texts}
            label=${t('Arguments')}
            add=${t('Add an argument')}
            all=${f.args}
            readonly=${readonly}
            set=${(/** @type {string[]} */ args) => set({ ...f, args })} />
          <${Pairs}
            label=${t('Environment')}
            add=${t('Add a variable')}
            kind="variable"
            all=${f.env}
            readonly=${readonly}
            set=${(/** @type {Pair[]} */ env) => set({ ...f, env })} />
          ${text('cwd', t('Working folder'), t('Empty for the default.'))}
        `}
    ${!readonly &&
    html`<p class="faint">
      ${t(
        'Secrets shown as **** are kept while the address stays the same, or the command with its arguments and variables. Otherwise enter them again.',
      )}
    </p>`}
  `;
}
