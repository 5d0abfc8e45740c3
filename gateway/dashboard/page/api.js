// Requests to yaya: as the user of this machine, or with a device's token.
// @ts-check

export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {any} [body] */
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}

/** Who speaks: set by app.js. A device has a token, which is in memory only (UI-05).
 * @type {{token: () => string, unauthorized: () => Promise<boolean>}} */
export const identity = { token: () => '', unauthorized: async () => false };

/** @param {string} method @param {string} path @param {{body?: any, text?: string, raw?: BodyInit}} [o] text is JSON that is sent as it is @returns {Promise<Response>} */
async function send(method, path, o = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  const token = identity.token();
  if (token) headers.Authorization = 'Bearer ' + token;
  const text = o.text ?? (o.body === undefined ? undefined : JSON.stringify(o.body));
  if (text !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(path, { method, headers, body: o.raw ?? text, credentials: 'omit', redirect: 'error', cache: 'no-store' });
  } catch {
    throw new ApiError(0, 'yaya cannot be reached');
  }
}

/** A request whose answer is a response, whatever it has.
 * @param {string} method @param {string} path @param {{body?: any, text?: string, raw?: BodyInit}} [o] @returns {Promise<Response>} */
export async function request(method, path, o) {
  let r = await send(method, path, o);
  if (r.status === 401 && (await identity.unauthorized())) r = await send(method, path, o);
  if (r.ok) return r;
  /** @type {any} */
  let body = null;
  try {
    body = await r.json();
  } catch {
    // it has no words of its own
  }
  throw new ApiError(r.status, body?.detail ?? body?.error?.message ?? `yaya answered ${r.status}`, body);
}

/** A request with JSON both ways.
 * @param {string} method @param {string} path @param {any} [body] @returns {Promise<any>} */
export async function api(method, path, body) {
  const r = await request(method, path, { body });
  return r.status === 204 ? undefined : r.json();
}

/** A part of a path. @param {string} s */
export const seg = (s) => encodeURIComponent(s).replaceAll('.', '%2E');
