// The entry: the address loses its secrets, yaya is asked who the user is, and the language is loaded, since
// modules have texts. Then comes the page.
// @ts-check
import './early.js'; // before anything else is loaded
import { t, translate } from './words.js';

/** The document may still be arriving. */
const parsed = () =>
  document.readyState === 'loading'
    ? new Promise((ok) => document.addEventListener('DOMContentLoaded', ok, { once: true }))
    : null;

translate()
  .catch(() => undefined) // the page is in English
  .then(parsed)
  .then(() => import('./app.js'))
  .catch((e) => {
    failed();
    throw e;
  });

/** Says that the page is not whole: it is replaced while it is loaded, say. Nothing but this is there. */
function failed() {
  const main = Object.assign(document.createElement('main'), { className: 'alone' });
  const button = document.createElement('button');
  button.textContent = t('Try again');
  button.onclick = () => location.reload();
  main.append(
    Object.assign(document.createElement('h1'), { textContent: t('The page cannot be loaded') }),
    button,
  );
  document.getElementById('app')?.replaceChildren(main);
}
