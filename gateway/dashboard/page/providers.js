// The model providers: the active one, and the address of each.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { may, useLoaded } from './state.js';
import { Confirm, Dialog } from './dialog.js';
import { ms, plain } from './text.js';
import { Badge, Do, Field, html, Name, Of, Table, typed, View } from './ui.js';

/** Returns a provider's name: the ones that yaya created itself all say "(default)".
 * @param {Admin<'Provider'>} r */
const called = (r) => (r.label && r.label !== `${r.plugin} (default)` ? r.label : r.id);

/** @param {unknown} v */
const shown = (v) => (v === undefined ? '' : typeof v === 'string' ? v : JSON.stringify(v));

/** @typedef {Map<string, Schema>} Schemas of the plugins, by name */

/** @param {{row?: Admin<'Provider'>, plugins: string[], schemas: Schemas, done: () => void,
 * activate?: boolean}} p */
export function Edit({ row, plugins, schemas, done, activate }) {
  const [plugin, setPlugin] = useState(
    row?.plugin ?? plugins.find((p) => p !== 'llm-echo') ?? plugins[0] ?? '',
  );
  const [label, setLabel] = useState(row?.label ?? '');
  const [id, setID] = useState('');
  const [values, setValues] = useState(/** @type {Map<string, string>} */ (new Map()));
  const schema = schemas.get(plugin);
  const fields = [
    ...new Set([...Object.keys(schema?.properties ?? {}), ...Object.keys(row?.config ?? {})]),
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
    const got = row
      ? await api('PATCH', `/api/llm-providers/${seg(row.id)}`, {
          ...(label !== row.label && { label }),
          config,
        })
      : await api('POST', '/api/llm-providers', {
          plugin,
          ...(id && { id }),
          ...(label && { label }),
          config,
        });
    if (activate) await api('PATCH', '/api/llm-providers/active', { name: got.id });
    done();
  };
  return html`<${Dialog} title=${row ? `Change ${called(row)}` : 'Add a provider'} onClose=${done}>
    ${!row &&
    html`
      <${Field} label="Kind">
        ${(/** @type {string} */ i) =>
          html`<select id=${i} value=${plugin} onChange=${typed(setPlugin)}>
            ${plugins.map((p) => html`<option value=${p}>${plain(p)}</option>`)}
          </select>`}
      <//>
      <${Field} label="Id" hint="Lower-case letters, digits and dashes; generated if empty.">
        ${(/** @type {string} */ i) =>
          html`<input id=${i} value=${id} spellcheck="false" onInput=${typed(setID)} />`}
      <//>
    `}
    <${Field} label="Label">
      ${(/** @type {string} */ i) =>
        html`<input id=${i} value=${label} onInput=${typed(setLabel)} />`}
    <//>
    ${fields.map(
      (f) =>
        html`<${Field}
          key=${plugin + f}
          label=${f}
          hint=${plain(schema?.properties?.[f]?.description ?? '')}>
          ${(/** @type {string} */ i) =>
            html`<input
              id=${i}
              type=${/key|token|secret|password/.test(f) ? 'password' : 'text'}
              autocomplete="off"
              spellcheck="false"
              value=${values.get(f) ?? shown(row?.config?.[f])}
              onInput=${typed((v) => setValues(new Map(values).set(f, v)))} />`}
        <//>`,
    )}
    <div class="buttons">
      <button type="button" onClick=${done}>Cancel</button>
      <${Do} kind="primary" run=${save}>Save<//>
    </div>
  <//>`;
}

/** The provider plugins, with their schemas.
 * @param {Admin<'OutPluginsBody'> | undefined} plugins
 * @param {Admin<'Provider'>[] | undefined} rows */
export function kinds(plugins, rows) {
  /** @type {Schemas} */
  const schemas = new Map();
  for (const p of plugins?.plugins ?? [])
    if (p.category === 'llm-provider' && p.status === 'loaded')
      schemas.set(p.name, /** @type {Schema} */ (p.config_schema));
  for (const r of rows ?? [])
    if (r.config_schema) schemas.set(r.plugin, /** @type {Schema} */ (r.config_schema));
  return schemas;
}

export default function Providers() {
  const rows = useLoaded('/api/llm-providers', ['config', 'plugins']);
  const plugins = useLoaded('/api/plugins', ['plugins']);
  const [edit, setEdit] = useState(/** @type {{row?: Admin<'Provider'>} | null} */ (null));
  const [tests, setTests] = useState(/** @type {Map<string, Admin<'Tested'>>} */ (new Map()));
  const schemas = kinds(plugins.data, rows.data);
  const write = may('config:write');
  return html`<${View}
    title="Models"
    lead="Services that answer as the model. A new active provider is used from the next step on."
    actions=${write &&
    html`<button type="button" class="primary" onClick=${() => setEdit({})}>
      Add a provider
    </button>`}>
    <${Of} of=${rows}>
      ${(/** @type {Admin<'Provider'>[]} */ d) =>
        html`<${Table}
          label="Providers"
          head=${['Provider', 'Kind', 'Model', 'State', null]}
          rows=${d}
          empty="There are no providers."
          row=${(/** @type {Admin<'Provider'>} */ r) => html`<tr key=${r.id}>
            <td>
              <b><${Name} text=${called(r)} max=${64} /></b>
              <br />
              <small class="muted"><code>${plain(r.id)}</code></small>
            </td>
            <td>${plain(r.plugin)}</td>
            <td><${Name} text=${shown(r.config.model)} max=${48} /></td>
            <td>
              ${r.active && html`<${Badge} state="active" />`} ${tests.has(r.id) &&
              html`<span role="status">
                ${tests.get(r.id)?.ok
                  ? html`<span class="good">
                      answers in ${ms(tests.get(r.id)?.latency_ms ?? 0)}
                    </span>`
                  : html`<span class="bad">
                      <${Name} text=${tests.get(r.id)?.error} max=${200} />
                    </span>`}
              </span>`}
            </td>
            <td class="buttons">
              ${write &&
              html`
                ${!r.active &&
                html`<${Do}
                  kind="small"
                  run=${() => api('PATCH', '/api/llm-providers/active', { name: r.id })}>
                  Use
                <//>`}
                <${Do}
                  kind="small"
                  run=${async () => {
                    const t = await api('POST', `/api/llm-providers/${seg(r.id)}/test`);
                    setTests(new Map(tests).set(r.id, t));
                  }}>
                  Test
                <//>
                <button type="button" class="small" onClick=${() => setEdit({ row: r })}>
                  Change
                </button>
                ${!r.active &&
                html`<${Confirm}
                  kind="small danger"
                  label=${`Delete ${plain(r.id)}`}
                  yes="Delete"
                  ask=${html`<b><${Name} text=${called(r)} /></b> and its settings are deleted.`}
                  run=${() => api('DELETE', `/api/llm-providers/${seg(r.id)}`)}>
                  Delete
                <//>`}
              `}
            </td>
          </tr>`} />`}
    <//>
    ${edit &&
    html`<${Edit}
      row=${edit.row}
      plugins=${[...schemas.keys()]}
      schemas=${schemas}
      done=${() => setEdit(null)} />`}
  <//>`;
}
