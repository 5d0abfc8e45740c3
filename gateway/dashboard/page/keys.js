// Keys that work in every view. Single keys can be turned off, and never work while somebody
// writes (WCAG 2.1.4).
// @ts-check
import { go, may, page, Signal } from './state.js';
import { viewAt } from './views.js';

const KEY = 'yaya.keys';

/** The second key after g, and the view that it opens. */
export const PLACES = /** @type {const} */ ([
  ['h', ''],
  ['s', 'chat'],
  ['a', 'approvals'],
  ['v', 'servers'],
  ['t', 'traffic'],
  ['o', 'tools'],
  ['m', 'metrics'],
  ['d', 'devices'],
  ['u', 'audit'],
  ['c', 'config'],
]);

/** Whether single keys are on. */
export const single = new Signal(stored());

function stored() {
  try {
    return localStorage.getItem(KEY) !== 'off';
  } catch {
    return true; // without storage, a choice holds until the page is closed
  }
}

/** @param {boolean} on */
export function setSingle(on) {
  single.set(on);
  try {
    if (on) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, 'off');
  } catch {
    // it holds until the page is closed
  }
}

/** Whether somebody writes there. @param {EventTarget | null} at */
const writes = (at) =>
  at instanceof HTMLElement &&
  (at.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(at.tagName));

let afterG = -Infinity; // when g was pressed last; stamps begin at 0 with the page

/** @param {KeyboardEvent} e */
function pressed(e) {
  if (e.defaultPrevented || e.isComposing) return;
  if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    page.over.set(page.over.value === 'palette' ? '' : 'palette');
    return;
  }
  if (!single.value || e.ctrlKey || e.metaKey || e.altKey || writes(e.target)) return;
  if (document.querySelector('dialog[open]')) return;
  const second = e.timeStamp - afterG < 1500;
  afterG = -Infinity;
  if (second) {
    const to = PLACES.find(([k]) => k === e.key)?.[1];
    const view = to === undefined ? undefined : viewAt(to);
    if (view && may(view.needs)) {
      e.preventDefault();
      go(...(view.at ? [view.at] : []));
    }
    return;
  }
  const find = document.querySelector('main input[type="search"]');
  if (e.key === 'g') afterG = e.timeStamp;
  else if (e.key === '?') page.over.set('keys');
  else if (e.key === '/' && find instanceof HTMLInputElement) find.focus();
  else if (e.key === 'c' && may('sessions:write')) go('chat', 'new');
  else return;
  e.preventDefault();
}

/** From here on keys work; measurements look for the mark. */
export const listen = () => {
  addEventListener('keydown', pressed);
  performance.mark('yaya:keys');
};
