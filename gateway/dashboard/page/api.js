// Requests to yaya: as the user of this machine, or with a device's token.
// @ts-check
import { t } from './words.js';

export class ApiError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The caller's identity, set by app.js. A device has a token, kept only in memory.
 * @type {{token: () => string, unauthorized: () => Promise<boolean>}} */
export const identity = { token: () => '', unauthorized: async () => false };

/** The body of a request: a value to encode as JSON, JSON text, or other data; and a signal
 * that ends the request.
 * @typedef {{body?: unknown, text?: string, raw?: BodyInit, signal?: AbortSignal}} Sent */

/** @param {string} method @param {string} path @param {Sent} [o] @returns {Promise<Response>} */
async function send(method, path, o = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  const token = identity.token();
  if (token) headers.Authorization = 'Bearer ' + token;
  const text = o.text ?? (o.body === undefined ? undefined : JSON.stringify(o.body));
  if (text !== undefined) headers['Content-Type'] = 'application/json';
  try {
    return await fetch(path, {
      method,
      headers,
      body: o.raw ?? text,
      signal: o.signal,
      credentials: 'omit',
      redirect: 'error',
      cache: 'no-store',
    });
  } catch {
    throw new ApiError(0, t('yaya cannot be reached'));
  }
}

/** Sends a request and returns the response, whatever its body.
 * @param {string} method @param {string} path @param {Sent} [o] @returns {Promise<Response>} */
export async function request(method, path, o) {
  let r = await send(method, path, o);
  if (r.status === 401 && (await identity.unauthorized())) r = await send(method, path, o);
  if (r.ok) return r;
  /** @type {Partial<Admin<'Error'> & V1<'Error'>> | null} */
  let body = null;
  try {
    body = await r.json();
  } catch {
    // the response has no error message
  }
  throw new ApiError(
    r.status,
    body?.detail ?? body?.error?.message ?? t('yaya answered {status}', { status: r.status }),
  );
}

/** Calls an operation of the API, with JSON both ways.
 * @template {string} const M @template {string} const P
 * @param {M} method @param {P & Known<M, P>} path @param {BodyOf<M, P>} [body]
 * @returns {Promise<AnswerOf<M, P>>} */
export async function api(method, path, body) {
  const r = await request(method, path, { body });
  return r.status === 204 ? /** @type {AnswerOf<M, P>} */ (undefined) : r.json();
}

/** Escapes a path segment. @param {string} s */
export const seg = (s) => encodeURIComponent(s).replaceAll('.', '%2E');
