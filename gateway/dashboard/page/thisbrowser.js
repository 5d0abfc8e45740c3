// The choices of this browser alone: theme, language, notifications, single keys.
// @ts-check
import { setSingle, single } from './keys.js';
import { Browser } from './notify.js';
import { choose, theme } from './theme.js';
import { html } from './ui.js';
import { language, LANGUAGES, speak, t } from './words.js';

/** @type {readonly {at: import('./theme.js').Theme, title: string}[]} */
export const THEMES = [
  { at: 'system', title: t('As the system') },
  { at: 'light', title: t('Light') },
  { at: 'dark', title: t('Dark') },
];

/** @param {{name: string, note: string, children?: Children}} p */
const Line = ({ name, note, children }) =>
  html`<li>
    <span class="two"><b class="strong">${name}</b><small>${note}</small></span>${children}
  </li>`;

export function ThisBrowser() {
  const now = theme.use();
  const keys = single.use();
  return html`<section class="box" aria-label=${t('This browser')}>
    <header>
      <h2>${t('This browser')}</h2>
      <span class="faint">${t('Kept here, for this browser alone.')}</span>
    </header>
    <ul class="rows">
      <${Line} name=${t('Theme')} note=${t('Light, dark, or that of the system.')}>
        <span class="seg" role="group" aria-label=${t('Theme')}>
          ${THEMES.map(
            (x) =>
              html`<button type="button" aria-pressed=${x.at === now} onClick=${() => choose(x.at)}>
                ${x.title}
              </button>`,
          )}
        </span>
      <//>
      <${Line} name=${t('Language')} note=${t('The page loads again when it changes.')}>
        <span class="seg" role="group" aria-label=${t('Language')}>
          ${LANGUAGES.map(
            (x) =>
              html`<button
                type="button"
                lang=${x.at}
                aria-pressed=${x.at === language()}
                onClick=${() => x.at !== language() && speak(x.at)}>
                ${x.name}
              </button>`,
          )}
        </span>
      <//>
      <${Line}
        name=${t('Notifications of this browser')}
        note=${t('They name the tool that waits for approval, and never its arguments.')}>
        <span class="flex tells"><${Browser} /></span>
      <//>
      <${Line}
        name=${t('Single keys')}
        note=${t('Such as g and h for Home. The key ? lists them. None works while you write.')}>
        <input
          type="checkbox"
          role="switch"
          class="switch"
          aria-label=${t('Single keys')}
          checked=${keys}
          onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) =>
            setSingle(e.target.checked)} />
      <//>
    </ul>
  </section>`;
}
