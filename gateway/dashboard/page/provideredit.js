// Changes the fields of a provider. Its plugin says which there are.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Dialog } from './dialog.js';
import { plain } from './text.js';
import { Do, Field, html, typed } from './ui.js';
import { t } from './words.js';

/** The name of a provider: those that yaya created itself all say "(default)".
 * @param {Admin<'Provider'>} r */
export const called = (r) => (r.label && r.label !== `${r.plugin} (default)` ? r.label : r.id);

/** @param {unknown} v */
export const shown = (v) => (v === undefined ? '' : typeof v === 'string' ? v : JSON.stringify(v));

/** The fields that the page has a word for; others appear as their plugin names them. */
const WORDS = new Map([
  ['base_url', t('Address')],
  ['api_key', t('Key')],
  ['model', t('Model')],
  ['thinking_effort', t('Thinking effort')],
  ['context_window', t('Context window in tokens')],
  ['script', t('Script')],
]);

/** @param {{row: Admin<'Provider'>, done: () => void}} p */
export function Edit({ row, done }) {
  const [label, setLabel] = useState(row.label);
  const [values, setValues] = useState(/** @type {Map<string, string>} */ (new Map()));
  const schema = /** @type {Schema | null} */ (row.config_schema);
  const fields = [
    ...new Set([...Object.keys(schema?.properties ?? {}), ...Object.keys(row.config)]),
  ];
  const save = async () => {
    // Members are set one by one, since a plugin chooses their names.
    const config = Object.create(null);
    for (const [k, v] of values) {
      const kind = schema?.properties?.[k]?.type;
      config[k] =
        kind === 'string' || (kind === undefined && !/^[\[{"\d-]|^(true|false|null)$/.test(v))
          ? v
          : JSON.parse(v);
    }
    await api('PATCH', `/api/llm-providers/${seg(row.id)}`, {
      ...(label !== row.label && { label }),
      config,
    });
    done();
  };
  return html`<${Dialog} title=${t('Change {name}', { name: plain(called(row)) })} onClose=${done}>
    <${Field} label=${t('Name')}>
      ${(/** @type {string} */ i) =>
        html`<input id=${i} value=${label} onInput=${typed(setLabel)} />`}
    <//>
    ${fields.map(
      (f) =>
        html`<${Field}
          key=${f}
          label=${WORDS.get(f) ?? plain(f)}
          hint=${plain(schema?.properties?.[f]?.description ?? '')}>
          ${(/** @type {string} */ i) =>
            html`<input
              id=${i}
              type=${/key|token|secret|password/.test(f) ? 'password' : 'text'}
              autocomplete="off"
              spellcheck="false"
              value=${values.get(f) ?? shown(row.config[f])}
              onInput=${typed((v) => setValues(new Map(values).set(f, v)))} />`}
        <//>`,
    )}
    <div class="buttons">
      <button type="button" onClick=${done}>${t('Cancel')}</button>
      <${Do} kind="primary" run=${save}>${t('Save')}<//>
    </div>
  <//>`;
}
