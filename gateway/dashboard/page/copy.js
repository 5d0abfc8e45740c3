// Text to be copied, and commands to be run elsewhere.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { plain } from './text.js';
import { html, Pre } from './ui.js';
import { t } from './words.js';

/** @param {{text: string, label?: string}} p */
export function Copy({ text, label = t('Copy') }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    const timer = done ? setTimeout(() => setDone(false), 1500) : 0;
    return () => clearTimeout(timer);
  }, [done]);
  return html`<button
    type="button"
    class="small"
    onClick=${() => navigator.clipboard?.writeText(text).then(() => setDone(true))}>
    ${done ? t('Copied') : label}
  </button>`;
}

/** A command to run on yaya's machine: the copied text is exactly the shown text.
 * @param {{text: string, label: string}} p */
export const Command = ({ text, label }) =>
  html`<div class="command">
    <${Pre} all text=${plain(text)} label=${label} />
    <${Copy} text=${plain(text)} />
  </div>`;
