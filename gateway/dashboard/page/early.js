// A request that need not wait for the modules of the page: its answer comes with them.
// @ts-check
import './address.js'; // before anything else: the address loses its secrets

/** The answer to who the user is, without a token: only the owner needs none. index.html has asked for it: a
 * browser gives that answer to a request of the same kind, and asks once more for another kind.
 * @type {Promise<Response | null>} */
export const me = fetch('/api/me', { credentials: 'same-origin' }).catch(() => null);
