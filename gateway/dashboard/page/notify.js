// Notifications: the list behind the bell, the count in the title and on the icon, and those of
// the browser, which somebody has to ask for.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { sentence } from './attention.js';
import { page } from './state.js';
import { plain } from './text.js';
import { html, Icon } from './ui.js';
import { t } from './words.js';

const KEY = 'yaya.notify';

/** @typedef {import('./attention.js').Need} Need */

function wanted() {
  try {
    return localStorage.getItem(KEY) === 'on' && Notification.permission === 'granted';
  } catch {
    return false; // this browser has no notifications, or no storage
  }
}

/** Shows a notification of the browser. It names the tool and never its arguments: it may be
 * read on a locked screen. @param {Admin<'Ask'>} ask */
function tell(ask) {
  try {
    // Of several windows the last one wins: they have the same tag.
    const n = new Notification(t('yaya asks'), {
      body: t('{tool} waits for your approval.', { tool: plain(ask.tool_name).slice(0, 80) }),
      tag: 'yaya ' + ask.id,
      icon: '/ui/icon.svg',
    });
    n.onclick = () => {
      window.focus();
      location.hash = '#/approvals';
      n.close();
    };
  } catch {
    // this browser shows notifications only for installed pages
  }
}

/** The count of asks in the title and on the icon, and notifications of new ones.
 * @param {{asks: Admin<'Ask'>[]}} p */
export function Announce({ asks }) {
  const title = page.title.use();
  const known = useRef(/** @type {Set<string> | null} */ (null));
  const n = asks.length;
  useEffect(() => {
    document.title = `${n ? `(${n}) ` : ''}${plain(title)} · yaya`;
  }, [title, n]);
  useEffect(() => {
    const icon = document.querySelector('link[rel="icon"]');
    if (icon instanceof HTMLLinkElement) icon.href = n ? '/ui/icon-waits.svg' : '/ui/icon.svg';
    const badge = n ? navigator.setAppBadge?.(n) : navigator.clearAppBadge?.();
    badge?.catch(() => {}); // it is refused where the page is not installed
  }, [n]);
  useEffect(() => {
    const before = known.current;
    known.current = new Set(asks.map((a) => a.id));
    if (!before || !document.hidden || !wanted()) return;
    for (const a of asks.filter((x) => !before.has(x.id)).slice(0, 3)) tell(a);
  }, [asks]);
  return null;
}

/** Asks the browser for permission: only ever after a click. @param {(on: boolean) => void} done */
async function enable(done) {
  const answer = await Notification.requestPermission();
  try {
    if (answer === 'granted') localStorage.setItem(KEY, 'on');
  } catch {
    // without storage the choice cannot be kept
  }
  done(wanted());
}

/** @param {(on: boolean) => void} done */
function disable(done) {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // there is nothing to remove
  }
  done(false);
}

/** The line with the switch for notifications of the browser. */
function Browser() {
  const [on, setOn] = useState(wanted());
  if (!('Notification' in window))
    return html`<span>${t('This browser has no notifications.')}</span>`;
  if (on)
    return html`
      <span class="grow">${t('This browser tells you about approvals.')}</span>
      <button type="button" class="small" onClick=${() => disable(setOn)}>${t('Turn off')}</button>
    `;
  if (Notification.permission === 'denied')
    return html`<span>${t('Notifications are blocked in the settings of this browser.')}</span>`;
  return html`
    <span class="grow">${t('Approvals, without arguments.')}</span>
    <button type="button" class="small" onClick=${() => void enable(setOn)}>
      ${t('Notify me in this browser')}
    </button>
  `;
}

/** Rows of needs, the same behind the bell and on the home view.
 * @param {{needs: Need[], max?: number, act?: boolean}} p */
export function Needs({ needs, max = 100, act }) {
  return html`<ul class="rows">
    ${needs
      .slice(0, max)
      .map(
        (n) =>
          html`<li key=${n.key}>
            <span class=${'ico ' + n.tone}><${Icon} of=${n.icon} /></span>
            <span class="two">
              <span class="cut">
                ${n.says(html`<b><bdi>${plain(n.who).slice(0, 80)}</bdi></b>`)}
              </span>
              ${n.detail &&
              html`<small class="cut"><bdi>${plain(n.detail).slice(0, 300)}</bdi></small>`}
            </span>
            <a
              class=${act && n === needs[0] ? 'button small primary' : 'button small'}
              aria-label=${t('{action}: {what}', { action: n.action, what: sentence(n) })}
              href=${n.to}>
              ${n.action}
            </a>
          </li>`,
      )}
  </ul>`;
}

/** The list behind the bell. @param {{needs: Need[], close: () => void}} p */
export function Popover({ needs, close }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    box.current?.focus();
    const key = (/** @type {KeyboardEvent} */ e) => e.key === 'Escape' && close();
    const away = (/** @type {Event} */ e) => {
      const at = /** @type {Element} */ (e.target);
      if (!box.current?.contains(at) && !at.closest?.('.bell')) close();
    };
    addEventListener('keydown', key);
    addEventListener('pointerdown', away);
    return () => {
      removeEventListener('keydown', key);
      removeEventListener('pointerdown', away);
    };
  }, []);
  return html`<section class="pop" ref=${box} tabindex="-1" aria-label=${t('Notifications')}>
    <header><h2>${t('Notifications')}</h2></header>
    ${needs.length
      ? html`<${Needs} needs=${needs} max=${20} />`
      : html`<p class="empty">${t('Nothing needs you.')}</p>`}
    <footer><${Browser} /></footer>
  </section>`;
}
