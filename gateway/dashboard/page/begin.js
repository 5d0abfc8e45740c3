// The entry: the address loses its secrets, yaya is asked who the user is, and the language is loaded, since
// modules have texts. Then comes the page.
// @ts-check
import './early.js'; // before anything else
import { translate } from './words.js';

/** The document may still be arriving. */
const parsed = () =>
  document.readyState === 'loading'
    ? new Promise((ok) => document.addEventListener('DOMContentLoaded', ok, { once: true }))
    : null;

translate()
  .catch(() => undefined) // the page is in English
  .then(parsed)
  .then(() => import('./app.js'));
