// Adds a provider of models: a well-known service, one on this machine, or any other address. It
// is saved and tested at once.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { PRESETS } from './presets.js';
import { Result } from './providertest.js';
import { Tile } from './tile.js';
import { useLoaded } from './state.js';
import { plain } from './text.js';
import { Do, Field, html, typed } from './ui.js';
import { t } from './words.js';

const PLUGIN = 'llm-openai'; // which speaks OpenAI's API

/** @typedef {import('./presets.js').Preset} Preset */

/** @type {Preset} */
const OTHER = { name: '', url: '' };

/** @param {{activate?: boolean, done?: (p: Admin<'Provider'>) => void}} p activate has the new one
 * used at once */
export function Add({ activate, done }) {
  const local = useLoaded('/api/local-models', []).data ?? [];
  const [preset, setPreset] = useState(/** @type {Preset | null} */ (null));
  const [url, setURL] = useState('');
  const [key, setKey] = useState('');
  const [model, setModel] = useState('');
  const [label, setLabel] = useState('');
  const [added, setAdded] = useState(/** @type {Admin<'Provider'> | null} */ (null));
  const [tested, setTested] = useState(/** @type {Admin<'Tested'> | null} */ (null));
  const found = (/** @type {Preset} */ p) => local.find((l) => l.name === p.name);
  const choose = (/** @type {Preset} */ p) => {
    setPreset(p);
    setURL(p.url);
    setLabel(p.name);
    setModel(found(p)?.models[0] ?? '');
    setAdded(null);
    setTested(null);
  };
  const save = async () => {
    setTested(null);
    const config = {
      base_url: url.trim(),
      ...(key && { api_key: key }),
      ...(model.trim() && { model: model.trim() }),
    };
    // A second attempt corrects the first.
    const p = added
      ? await api('PATCH', `/api/llm-providers/${seg(added.id)}`, { label, config })
      : await api('POST', '/api/llm-providers', {
          plugin: preset?.plugin ?? PLUGIN,
          label: label || url,
          config,
        });
    setAdded(p);
    const result = await api(
      'POST',
      `/api/llm-providers/${seg(p.id)}/test?measure=true&timeout_ms=30000`,
    );
    setTested(result);
    if (!result.ok) return;
    if (activate) await api('PATCH', '/api/llm-providers/active', { name: p.id });
    setKey('');
    done?.(p);
  };
  const note = (/** @type {Preset} */ p) =>
    !p.url
      ? t('Any OpenAI-compatible address')
      : !p.local
        ? t('Needs a key')
        : found(p)
          ? t('Found on this machine')
          : t('On this machine');
  const models = preset ? (found(preset)?.models ?? []) : [];
  const text = (
    /** @type {string} */ name,
    /** @type {string} */ value,
    /** @type {(v: string) => void} */ set,
    /** @type {Record<string, string>} */ more = {},
  ) =>
    html`<${Field} label=${name}>
      ${(/** @type {string} */ id) =>
        html`<input
          id=${id}
          value=${value}
          autocomplete="off"
          spellcheck="false"
          maxlength="1024"
          ...${more}
          onInput=${typed(set)} />`}
    <//>`;
  return html`
    <div class="presets" role="group" aria-label=${t('Services')}>
      ${[...PRESETS, OTHER].map(
        (p) =>
          html`<button
            type="button"
            key=${p.name}
            class="preset"
            aria-pressed=${preset === p}
            onClick=${() => choose(p)}>
            <${Tile} name=${p.name || '…'} />
            <span class="two">
              <b class="strong">${p.name || t('Other')}</b>
              <small class=${found(p) ? 'good' : ''}>${note(p)}</small>
            </span>
          </button>`,
      )}
    </div>
    ${preset &&
    html`
      <div class="pair">
        ${text(t('Address'), url, setURL, { inputmode: 'url' })}
        ${!preset.local && text(t('Key'), key, setKey, { type: 'password' })}
        ${models.length
          ? html`<${Field} label=${t('Model')}>
              ${(/** @type {string} */ id) =>
                html`<select id=${id} onChange=${typed(setModel)}>
                  ${models.map(
                    (m) => html`<option value=${m} selected=${m === model}>${plain(m)}</option>`,
                  )}
                </select>`}
            <//>`
          : text(t('Model'), model, setModel)}
        ${text(t('Name'), label, setLabel)}
      </div>
      <p class="faint">
        ${t('The key is kept in yaya’s sealed store of secrets, and is never shown again.')}
      </p>
      <div class="buttons">
        <${Do} kind="primary" disabled=${!/^https?:\/\/./.test(url.trim())} run=${save}>
          ${t('Save and test')}
        <//>
        ${tested && html`<${Result} of=${tested} />`}
      </div>
    `}
  `;
}
