// Notifications: the list behind the bell, the count in the title and on the icon, and those of
// the browser, which somebody has to ask for.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { read, sentence } from './attention.js';
import { may, page } from './state.js';
import { plain } from './text.js';
import { Do, html, Icon, Time } from './ui.js';
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

/** Shows a notification of the browser. It names what waits and never its arguments, and no
 * session: it may be read on a locked screen. @param {Need} need */
function tell(need) {
  try {
    // Of several windows the last one wins: they have the same tag.
    const n = new Notification(need.kind === 'approval' ? t('yaya asks') : 'yaya', {
      body:
        need.kind === 'session'
          ? need.state === 'failed'
            ? t('A session failed')
            : t('A session is done')
          : sentence({ ...need, name: need.name.slice(0, 80) }),
      tag: 'yaya ' + need.id,
      icon: '/ui/icon.svg',
    });
    n.onclick = () => {
      window.focus();
      location.hash = need.to;
      n.close();
    };
  } catch {
    // this browser shows notifications only for installed pages
  }
}

/** The count of asks in the title and on the icon, and notifications of what is new.
 * @param {{asks: number, fresh: Need[]}} p */
export function Announce({ asks: n, fresh }) {
  const title = page.title.use();
  const known = useRef(/** @type {Set<string> | null} */ (null));
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
    known.current = new Set(fresh.map((x) => x.id));
    if (!before || !document.hidden || !wanted()) return;
    for (const x of fresh.filter((f) => !before.has(f.id)).slice(0, 3)) tell(x);
  }, [fresh.map((x) => x.id).join(' ')]);
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
export function Browser() {
  const [on, setOn] = useState(wanted());
  if (!('Notification' in window))
    return html`<span>${t('This browser has no notifications.')}</span>`;
  if (on)
    return html`
      <span class="grow">${t('This browser notifies you.')}</span>
      <button type="button" class="small" onClick=${() => disable(setOn)}>${t('Turn off')}</button>
    `;
  if (Notification.permission === 'denied')
    return html`<span>${t('Notifications are blocked in the settings of this browser.')}</span>`;
  return html`
    <span class="grow">${t('What is new, without arguments.')}</span>
    <button type="button" class="small" onClick=${() => void enable(setOn)}>
      ${t('Notify me in this browser')}
    </button>
  `;
}

/** Rows of needs, the same behind the bell and on the home view.
 * @param {{needs: Need[], max?: number, act?: boolean, news?: boolean}} p news shows when each
 * was, and which nobody has read */
export function Needs({ needs, max = 100, act, news }) {
  return html`<ul class="rows">
    ${needs
      .slice(0, max)
      .map(
        (n) =>
          html`<li key=${n.id}>
            <span class=${'ico ' + n.tone}><${Icon} of=${n.icon} /></span>
            <span class="two">
              <span class="cut">
                ${n.says(html`<b><bdi>${plain(n.name).slice(0, 80)}</bdi></b>`)}
              </span>
              ${(n.detail || (news && n.time)) &&
              html`<small class="cut">
                ${news && n.time && html`<${Time} at=${n.time} />${n.detail && ' · '}`}
                <bdi>${plain(n.detail).slice(0, 300)}</bdi>
              </small>`}
            </span>
            ${news &&
            !n.read &&
            html`<span class="unread" role="img" aria-label=${t('Unread')}></span>`}
            <a
              class=${act && n === needs[0] ? 'button small primary' : 'button small'}
              aria-label=${t('{action}: {what}', { action: n.action, what: sentence(n) })}
              href=${n.to}
              onClick=${() => void read([n]).catch(() => {})}>
              ${n.action}
            </a>
          </li>`,
      )}
  </ul>`;
}

/** The list behind the bell. @param {{all: Need[], fresh: Need[], close: () => void}} p */
export function Popover({ all, fresh, close }) {
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
    <header>
      <h2 class="grow">${t('Notifications')}</h2>
      ${fresh.length > 0 &&
      may('sessions:write') &&
      html`<${Do} kind="quiet small" run=${() => read(fresh)}>
        <${Icon} of="check" />
        ${t('Mark all as read')}
      <//>`}
    </header>
    ${all.length
      ? html`<${Needs} needs=${all} max=${50} news />`
      : html`<p class="empty">${t('Nothing needs you.')}</p>`}
    <footer><${Browser} /></footer>
  </section>`;
}
