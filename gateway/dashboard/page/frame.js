// The frame around the views: the navigation, the notices, and the current view.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { seen, useAttention } from './attention.js';
import { Announce, Popover } from './notify.js';
import { fresh } from './renewed.js';
import { href, may, page, route, useLoaded } from './state.js';
import { plain } from './text.js';
import { choose, next, theme } from './theme.js';
import { toast, Toasts } from './toast.js';
import { Empty, html, Icon, Problem, View } from './ui.js';
import { entries, MOVED, viewAt } from './views.js';
import { rich, t } from './words.js';

/** @type {Map<string, import('./views.js').Component>} */
const loaded = new Map();

/** Loads a view's module and renders it. @param {{at: string, rest: string[]}} p */
function Lazy({ at, rest }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [, tick] = useState(0);
  const v = viewAt(at);
  const moved = Object.hasOwn(MOVED, at) ? MOVED[at] : '';
  useEffect(() => {
    setError(null);
    if (moved) location.replace(href(moved));
    if (v && !loaded.has(at)) {
      fresh(v.load()).then((m) => {
        loaded.set(at, m.default);
        tick((n) => n + 1);
      }, setError);
    }
  }, [at]);
  if (moved) return null;
  if (!v)
    return html`<${View} title=${t('Page not found')}>
      <${Empty} icon="search"><a href="#/">${t('Go to Home')}</a><//>
    <//>`;
  if (!may(v.needs))
    return html`<${View} title=${v.title}>
      <${Empty} icon="lock">
        ${t(
          'This device may not see that: it needs the scope {scope}. Somebody who manages devices can give it.',
          { scope: v.needs },
        )}
      <//>
    <//>`;
  const Loaded = loaded.get(at);
  return Loaded
    ? html`<${Loaded} key=${at} rest=${rest} />`
    : error
      ? html`<${View} title=${v.title}><${Problem} error=${error} /><//>`
      : null;
}

/** How many things there are. Amber waits, red has failed.
 * @param {{n: number, label: string, tone: string}} p */
const Count = ({ n, label, tone }) =>
  n ? html`<span class=${'n ' + tone} role="img" aria-label=${label}>${n}</span>` : null;

/** Shows files with mistakes in every view: their changes are not in force. */
function Notices() {
  const notices = useLoaded(may('config:read') ? '/api/notices' : null, ['config']);
  return (
    notices.data?.map(
      (/** @type {Admin<'Notice'>} */ n) =>
        html`<p class="notice banner" role="alert">
          ${rich(
            '{file} has a mistake and was not reloaded; its previous content stays in force: {error}',
            { file: html`<b>${plain(n.file)}</b>`, error: plain(n.error) },
          )}
        </p>`,
    ) ?? null
  );
}

/** The state of the connection, in words and as a mark. */
function Link() {
  const link = page.link.use();
  const [tone, text] =
    link.state === 'open'
      ? ['good', t('Live')]
      : link.state === 'ended'
        ? ['bad', link.why || t('Ended')]
        : ['busy', t('Connecting …')];
  return html`<p class="link" role="status" title=${text}>
    <span class=${'dot ' + tone}></span><span class="word">${text}</span>
  </p>`;
}

const THEMES = { system: t('that of the system'), light: t('light'), dark: t('dark') };

function Theme() {
  const now = theme.use();
  return html`<button
    type="button"
    class="quiet sq small"
    aria-label=${t('Theme: {now}. Change to {next}', { now: THEMES[now], next: THEMES[next()] })}
    title=${t('Theme: {now}', { now: THEMES[now] })}
    onClick=${() => choose(next())}>
    <${Icon} of="sun" />
  </button>`;
}

const SHORT = ['', 'chat', 'approvals', 'traffic'];

/** The palette or the list of keys, over the page. Their code is loaded when they open. */
function Over() {
  const over = page.over.use();
  const [parts, setParts] = useState(/** @type {typeof import('./palette.js') | null} */ (null));
  useEffect(() => {
    if (!over || parts) return;
    import('./palette.js').then(setParts, () => {
      page.over.set('');
      toast(t('A part of the page cannot be loaded. Load the page again.'), 'warning');
    });
  }, [over]);
  if (!over || !parts) return null;
  return over === 'palette' ? html`<${parts.Palette} />` : html`<${parts.Keys} />`;
}

export function Frame() {
  page.me.use();
  const connected = page.link.use().state === 'open';
  const was = useRef(false); // what never was connected is not stale
  was.current ||= connected;
  const [at = '', ...rest] = route.use();
  const [menu, setMenu] = useState(false);
  const [bell, setBell] = useState(false);
  const { all: news, fresh, counts: n } = useAttention();
  useEffect(() => {
    setMenu(false);
    setBell(false);
  }, [at]);
  // Somebody who leaves a session knows how it is.
  const open = at === 'chat' ? (rest[0] ?? '') : '';
  useEffect(() => (open ? () => void seen(open).catch(() => {}) : undefined), [open]);
  const root = viewAt(at)?.under ?? at;
  const all = entries();
  const groups = [...new Set(all.map((e) => e.entry.group))];
  const counts = /** @type {Record<string, Children>} */ ({
    approvals: html`<${Count} n=${n.asks} label=${t('{n} waiting', { n: n.asks })} tone="warn" />`,
    servers: html`
      <${Count} n=${n.failed} label=${t('{n} failed', { n: n.failed })} tone="bad" />
      <${Count} n=${n.changes} label=${t('{n} waiting', { n: n.changes })} tone="warn" />
    `,
    devices: html`<${Count}
      n=${n.devices}
      label=${t('{n} waiting', { n: n.devices })}
      tone="warn" />`,
  });
  return html`
    <a
      class="skip"
      href="#main"
      onClick=${(/** @type {Event} */ e) => {
        e.preventDefault();
        document.getElementById('main')?.focus();
      }}>
      ${t('Skip to the content')}
    </a>
    <${Announce} asks=${n.asks} fresh=${fresh} />
    <div class="app">
      <header class=${menu ? 'side open' : 'side'} id="side">
        <a class="brand" href="#/">
          <img src="/ui/icon.svg" alt="" width="22" height="22" />
          <span class="word">yaya</span><span class="host cut">${location.hostname}</span>
        </a>
        <button
          type="button"
          class="find"
          aria-haspopup="dialog"
          title=${t('Search or run')}
          onClick=${() => page.over.set('palette')}>
          <${Icon} of="search" />
          <span class="word">${t('Search or run …')}</span>
          <kbd>Ctrl K</kbd>
        </button>
        <nav aria-label=${t('Views')}>
          ${groups.map(
            (g) => html`
              ${g && html`<h2>${g}</h2>`}
              <ul>
                ${all
                  .filter((e) => e.entry.group === g)
                  .map(
                    ({ entry, to }) =>
                      html`<li key=${entry.at}>
                        <a
                          href=${href(to.at)}
                          title=${to.title}
                          aria-current=${entry.at === root ? 'page' : undefined}>
                          <${Icon} of=${to.icon} />
                          <span class="word">${to.title}</span>
                          ${Object.hasOwn(counts, entry.at) && counts[entry.at]}
                        </a>
                      </li>`,
                  )}
              </ul>
            `,
          )}
        </nav>
        <div class="foot">
          <${Link} />
          <button
            type="button"
            class=${fresh.length ? 'quiet sq small bell new' : 'quiet sq small bell'}
            aria-expanded=${bell}
            aria-label=${fresh.length
              ? t('Notifications, {n}', { n: fresh.length })
              : t('Notifications')}
            onClick=${() => setBell(!bell)}>
            <${Icon} of="bell" />
          </button>
          <${Theme} />
        </div>
      </header>
      <main id="main" tabindex="-1" class=${was.current && !connected ? 'panel dim' : 'panel'}>
        <${Notices} />
        <${Lazy} at=${at} rest=${rest} />
      </main>
      <nav class="tabbar" aria-label=${t('Shortcuts')}>
        ${all
          .filter(({ entry }) => SHORT.includes(entry.at))
          .map(
            ({ entry, to }) =>
              html`<a
                key=${entry.at}
                href=${href(to.at)}
                aria-current=${entry.at === root ? 'page' : undefined}>
                <${Icon} of=${to.icon} />
                ${to.title}
                ${Object.hasOwn(counts, entry.at) && counts[entry.at]}
              </a>`,
          )}
        <button
          type="button"
          aria-expanded=${menu}
          aria-controls="side"
          onClick=${() => setMenu(!menu)}>
          <${Icon} of="more" />
          ${t('More')}
        </button>
      </nav>
    </div>
    ${bell && html`<${Popover} all=${news} fresh=${fresh} close=${() => setBell(false)} />`}
    <${Toasts} />
    <${Over} />
  `;
}
