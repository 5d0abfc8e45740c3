// Outgoing messages: each is sent repeatedly until yaya confirms it.
// @ts-check
import { api, ApiError, seg } from './api.js';

/** @typedef {NonNullable<V1<'NewMessage'>['delivery']>} Delivery */

/** An outgoing message. A message that yaya refuses waits for its author.
 * @typedef {{id: string, parts: V1<'Part'>[], delivery: Delivery, refused: unknown,
 * note: string}} Sending */

/** Unconfirmed messages, by session: they are sent until yaya confirms them, in order and with
 * the same id, so that yaya accepts each only once.
 * @type {Map<string, Sending[]>} */
export const outbox = new Map();

/** @type {Set<string>} */
const flushing = new Set();

/** @param {string} session @param {() => void} onChange */
export async function flush(session, onChange) {
  if (flushing.has(session)) return;
  flushing.add(session);
  const box = outbox.get(session) ?? [];
  let wait = 500;
  for (let m; (m = box.find((x) => !x.refused));) {
    try {
      await api('POST', `/v1/sessions/${seg(session)}/messages`, {
        id: m.id,
        role: 'user',
        parts: m.parts,
        auto_run: true,
        delivery: m.delivery,
      });
      box.splice(box.indexOf(m), 1);
      wait = 500;
    } catch (e) {
      if (e instanceof ApiError && e.status !== 0 && e.status < 500 && e.status !== 429) {
        m.refused = e;
      } else {
        m.note = 'yaya cannot be reached; the message is sent as soon as possible';
        onChange();
        await new Promise((ok) => setTimeout(ok, wait));
        wait = Math.min(wait * 2, 8000);
      }
    }
    onChange();
  }
  flushing.delete(session);
}

export const newID = () =>
  'msg_' +
  crypto
    .getRandomValues(new Uint8Array(12))
    .reduce((s, b) => s + b.toString(16).padStart(2, '0'), '');
