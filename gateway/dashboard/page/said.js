// Texts that yaya sends and the table of a language knows: descriptions of settings, words of the
// sandbox. Their subject is part of the key, since short ones mean different things elsewhere.
// @ts-check
import { html } from './html.js';
import { plain } from './text.js';
import { known, language } from './words.js';

/** @typedef {'setting' | 'sandbox' | 'traffic'} Subject */

/** A text of yaya in the user's language, English if the table lacks it: plugins have settings
 * of their own. @param {Subject} of @param {unknown} text */
export const said = (of, text) => known(`${of}: ${text}`) ?? plain(text);

/** The same as an element that names its language. @param {{of: Subject, text: unknown}} p */
export const Said = ({ of, text }) =>
  html`<span lang=${known(`${of}: ${text}`) ? language() : 'en'}>${said(of, text)}</span>`;
