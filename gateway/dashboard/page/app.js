// The page: who its user is, the connection, the frame around the views.
// @ts-check
import './address.js'; // first: it takes secrets out of the address
import { render } from './vendor/preact.js';
import { useEffect, useState } from './vendor/hooks.js';
import { identity } from './api.js';
import * as device from './device.js';
import { Live } from './live.js';
import { changed, href, locate, may, page, route, useLoaded } from './state.js';
import { html, plain, Problem } from './ui.js';

/** @type {device.Device | null} */
let self = null;
/** @type {device.Token | null} */
let token = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let renewal;

/** The views: where, what it is called, what it needs, its module. */
const VIEWS = [
  { at: '', title: 'Overview', needs: 'sessions:read', load: () => import('./overview.js') },
  { at: 'chat', title: 'Sessions', needs: 'sessions:read', load: () => import('./sessions.js') },
  { at: 'approvals', title: 'Approvals', needs: 'sessions:read', load: () => import('./approvals.js') },
  { at: 'servers', title: 'MCP servers', needs: 'config:read', load: () => import('./servers.js') },
  { at: 'tools', title: 'Tools', needs: 'config:read', load: () => import('./tools.js') },
  { at: 'quarantine', title: 'Quarantine', needs: 'config:read', load: () => import('./quarantine.js') },
  { at: 'sandbox', title: 'Sandbox', needs: 'config:read', load: () => import('./sandbox.js') },
  { at: 'devices', title: 'Devices', needs: 'devices:read', load: () => import('./devices.js') },
  { at: 'providers', title: 'Providers', needs: 'config:read', load: () => import('./providers.js') },
  { at: 'config', title: 'Configuration', needs: 'config:read', load: () => import('./config.js') },
  { at: 'agents', title: 'Agents', needs: 'agents:read', load: () => import('./agents.js') },
  { at: 'audit', title: 'Audit', needs: 'audit:read', load: () => import('./audit.js') },
  { at: 'metrics', title: 'Metrics', needs: 'metrics:read', load: () => import('./metrics.js') },
  { at: 'start', title: 'Set-up', needs: 'config:read', load: () => import('./start.js') },
];

/** @type {Map<string, any>} */
const loaded = new Map();

/** A view's module, and what it is called with. @param {{at: string, rest: string[]}} p */
function Lazy({ at, rest }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const [, tick] = useState(0);
  const v = VIEWS.find((x) => x.at === at);
  useEffect(() => {
    setError(null);
    if (v && !loaded.has(at)) {
      v.load().then((m) => {
        loaded.set(at, m.default);
        tick((n) => n + 1);
      }, setError);
    }
  }, [at]);
  if (!v) return html`<h1>There is no such page</h1><p><a href="#/">To the overview</a></p>`;
  if (!may(v.needs)) return html`<h1>${v.title}</h1><p class="empty">This device may not see that: it needs the scope ${v.needs}.</p>`;
  const View = loaded.get(at);
  return View ? html`<${View} key=${at} rest=${rest} />` : html`<${Problem} error=${error} />`;
}

/** How many things wait for somebody. @param {{path: string, part: string, what: string, of?: (x: any) => number}} p */
function Count({ path, part, what, of = () => 1 }) {
  const n = useLoaded(path, [part]).data?.reduce((/** @type {number} */ sum, /** @type {any} */ x) => sum + of(x), 0);
  return n ? html` <span class="count" aria-label=${`${n} ${what}`}>${n}</span>` : null;
}

/** Files with mistakes, wherever the user is: what they ask for does not hold. */
function Notices() {
  const notices = useLoaded(may('config:read') ? '/api/notices' : null, ['config']);
  return notices.data?.map((/** @type {any} */ n) => html`<p class="notice" role="alert"><b>${plain(n.file)}</b> has a mistake and was not taken over; what was read before holds: ${plain(n.error)}</p>`) ?? null;
}

function Frame() {
  page.me.use();
  const link = page.link.use();
  const [at = '', ...rest] = route.use();
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [at]);
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => { e.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the content</a>
    <div class="frame">
      <header class="top">
        <a class="brand" href="#/"><img src="/ui/icon.svg" alt="" width="24" height="24" />yaya</a>
        <button class="menu" aria-expanded=${open} aria-controls="nav" onClick=${() => setOpen(!open)}>Menu</button>
      </header>
      <nav id="nav" class=${open ? 'open' : ''} aria-label="Views">
        ${VIEWS.filter((v) => may(v.needs)).map((v) => html`<a href=${href(v.at)} aria-current=${v.at === at ? 'page' : undefined}>${v.title}
          ${v.at === 'approvals' && html`<${Count} path="/api/approvals" part="approvals" what="waiting" />`}
          ${v.at === 'quarantine' && html`<${Count} path="/api/mcp/quarantine" part="quarantine" what="waiting" of=${(/** @type {any} */ w) => Math.max(1, w.tools.length + (w.instructions ? 1 : 0))} />`}</a>`)}
        <p class="link" role="status">${link.state === 'open' ? html`<span class="dot good"></span> live` : link.state === 'ended' ? html`<span class="dot bad"></span> ${link.why || 'ended'}` : html`<span class="dot busy"></span> connecting …`}</p>
      </nav>
      <main id="main" tabindex="-1"><${Notices} /><${Lazy} at=${at} rest=${rest} /></main>
    </div>`;
}

const root = /** @type {HTMLElement} */ (document.getElementById('app'));
root.replaceChildren(); // what is there without scripts

function main() {
  locate();
  const local = page.me.value?.kind === 'owner';
  const path = local ? '/api/live' : '/ws';
  const url = location.origin.replace(/^http/, 'ws') + path;
  page.live = new Live({
    url,
    greet: async (frame, send) => {
      if (frame.type === 'auth_challenge' && self && token) send({ type: 'auth', device_token: token.token, challenge_sig: await device.answer(self, frame.challenge, url) });
      return frame.type === 'auth_ok';
    },
    onState: (state, why = '') => {
      page.link.set({ state, why });
      if (state === 'ended' && !why) thrownOut();
    },
    onUnauthorized: renew,
  });
  page.live.join('dashboard:main', {
    joined: () => changed(), // something may have been missed
    event: (name, payload) => name === 'changed' && changed(payload.parts),
  });
  render(html`<${Frame} />`, root);
}

/** @type {Promise<boolean> | null} */
let renewing = null;

/** Gets the next token; false if this device is out. One at a time: a token that is
 * exchanged twice counts as stolen. */
function renew() {
  renewing ??= next().finally(() => (renewing = null));
  return renewing;
}

async function next() {
  if (!self || !token) return page.me.value?.kind === 'owner';
  try {
    // One that has expired, as in a laptop that has slept, is no sign of anything: the
    // key gets another. One that was refused before its time was taken.
    const got = token.expires < Date.now() + 5000 ? await device.ask(self, { request: '' }) : await device.refresh(self, token.token);
    if (!got) return false;
    keep(got);
    return true;
  } catch (e) {
    return /** @type {any} */ (e).status === 0 || /** @type {any} */ (e).status >= 500; // it is not the token's fault
  }
}

/** @param {device.Token} t */
function keep(t) {
  token = t;
  clearTimeout(renewal);
  const half = Math.min(Math.max((t.expires - Date.now()) / 2, 30_000), 2 ** 31 - 1);
  renewal = setTimeout(async () => {
    if (await renew()) page.live?.push(null, 'phoenix', 'auth', { device_token: token?.token }).catch(() => {});
  }, half);
}

async function thrownOut() {
  clearTimeout(renewal);
  token = null;
  page.me.set(null);
  const { default: Enrol } = await import('./enrol.js');
  render(html`<${Enrol} out device=${self} admitted=${admitted} />`, root);
}

/** A device that has its token. @param {device.Device} d @param {device.Token} t */
async function admitted(d, t) {
  self = d;
  keep(t);
  await begin();
}

/** Asks who the user is, and shows what that is for. */
async function begin() {
  let r;
  try {
    r = await fetch('/api/me', { headers: token ? { Authorization: 'Bearer ' + token.token } : {}, credentials: 'omit', cache: 'no-store' });
  } catch {
    render(html`<main class="alone"><h1>yaya cannot be reached</h1><button onClick=${() => location.reload()}>Try again</button></main>`, root);
    return;
  }
  if (r.ok) {
    page.me.set(await r.json());
    main();
    return;
  }
  const body = await r.json().catch(() => ({}));
  if (r.status !== 401 && token) {
    render(html`<main class="alone"><h1>This device may not use the page</h1><p>${body.detail ?? ''}</p></main>`, root);
    return;
  }
  if (r.status !== 401) {
    render(html`<main class="alone"><h1>Not from here</h1><p>${body.detail ?? ''}</p></main>`, root);
    return;
  }
  const { default: Enrol } = await import('./enrol.js');
  render(html`<${Enrol} device=${await device.load().catch(() => null)} admitted=${admitted} />`, root);
}

identity.token = () => token?.token ?? '';
identity.unauthorized = async () => {
  if (!self) return false;
  if (await renew()) return true;
  page.live?.end('');
  return false;
};
void begin();
