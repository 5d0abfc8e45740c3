// Short messages about what has happened elsewhere than in the current view.
// @ts-check
import { Signal } from './state.js';
import { html, Icon } from './ui.js';
import { t } from './words.js';

const STAYS = 6000; // ms

/** @typedef {{id: number, text: string, icon: string}} Message */

const shown = new Signal(/** @type {Message[]} */ ([]));
let last = 0;

/** Shows a message for a while. @param {string} text @param {string} [icon] */
export function toast(text, icon = 'check') {
  const m = { id: ++last, text, icon };
  shown.set([...shown.value.slice(-2), m]);
  setTimeout(() => shown.set(shown.value.filter((x) => x !== m)), STAYS);
}

export function Toasts() {
  const all = shown.use();
  return html`<div class="toasts" role="status">
    ${all.map(
      (m) =>
        html`<div class="toast" key=${m.id}>
          <${Icon} of=${m.icon} />
          <span class="grow">${m.text}</span>
          <button
            type="button"
            class="icon"
            aria-label=${t('Close the message')}
            onClick=${() => shown.set(shown.value.filter((x) => x !== m))}>
            <${Icon} of="close" />
          </button>
        </div>`,
    )}
  </div>`;
}
