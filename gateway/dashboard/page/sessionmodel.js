// The model of a session: which one answers, how full its window is, and a choice of those that
// are configured.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { may, useLoaded } from './state.js';
import { plain } from './text.js';
import { html, Name, Problem } from './ui.js';
import { t } from './words.js';

/** @typedef {V1<'Choice'>} Choice */

/** A model in words. @param {Choice} c */
function called(c) {
  const of = c.id.includes('/') ? '' : c.model;
  return plain([c.label || c.id, of].filter(Boolean).join(' · ')).slice(0, 100);
}

/** @param {{id: string, state: V1<'State'>, reload: () => void}} p */
export function SessionModel({ id, state, reload }) {
  const all = useLoaded('/v1/models', ['config', 'plugins']).data?.models ?? [];
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const chosen = state.model ?? '';
  if (!may('sessions:write'))
    return html`<${Name} text=${state.answering_model?.model || chosen} max=${100} />`;
  const active = all.find((c) => c.active);
  /** @param {Event & {target: HTMLSelectElement}} e */
  const choose = (e) => {
    setError(null);
    api('PATCH', `/v1/sessions/${seg(id)}`, { model: e.target.value })
      .catch(setError)
      .finally(reload);
  };
  return html`
    <select aria-label=${t('Model of this session')} onChange=${choose}>
      <option value="" selected=${!chosen}>
        ${active ? t('Model in use: {model}', { model: called(active) }) : t('Model in use')}
      </option>
      ${chosen &&
      !all.some((c) => c.id === chosen) &&
      html`<option value=${chosen} selected>${plain(chosen).slice(0, 100)}</option>`}
      ${all.map(
        (c) =>
          html`<option key=${c.id} value=${c.id} selected=${c.id === chosen}>${called(c)}</option>`,
      )}
    </select>
    ${!state.answering_model &&
    html`<p class="bad small">${t('This model cannot answer: choose another one.')}</p>`}
    <${Problem} error=${error} />
  `;
}
