// The mode of a session: whether its agent works, changes files without a question, or only reads until
// a person has approved a plan.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { may } from './state.js';
import { html, Problem } from './ui.js';
import { t } from './words.js';

/** @param {{id: string, state: V1<'State'>, reload: () => void}} p */
export function SessionMode({ id, state, reload }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const mode = state.mode;
  const names = { work: t('Work'), edits: t('Accept edits'), plan: t('Plan first') };
  /** @param {Event & {target: HTMLSelectElement}} e */
  const choose = (e) => {
    setError(null);
    api('PATCH', `/v1/sessions/${seg(id)}`, {
      mode: /** @type {typeof mode} */ (e.target.value),
    })
      .catch(setError)
      .finally(reload);
  };
  return html`
    ${may('sessions:write')
      ? html`<select aria-label=${t('Mode of this session')} onChange=${choose}>
          ${Object.entries(names).map(
            ([value, name]) =>
              (value !== 'edits' || value === mode || may('approvals:answer')) &&
              html`<option value=${value} selected=${value === mode}>${name}</option>`,
          )}
        </select>`
      : html`<p>${names[mode]}</p>`}
    ${mode === 'plan' &&
    html`<p class="small muted">${t('The agent only reads until you approve its plan.')}</p>`}
    ${mode === 'edits' &&
    html`<p class="small muted">${t('The agent changes files without a question.')}</p>`}
    <${Problem} error=${error} />
  `;
}
