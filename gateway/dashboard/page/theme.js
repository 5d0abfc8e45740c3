// The theme: that of the system, or the one that the user has chosen in this browser.
// @ts-check
import { Signal } from './state.js';

const KEY = 'yaya.theme';

/** @typedef {'system' | 'light' | 'dark'} Theme */

/** Storage may be off in this browser: then a choice holds until the page is closed.
 * @returns {Theme} */
function stored() {
  try {
    const t = localStorage.getItem(KEY);
    return t === 'light' || t === 'dark' ? t : 'system';
  } catch {
    return 'system';
  }
}

export const theme = new Signal(stored());

function show() {
  if (theme.value === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}
show();

/** @param {Theme} t */
export function choose(t) {
  theme.set(t);
  show();
  try {
    if (t === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, t);
  } catch {
    // it holds until the page is closed
  }
}

/** The theme that the button chooses next. @returns {Theme} */
export const next = () =>
  theme.value === 'system' ? 'light' : theme.value === 'light' ? 'dark' : 'system';
