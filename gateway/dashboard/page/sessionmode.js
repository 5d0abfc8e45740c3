// The mode of a session: whether its agent works, or only reads until a person has approved a plan.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { may } from './state.js';
import { html, Problem } from './ui.js';
import { t } from './words.js';

/** @param {{id: string, state: V1<'State'>, reload: () => void}} p */
export function SessionMode({ id, state, reload }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const plans = state.mode === 'plan';
  /** @param {Event & {target: HTMLSelectElement}} e */
  const choose = (e) => {
    setError(null);
    api('PATCH', `/v1/sessions/${seg(id)}`, {
      mode: /** @type {'work' | 'plan'} */ (e.target.value),
    })
      .catch(setError)
      .finally(reload);
  };
  return html`
    ${may('sessions:write')
      ? html`<select aria-label=${t('Mode of this session')} onChange=${choose}>
          <option value="work" selected=${!plans}>${t('Work')}</option>
          <option value="plan" selected=${plans}>${t('Plan first')}</option>
        </select>`
      : html`<p>${plans ? t('Plan first') : t('Work')}</p>`}
    ${plans &&
    html`<p class="small muted">${t('The agent only reads until you approve its plan.')}</p>`}
    <${Problem} error=${error} />
  `;
}
