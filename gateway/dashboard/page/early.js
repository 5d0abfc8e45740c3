// A request that need not wait for the modules of the page: its answer comes with them.
// @ts-check

/** The answer to who the user is, without a token: only the owner needs none.
 * @type {Promise<Response | null>} */
export const me = fetch('/api/me', { credentials: 'omit', cache: 'no-store' }).catch(() => null);
