// The tile with the first letter of a name.
// @ts-check
import { plain } from './text.js';
import { html } from './html.js';

/** @param {{name: string, large?: boolean}} p */
export const Tile = ({ name, large }) => {
  const c = [...name].reduce((n, x) => (n * 31 + (x.codePointAt(0) ?? 0)) % 997, 7) % 4;
  return html`<span class=${`ava c${c + 1}${large ? ' large' : ''}`} aria-hidden="true">
    ${plain([...name][0] ?? '?')
      .slice(0, 1)
      .toUpperCase()}
  </span>`;
};
