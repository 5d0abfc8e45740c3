// Templates and icons, which everything else is made of.
// @ts-check
import htm from './vendor/htm.js';
import { h } from './vendor/preact.js';

export const html = htm.bind(h);

/** An icon of icons.svg: a decoration, its name is beside it or on its button.
 * @param {{of: string}} p */
export const Icon = ({ of }) =>
  html`<svg class="i" viewBox="0 0 16 16" aria-hidden="true">
    <use href=${'/ui/icons.svg#' + of} />
  </svg>`;
