// Editors of settings: each type has its own, and a value of any other type is JSON.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Dialog } from './dialog.js';
import { Said } from './said.js';
import { plain } from './text.js';
import { Do, Field, html, Problem, typed } from './ui.js';
import { rich, t } from './words.js';

/** @typedef {Partial<Admin<'Setting'>>} Setting */

/** @param {unknown} v */
const isTexts = (v) => Array.isArray(v) && v.every((x) => typeof x === 'string');

/** The value as its editor begins with it. @param {Setting} s */
function written(s) {
  const v = s.value ?? s.default;
  if (v === undefined) return '';
  if (s.type === 'list' && isTexts(v)) return /** @type {string[]} */ (v).join('\n');
  if (s.type && s.type !== 'json' && s.type !== 'list' && typeof v !== 'object') return String(v);
  return JSON.stringify(v, null, 2);
}

/** The value that somebody has written. @param {Setting} s @param {string} text
 * @returns {unknown} */
function valueOf(s, text) {
  switch (s.type) {
    case 'text':
    case 'duration':
      return text.trim();
    case 'number': {
      const n = Number(text.trim());
      if (!text.trim() || !Number.isFinite(n)) throw new Error(t('The value must be a number.'));
      return n;
    }
    case 'list':
      return text
        .split('\n')
        .map((l) => l.trim())
        .filter(Boolean);
    default:
      try {
        return JSON.parse(text);
      } catch {
        throw new Error(t('The value must be JSON: put quotes around a text.'));
      }
  }
}

/** The field for a type. @param {Setting} s @param {string} id @param {string} text
 * @param {(v: string) => void} set @returns {Children} */
function field(s, id, text, set) {
  if (s.choices?.length)
    return html`<select id=${id} onChange=${typed(set)}>
      ${s.choices.map((c) => html`<option value=${c} selected=${c === text}>${plain(c)}</option>`)}
    </select>`;
  if (s.type === 'number')
    return html`<input id=${id} inputmode="decimal" value=${text} onInput=${typed(set)} />`;
  if (s.type === 'text' || s.type === 'duration')
    return html`<input id=${id} spellcheck="false" value=${text} onInput=${typed(set)} />`;
  return html`<textarea
    id=${id}
    class="code"
    rows=${s.type === 'list' ? 4 : 8}
    spellcheck="false"
    value=${text}
    onInput=${typed(set)}></textarea>`;
}

const HINTS = new Map([
  ['duration', t('A number with a unit, such as 30s, 10m or 1h.')],
  ['list', t('One entry a line.')],
  ['json', t('The value as JSON.')],
]);

/** Changes a setting, or sets one by its key. @param {{row: Setting, done: () => void}} p */
export function Edit({ row, done }) {
  const [key, setKey] = useState(row.key ?? '');
  const [text, setText] = useState(written(row) || row.choices?.[0] || '');
  const save = async () => {
    await api('PATCH', `/api/config/${seg(key.trim())}`, { value: valueOf(row, text) });
    done();
  };
  return html`<${Dialog} title=${row.key ?? t('Set a value')} onClose=${done}>
    ${row.doc && html`<p><${Said} of="setting" text=${row.doc} /></p>`}
    ${!row.key &&
    html`<${Field} label=${t('Key')} hint=${t('As in plugin.NAME.FIELD or approval.groups.NAME.')}>
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${key} spellcheck="false" onInput=${typed(setKey)} />`}
    <//>`}
    <${Field} label=${t('Value')} hint=${HINTS.get(row.type ?? 'json')}>
      ${(/** @type {string} */ id) => field(row, id, text, setText)}
    <//>
    ${row.unset &&
    html`<p class="faint">
      ${rich('Without a value: {what}', {
        what: html`<bdi><${Said} of="setting" text=${row.unset} /></bdi>`,
      })}
    </p>`}
    <div class="buttons">
      <button type="button" onClick=${done}>${t('Cancel')}</button>
      <${Do} kind="primary" disabled=${!key.trim()} run=${save}>${t('Save')}<//>
    </div>
  <//>`;
}

/** A switch for a setting that is on or off. One that is refused goes back, and says why.
 * @param {{s: Admin<'Setting'>, write: boolean}} p */
export function Switch({ s, write }) {
  const now = Boolean(s.value ?? s.default);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const change = async (/** @type {Event & {target: HTMLInputElement}} */ e) => {
    const value = e.target.checked;
    setBusy(true);
    setError(null);
    try {
      await api('PATCH', `/api/config/${seg(s.key)}`, { value });
    } catch (err) {
      e.target.checked = now;
      setError(err);
    }
    setBusy(false);
  };
  return html`
    <input
      type="checkbox"
      role="switch"
      class="switch"
      aria-label=${plain(s.key)}
      checked=${now}
      disabled=${busy || !write}
      onChange=${change} />
    <${Problem} error=${error} />
  `;
}
