// The configuration: every setting with the source of its value; and the plugins.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { may, useLoaded } from './state.js';
import { Confirm, Dialog } from './dialog.js';
import { plain } from './text.js';
import { Badge, Do, Field, html, Name, Of, Table, typed, View } from './ui.js';

/** @param {{row: Partial<Admin<'Setting'>>, done: () => void}} p */
function Edit({ row, done }) {
  const [key, setKey] = useState(row.key ?? '');
  const [text, setText] = useState(
    row.value === undefined ? '' : JSON.stringify(row.value, null, 2),
  );
  const save = async () => {
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      throw new Error('The value must be JSON: put quotes around a string.');
    }
    await api('PATCH', `/api/config/${seg(key.trim())}`, { value });
    done();
  };
  return html`<${Dialog} title=${row.key ?? 'Set a value'} onClose=${done}>
    ${row.doc && html`<p>${plain(row.doc)}</p>`}
    ${!row.key &&
    html`<${Field} label="Key">
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${key} spellcheck="false" onInput=${typed(setKey)} />`}
    <//>`}
    <${Field} label="Value (JSON)">
      ${(/** @type {string} */ id) =>
        html`<textarea
          id=${id}
          class="code"
          rows="6"
          spellcheck="false"
          value=${text}
          onInput=${typed(setText)}></textarea>`}
    <//>
    <div class="buttons">
      <button type="button" onClick=${done}>Cancel</button>
      <${Do} kind="primary" disabled=${!key.trim()} run=${save}>Save<//>
    </div>
  <//>`;
}

export default function Config() {
  const rows = useLoaded('/api/settings', ['config']);
  const plugins = useLoaded('/api/plugins', ['plugins', 'config']);
  const [edit, setEdit] = useState(/** @type {Partial<Admin<'Setting'>> | null} */ (null));
  const [filter, setFilter] = useState('');
  const write = may('config:write');
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return html`<${View}
    title="Settings"
    actions=${write &&
    html`<button type="button" onClick=${() => setEdit({})}>Set a value</button>`}>
    <${Field} label="Find">
      ${(/** @type {string} */ id) =>
        html`<input id=${id} type="search" value=${filter} onInput=${typed(setFilter)} />`}
    <//>
    <${Of} of=${rows}>
      ${(/** @type {Admin<'Setting'>[]} */ d) =>
        html`<${Table}
          label="Settings"
          head=${['Key', 'Value', 'From', null]}
          rows=${d.filter((r) =>
            words.every((w) => `${r.key} ${r.doc ?? ''}`.toLowerCase().includes(w)),
          )}
          empty="No settings match."
          row=${(/** @type {Admin<'Setting'>} */ r) => html`<tr key=${r.key}>
            <td>
              <code><${Name} text=${r.key} max=${100} /></code>
              ${r.doc && html`<br /><small class="muted">${plain(r.doc)}</small>`}
            </td>
            <td>
              <code>
                <${Name} text=${r.value === undefined ? '–' : JSON.stringify(r.value)} max=${120} />
              </code>
            </td>
            <td>${plain(r.origin || '–')}</td>
            <td class="buttons">
              ${write &&
              html`
                <button
                  type="button"
                  class="small"
                  aria-label=${`Change ${plain(r.key)}`}
                  onClick=${() => setEdit(r)}>
                  Change
                </button>
                ${r.origin === 'set' &&
                html`<${Confirm}
                  kind="small"
                  label=${`Unset ${plain(r.key)}`}
                  yes="Unset"
                  ask=${html`
                    <code><${Name} text=${r.key} /></code> returns to the value that it has without
                    this change.
                  `}
                  run=${() => api('DELETE', `/api/config/${seg(r.key)}`)}>
                  Unset
                <//>`}
              `}
            </td>
          </tr>`} />`}
    <//>
    <h2>Plugins</h2>
    <${Of} of=${plugins}>
      ${(/** @type {Admin<'OutPluginsBody'>} */ d) =>
        html`<${Table}
          label="Plugins"
          head=${['Plugin', 'Category', 'Version', 'State', null]}
          rows=${d.plugins}
          empty="There are no plugins."
          row=${(/** @type {Admin<'Plugin'>} */ p) => html`<tr key=${p.name}>
            <td><code><${Name} text=${p.name} /></code></td>
            <td>${plain(p.category)}</td>
            <td>${plain(p.version)}</td>
            <td>
              <${Badge} state=${p.enabled ? p.status : 'disabled'} />
              ${p.error &&
              html`<br /><small class="bad"><${Name} text=${p.error} max=${200} /></small>`}
              ${p.enabled !== (p.status === 'loaded') &&
              html`<br /><small class="muted">from the next start on</small>`}
            </td>
            <td class="buttons">
              ${write &&
              p.name !== 'web' &&
              html`<${Do}
                kind="small"
                label=${`${p.enabled ? 'Switch off' : 'Switch on'} ${plain(p.name)}`}
                run=${() => api('PATCH', `/api/plugins/${seg(p.name)}`, { enabled: !p.enabled })}>
                ${p.enabled ? 'Switch off' : 'Switch on'}
              <//>`}
            </td>
          </tr>`} />`}
    <//>
    ${edit && html`<${Edit} row=${edit} done=${() => setEdit(null)} />`}
  <//>`;
}
