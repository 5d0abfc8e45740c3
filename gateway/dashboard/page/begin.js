// The entry: the language first, since modules have texts, then the page.
// @ts-check
import './address.js'; // before anything else: it removes secrets from the address
import './early.js';
import { translate } from './words.js';

translate()
  .catch(() => undefined) // the page is in English
  .then(() => import('./app.js'));
