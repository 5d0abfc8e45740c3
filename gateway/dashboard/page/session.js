// One session on the page: its history, loaded backwards from the end, and new events from the
// topic agent:{id}. Every event on the tape has a seq; the last one is the page's position,
// where it resumes after a reconnect.
// @ts-check
import { Items, KEPT, SHOWN } from './items.js';
import { changed, page } from './state.js';
import { words } from './text.js';

const FIRST = 200; // entries to begin with
const MORE = 500;
const AGAIN = 5_000; // ms until a session is looked for again that no node has
const GAP = 3000; // a session that has gone on for longer is reloaded at its end

export class Session {
  /** @param {string} id @param {() => void} onChange */
  constructor(id, onChange) {
    this.id = id;
    this.onChange = onChange;
    /** @type {Told[]} */
    this.events = []; // with a seq, oldest first
    this.items = new Items();
    this.first = 0; // there may be older events; 1: there are none
    this.cursor = /** @type {Cursor | null} */ (null);
    this.running = false;
    /** @type {Waiting[]} */
    this.queue = [];
    this.text = ''; // the text that is being streamed
    this.stream = '';
    this.problem = '';
    this.absent = false; // no node that answers has it
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.again = undefined;
    this.ready = false;
    this.busy = false;
    this.frame = 0;
    this.channel = page.live?.join('agent:' + id, {
      cursor: () => (this.cursor ? { since: this.cursor.seq, epoch: this.cursor.epoch } : null),
      joined: (r) => this.joined(r),
      event: (name, payload) => this.event(name, payload),
      refused: (reason) => {
        this.absent = reason === 'unmatched topic';
        this.problem = this.absent ? '' : reason;
        clearTimeout(this.again);
        this.again = setTimeout(() => this.channel?.join(), AGAIN); // its node may come back
        this.changed();
      },
    });
  }

  /** Draws the view at most once per frame. */
  changed() {
    if (this.frame) return;
    const f = () => {
      this.frame = 0;
      this.onChange();
    };
    this.frame = document.hidden ? window.setTimeout(f, 100) : requestAnimationFrame(f);
  }

  close() {
    clearTimeout(this.again);
    this.channel?.leave();
    cancelAnimationFrame(this.frame);
    this.onChange = () => {};
  }

  /** @param {{cursor: Cursor, snapshot: Snapshot, resync?: unknown}} r */
  joined(r) {
    this.problem = '';
    this.absent = false;
    this.running = Boolean(r.snapshot.turn_id);
    this.queue = r.snapshot.queue ?? [];
    this.text = this.stream = '';
    const behind = this.cursor ? r.cursor.seq - this.cursor.seq : 0;
    if (!this.cursor || r.resync || r.cursor.epoch !== this.cursor.epoch || behind > GAP) {
      this.events = [];
      this.items = new Items();
      this.cursor = r.cursor;
      this.first = r.cursor.seq + 1;
      this.ready = false;
    }
    if (!this.ready) void this.older(FIRST); // also if the connection broke before it came
    this.changed();
  }

  /** Fetches what is older than what there is. @param {number} [limit] */
  async older(limit = MORE) {
    if (this.busy || this.first <= 1 || !this.channel) {
      this.ready ||= this.first <= 1;
      return;
    }
    this.busy = true;
    const epoch = this.cursor?.epoch;
    try {
      const r = await this.channel.push('history', { before: this.first, limit });
      if (this.cursor?.epoch === epoch) {
        this.first = r.first;
        this.events = r.events
          .filter((/** @type {Told} */ e) => SHOWN.has(e.type))
          .concat(this.events);
        this.items = new Items();
        for (const e of this.events) this.items.take(e);
        this.ready = true;
      }
    } catch (e) {
      this.problem = words(e);
    }
    this.busy = false;
    if (this.cursor && this.cursor.epoch !== epoch) void this.older(FIRST); // reset meanwhile
    this.changed();
  }

  /** @param {string} name @param {import('./live.js').Payload} p */
  event(name, p) {
    switch (name) {
      case 'stream_start':
        this.stream = p.request_id;
        this.text = '';
        break;
      case 'stream_chunk':
        if (p.request_id === this.stream) this.text += p.chunk;
        break;
      case 'stream_end':
      case 'stream_error':
        break; // the outcome follows
      case 'resync':
        this.cursor = null;
        this.joined({
          cursor: { epoch: p.current.epoch, seq: p.current.as_of_seq },
          snapshot: p.current,
        });
        return;
      default: {
        if (p.cursor) {
          if (
            this.cursor &&
            p.cursor.epoch === this.cursor.epoch &&
            p.cursor.seq <= this.cursor.seq
          )
            return;
          this.cursor = p.cursor;
        }
        if (name === 'queue_changed') this.queue = p.data.queue;
        if (name === 'x.session.model' || name === 'x.session.mode') changed(['sessions']); // another client may have chosen it
        if (name === 'turn.started') this.running = true;
        if (name === 'turn.completed' || name === 'turn.failed' || name === 'turn.cancelled')
          this.running = false;
        if (name === 'turn.cancelled' || name === 'turn.failed') this.keep(p);
        if (
          name === 'llm.call.response' ||
          name === 'assistant.message.done' ||
          name.startsWith('turn.')
        )
          this.text = this.stream = '';
        if (p.cursor && SHOWN.has(name)) this.events.push(p);
        this.items.take(p);
      }
    }
    this.changed();
  }

  /** Keeps the text that was being written when the turn ended: the tape does not have it.
   * @param {Told} end */
  keep(end) {
    const text = this.items.unsaid(this.text);
    if (!text.trim() || !end.cursor) return;
    const cursor = { ...end.cursor, seq: end.cursor.seq - 0.5 }; // before the end
    /** @type {Told} */
    const kept = { type: KEPT, ts: end.ts, cursor, data: { text } };
    this.events.push(kept);
    this.items.take(kept);
  }
}
