// The record of calls, as it grows: the last calls that match, and those that follow.
// @ts-check
import { request } from './api.js';
import { follow } from './events.js';

const MOST = 10_000; // calls that are kept
const DRAW = 250; // ms between drawings

/** @typedef {Admin<'Record'>} Call */

/** The filters of the record. Absent ones select all.
 * @typedef {{server?: string, tool?: string, client?: string, principal?: string,
 * errors?: boolean, since?: string, until?: string}} Filter */

/** @param {Filter & Record<string, string | number | boolean | undefined>} f */
export function query(f) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(f)) if (v) q.set(k, String(v));
  return q.toString();
}

export class Calls {
  /** @param {Filter} filter @param {number} first how many to begin with
   * @param {() => void} changed */
  constructor(filter, first, changed) {
    this.filter = filter;
    this.changed = changed;
    /** @type {Call[]} */
    this.list = []; // oldest first
    this.more = false; // there are older ones
    this.ready = false;
    this.lost = 0; // calls that were not recorded, or removed before they were read
    this.bodies = '';
    this.why = '';
    this.error = /** @type {unknown} */ (null);
    this.busy = false;
    this.ended = false;
    this.stop = () => {};
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    void this.begin(first);
  }

  /** Draws soon: calls come faster than anybody reads. */
  draw() {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (!this.ended) this.changed();
    }, DRAW);
  }

  /** @param {Record<string, number>} page @returns {Promise<Admin<'CallPage'>>} */
  async fetch(page) {
    return (await request('GET', `/api/traffic?${query({ ...this.filter, ...page })}`)).json();
  }

  /** @param {number} first */
  async begin(first) {
    try {
      const p = await this.fetch({ limit: first });
      if (this.ended) return;
      this.list = p.calls;
      this.more = p.more;
      this.lost = p.lost.failed + p.lost.busy;
      this.bodies = p.bodies;
      this.why = p.why ?? '';
      this.ready = true;
      const last = () => this.list.at(-1)?.id ?? 0;
      if (!this.filter.until)
        this.stop = follow(
          () => `/api/traffic/events?${query({ ...this.filter, after: last() })}`,
          (e) => {
            if (e.name === 'lost') this.lost++;
            const c = /** @type {Call} */ (e.data);
            if (e.name !== 'call' || c.id <= last()) return;
            this.list.push(c);
            if (this.list.length > MOST) {
              this.list.splice(0, this.list.length - MOST);
              this.more = true;
            }
            this.draw();
          },
          (error) => {
            this.error = error;
            this.draw();
          },
        );
    } catch (e) {
      this.error = e;
    }
    if (!this.ended) this.changed();
  }

  /** Fetches older calls. */
  async older() {
    const before = this.list[0]?.id;
    if (this.busy || !this.more || !before || this.list.length >= MOST) return;
    this.busy = true;
    try {
      const p = await this.fetch({ before, limit: 500 });
      this.list = p.calls.concat(this.list);
      this.more = p.more;
    } catch (e) {
      this.error = e;
    }
    this.busy = false;
    if (!this.ended) this.changed();
  }

  close() {
    this.ended = true;
    clearTimeout(this.timer);
    this.stop();
  }
}
