// The page: who its user is, the connection, the frame around the views.
// @ts-check
import * as device from './device.js';
import { render } from './vendor/preact.js';
import { ApiError, identity } from './api.js';
import { me } from './early.js';
import { Frame } from './frame.js';
import { listen } from './keys.js';
import { Live } from './live.js';
import { fresh } from './renewed.js';
import { changed, locate, page, route } from './state.js';
import { html } from './ui.js';
import { viewAt } from './views.js';
import { t } from './words.js';

/** @type {device.Device | null} */
let self = null;
/** @type {device.Token | null} */
let token = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let renewal;

const root = /** @type {HTMLElement} */ (document.getElementById('app'));
root.replaceChildren(); // the content for browsers without scripts

export function main() {
  locate();
  const local = page.me.value?.kind === 'owner';
  const path = local ? '/api/live' : '/ws';
  const url = location.origin.replace(/^http/, 'ws') + path;
  page.live = new Live({
    url,
    greet: async (frame, send) => {
      if (frame.type === 'auth_challenge' && self && token)
        send({
          type: 'auth',
          device_token: token.token,
          challenge_sig: await device.answer(self, frame.challenge, url),
        });
      return frame.type === 'auth_ok';
    },
    onState: (state, why = '') => {
      page.link.set({ state, why });
      if (state === 'ended' && !why) thrownOut();
    },
    onUnauthorized: renew,
  });
  page.live.join('dashboard:main', {
    joined: () => changed(), // the page may have missed something
    event: (name, payload) => name === 'changed' && changed(payload.parts),
  });
  render(html`<${Frame} />`, root);
  listen(); // not in an effect of the frame, which waits for the next picture
}

/** @type {Promise<boolean> | null} */
let renewing = null;

/** Gets the next token; false if this device was revoked. One at a time: a token that is
 * exchanged twice counts as stolen. */
function renew() {
  renewing ??= next().finally(() => (renewing = null));
  return renewing;
}

async function next() {
  if (!self || !token) return page.me.value?.kind === 'owner';
  try {
    // An expired token proves nothing, since the laptop may have slept: the key gets another
    // one. A token that is refused before it expires was revoked.
    const got =
      token.expires < Date.now() + 5000
        ? await device.ask(self, { request: '' })
        : await device.refresh(self, token.token);
    if (!got) return false;
    keep(got);
    return true;
  } catch (e) {
    return e instanceof ApiError && (e.status === 0 || e.status >= 500); // not the token's fault
  }
}

/** @param {device.Token} next */
function keep(next) {
  token = next;
  clearTimeout(renewal);
  const half = Math.min(Math.max((next.expires - Date.now()) / 2, 30_000), 2 ** 31 - 1);
  renewal = setTimeout(async () => {
    if (await renew())
      page.live?.push(null, 'phoenix', 'auth', { device_token: token?.token }).catch(() => {});
  }, half);
}

async function thrownOut() {
  clearTimeout(renewal);
  token = null;
  page.me.set(null);
  const { default: Enrol } = await fresh(import('./enrol.js'));
  render(html`<${Enrol} out device=${self} admitted=${admitted} />`, root);
}

/** Starts the page for a device with its token. @param {device.Device} d
 * @param {device.Token} got */
async function admitted(d, got) {
  self = d;
  keep(got);
  await begin();
}

/** Asks yaya who the user is, and shows the page for that user. */
async function begin() {
  const r = token
    ? await fetch('/api/me', {
        headers: { Authorization: 'Bearer ' + token.token },
        credentials: 'omit',
        cache: 'no-store',
      }).catch(() => null)
    : await me;
  if (!r) {
    render(
      html`<main class="alone">
        <h1>${t('yaya cannot be reached')}</h1>
        <button onClick=${() => location.reload()}>${t('Try again')}</button>
      </main>`,
      root,
    );
    return;
  }
  if (r.ok) {
    page.me.set(await r.json());
    main();
    return;
  }
  const body = await r.json().catch(() => ({}));
  if (r.status !== 401 && token) {
    render(
      html`<main class="alone">
        <h1>${t('This device may not use the page')}</h1>
        <p>${body.detail ?? ''}</p>
      </main>`,
      root,
    );
    return;
  }
  if (r.status !== 401) {
    render(
      html`<main class="alone">
        <h1>${t('Access is not allowed from here')}</h1>
        <p>${body.detail ?? ''}</p>
      </main>`,
      root,
    );
    return;
  }
  const { default: Enrol } = await fresh(import('./enrol.js'));
  render(
    html`<${Enrol} device=${await device.load().catch(() => null)} admitted=${admitted} />`,
    root,
  );
}

identity.token = () => token?.token ?? '';
identity.unauthorized = async () => {
  if (!self) return false;
  if (await renew()) return true;
  page.live?.end('');
  return false;
};
viewAt(route.value[0] ?? '')
  ?.load()
  .catch(() => {}); // the frame loads it again, and says why it cannot
void begin();
