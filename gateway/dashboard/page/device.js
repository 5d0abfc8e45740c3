// A browser on another machine is a device: it has an Ed25519 key that cannot be extracted, not
// even by this page's scripts, proves that it has the key, and gets tokens for it. The token
// stays in memory, the key in IndexedDB.
// @ts-check
import { ApiError } from './api.js';
import { t } from './words.js';

const enc = new TextEncoder();

/** A browser's identity.
 * @typedef {{key: CryptoKeyPair, publicKey: string, id: string, label: string, server: string}}
 * Device */

/** @param {ArrayBuffer | Uint8Array<ArrayBuffer>} b */
export const to64 = (b) => btoa(String.fromCharCode(...new Uint8Array(b)));
/** @param {string} s */
export const from64 = (s) => Uint8Array.from(atob(s), (c) => c.charCodeAt(0));

/** Encodes a record: each field after its length in four bytes (docs/WIRE.md).
 * @param {(string | Uint8Array)[]} fields @returns {Uint8Array<ArrayBuffer>} */
export function record(fields) {
  const parts = fields.map((f) => (typeof f === 'string' ? enc.encode(f) : f));
  const out = new Uint8Array(parts.reduce((n, p) => n + 4 + p.length, 0));
  let at = 0;
  for (const p of parts) {
    new DataView(out.buffer).setUint32(at, p.length);
    out.set(p, at + 4);
    at += 4 + p.length;
  }
  return out;
}

/** @param {Uint8Array<ArrayBuffer>} b
 * @returns {string[] | null} the fields as text, null if it is not a record */
export function fieldsOf(b) {
  const out = [];
  const view = new DataView(b.buffer, b.byteOffset, b.length);
  for (let at = 0; at < b.length;) {
    if (at + 4 > b.length) return null;
    const n = view.getUint32(at);
    at += 4;
    if (n > b.length - at) return null;
    out.push(new TextDecoder('latin1').decode(b.subarray(at, at + n)));
    at += n;
  }
  return out;
}

/** @template T @param {(s: IDBObjectStore) => IDBRequest<T>} f @param {IDBTransactionMode} mode
 * @returns {Promise<T>} */
function store(f, mode) {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open('yaya', 1);
    open.onupgradeneeded = () => open.result.createObjectStore('device');
    open.onerror = () => reject(open.error);
    open.onsuccess = () => {
      const tx = open.result.transaction('device', mode);
      const r = f(tx.objectStore('device'));
      tx.oncomplete = () => {
        open.result.close();
        resolve(r.result);
      };
      tx.onerror = tx.onabort = () => {
        open.result.close();
        reject(tx.error);
      };
    };
  });
}

/** Loads this browser's device, if it has one. @returns {Promise<Device | undefined>} */
export const load = () => store((s) => s.get('this'), 'readonly');

/** @param {Device} d */
const save = (d) => store((s) => s.put(d, 'this'), 'readwrite');

/** Creates a device for this browser, not enrolled yet.
 * @param {string} label @returns {Promise<Device>} */
export async function create(label) {
  const key = /** @type {CryptoKeyPair} */ (
    await crypto.subtle.generateKey({ name: 'Ed25519' }, false, ['sign', 'verify'])
  );
  const pub = await crypto.subtle.exportKey('raw', key.publicKey);
  const random = to64(crypto.getRandomValues(new Uint8Array(9)))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
  const d = { key, publicKey: to64(pub), id: 'browser-' + random, label, server: '' };
  await save(d); // before it is used: the approval is for exactly this key
  return d;
}

/** @param {Device} d @param {Uint8Array<ArrayBuffer>} bytes */
const sign = async (d, bytes) => to64(await crypto.subtle.sign('Ed25519', d.key.privateKey, bytes));

/** The response of /auth/register and /auth/refresh (docs/WIRE.md); errors have a detail.
 * @typedef {{server_id: string, device_token: string, expires_at: string, request_id: string,
 * detail?: string}} Registered */

/** @param {string} path @param {unknown} body @param {string} [token]
 * @returns {Promise<{status: number, body: Registered}>} */
async function post(path, body, token) {
  let r;
  try {
    r = await fetch(path, {
      method: 'POST',
      headers: {
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(token && { Authorization: 'Bearer ' + token }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'omit',
      redirect: 'error',
    });
  } catch {
    throw new ApiError(0, t('yaya cannot be reached'));
  }
  const text = await r.text();
  let answer = /** @type {Registered} */ ({});
  try {
    answer = JSON.parse(text);
  } catch {
    // the status describes the error
  }
  return { status: r.status, body: answer };
}

/** A token and its expiry. @typedef {{token: string, expires: number}} Token */

/** @param {Device} d @param {Registered} body @returns {Promise<Token>} */
async function take(d, body) {
  if (d.server && d.server !== body.server_id)
    throw new ApiError(0, t('this is not the yaya that this browser is enrolled with'));
  if (d.server !== body.server_id) {
    d.server = body.server_id;
    await save(d);
  }
  return { token: body.device_token, expires: Date.parse(body.expires_at) };
}

/** @param {Device} d */
const registration = (d) => ({ public_key: d.publicKey, device_id: d.id, label: d.label });

/** Enrolls a device with a code.
 * @param {Device} d @param {string} code @returns {Promise<Token>} */
export async function enrol(d, code) {
  const r = await post('/auth/register', { ...registration(d), code });
  if (r.status !== 200)
    throw new ApiError(r.status, r.body.detail ?? t('the code was not accepted'));
  return take(d, r.body);
}

/** Gets a token with the key alone; null while the device waits for approval.
 * @param {Device} d @param {{request: string}} wait the pending request, kept by the caller
 * @returns {Promise<Token | null>} */
export async function ask(d, wait) {
  if (!wait.request) {
    const r = await post('/auth/register', registration(d));
    if (r.status !== 202)
      throw new ApiError(r.status, r.body.detail ?? t('yaya does not accept requests now'));
    if (d.server && d.server !== r.body.server_id) await take(d, r.body);
    d.server = r.body.server_id; // from now on, only this server
    await save(d);
    wait.request = r.body.request_id;
  }
  const proof = await sign(
    d,
    record(['yaya-device-register-v1', d.server, wait.request, d.id, from64(d.publicKey)]),
  );
  const r = await post('/auth/register', { ...registration(d), request_id: wait.request, proof });
  if (r.status === 200) return take(d, r.body);
  if (r.status === 202) return null;
  wait.request = '';
  throw new ApiError(r.status, r.body.detail ?? t('this browser was rejected'));
}

/** Exchanges a token for the next one; null if it is no longer valid.
 * @param {Device} d @param {string} token @returns {Promise<Token | null>} */
export async function refresh(d, token) {
  const r = await post('/auth/refresh', undefined, token);
  if (r.status === 200) return take(d, r.body);
  if (r.status === 401) return null;
  throw new ApiError(r.status, r.body.detail ?? t('yaya answered {status}', { status: r.status }));
}

/** Signs a challenge only if it is for this connection to this server.
 * @param {Device} d @param {string} challenge @param {string} audience */
export async function answer(d, challenge, audience) {
  const bytes = from64(challenge);
  const f = fieldsOf(bytes);
  if (
    !f ||
    f.length !== 5 ||
    f[0] !== 'yaya-device-auth-v1' ||
    f[1] !== d.server ||
    f[2] !== audience ||
    f[3].length !== 32
  )
    throw new ApiError(0, t('the challenge is not for this connection, so it was not signed'));
  return sign(d, bytes);
}
