// A form for a new session.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api } from './api.js';
import { go, may, useLoaded } from './state.js';
import { Field, html, Problem, typed, View } from './ui.js';
import { t } from './words.js';

export function New() {
  const setup = useLoaded(may('config:read') ? '/api/setup' : null, []);
  const [folder, setFolder] = useState('');
  const [title, setTitle] = useState('');
  const [system, setSystem] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const begin = async () => {
    setError(null);
    // A fast user clicks before the page knows the folder that yaya works in.
    const at =
      folder ||
      (setup.data ?? (may('config:read') ? await api('GET', '/api/setup') : undefined))
        ?.workspace ||
      '';
    const s = await api('POST', '/v1/sessions', {
      workspace_path: at,
      ...(title && { title }),
      ...(system && { system_prompt: system }),
      auto_run: true,
    });
    go('chat', s.session_id);
  };
  return html`<${View} title=${t('New session')}>
    <form
      class="narrow"
      onSubmit=${(/** @type {Event} */ e) => {
        e.preventDefault();
        begin().catch(setError);
      }}>
      <${Field}
        label=${t('Folder')}
        hint=${t(
          "A folder on the machine that yaya runs on. The agent's tools cannot reach anything outside it.",
        )}>
        ${(/** @type {string} */ i) =>
          html`<input
            id=${i}
            class="mono"
            value=${folder}
            placeholder=${setup.data?.workspace ?? ''}
            spellcheck="false"
            onInput=${typed(setFolder)} />`}
      <//>
      <${Field} label=${t('Title')} hint=${t('If empty, the first message is the title.')}>
        ${(/** @type {string} */ i) =>
          html`<input id=${i} value=${title} onInput=${typed(setTitle)} />`}
      <//>
      <details>
        <summary>${t('Instructions')}</summary>
        <${Field} label=${t('System prompt for the model')}>
          ${(/** @type {string} */ i) =>
            html`<textarea
              id=${i}
              rows="4"
              value=${system}
              onInput=${typed(setSystem)}></textarea>`}
        <//>
      </details>
      <${Problem} error=${error} />
      <div class="buttons"><button class="primary" type="submit">${t('Start')}</button></div>
    </form>
  <//>`;
}
