// One session as the page has it: what there was, from its end backwards, and what
// comes, by the topic agent:{id}. Everything that is on the tape has a seq; where the
// page is, is the last of them, and coming back begins there.
// @ts-check
import { page } from './state.js';

/**
 * @typedef {object} Item what the view shows of one or more events
 * @property {string} key
 * @property {'user' | 'assistant' | 'tool' | 'note'} kind
 * @property {string} [text]
 * @property {string} [ts]
 * @property {any[]} [attachments]
 * @property {string} [tone] of a note
 * @property {any} [call] of a tool: {id, name, args}
 * @property {any} [result] {ok, error, envelope}
 * @property {any} [progress]
 */

const FIRST = 200; // entries to begin with
const MORE = 500;
const GAP = 3000; // a session that has gone on for longer is begun anew at its end

/** Kinds that the view shows something of. */
const SHOWN = new Set(['user.message.received', 'llm.call.response', 'assistant.message.done', 'tool.call.request', 'tool.call.start', 'tool.call.result', 'tool.error', 'turn.started', 'turn.completed', 'turn.failed', 'turn.cancelled',
  'approval.response', 'approval.cancelled', 'verify.completed', 'session.compaction.completed']);

/** Makes items of events. */
export class Items {
  constructor() {
    /** @type {Item[]} */
    this.list = [];
    /** @type {Map<string, Item>} */
    this.tools = new Map();
    /** @type {Set<string>} */
    this.clients = new Set(); // ids of messages that have arrived
    this.said = ''; // what the model has said last in this turn
  }

  /**
   * What of a text that is being written is in no item. The event with all of it comes
   * before the last pieces of a fast model, and whoever opens the page later gets both.
   * @param {string} text
   */
  unsaid(text) {
    return this.said.startsWith(text.trim()) ? '' : text;
  }

  /** @param {Item} i */
  add(i) {
    this.list.push(i);
    return i;
  }

  /** @param {string} id @param {string} key @returns {Item} */
  tool(id, key) {
    let i = this.tools.get(id);
    if (!i) {
      i = this.add({ key: 't' + key, kind: 'tool', call: { id, name: '', args: undefined } });
      this.tools.set(id, i);
    }
    return i;
  }

  /** Takes an event in. @param {any} e */
  take(e) {
    const d = e.data ?? {};
    const key = String(e.cursor?.seq ?? '');
    const ts = e.ts;
    switch (e.type) {
      case 'turn.started': this.said = ''; break;
      case 'user.message.received':
        if (e.client_id) this.clients.add(e.client_id);
        this.add({ key, kind: 'user', text: d.text, attachments: d.attachments ?? [], ts });
        break;
      case 'llm.call.response':
        if (d.text) {
          this.add({ key, kind: 'assistant', text: d.text, ts });
          this.said = d.text;
        }
        break;
      case 'assistant.message.done':
        if (d.content && d.content !== this.said) this.add({ key, kind: 'assistant', text: d.content, ts });
        this.said = '';
        break;
      case 'tool.call.request': case 'tool.call.start': {
        const i = this.tool(d.id, key);
        i.call = { id: d.id, name: d.name, args: d.args };
        i.ts ??= ts;
        break;
      }
      case 'tool.call.result': this.tool(d.id, key).result = { ok: d.ok, error: d.error, envelope: d.envelope }; break;
      case 'tool.error': this.tool(d.id, key).result = { ok: false, error: d.brief, kind: d.kind, detail: d.detail }; break;
      case 'tool.progress': {
        const i = this.tools.get(d.id);
        if (i) i.progress = d;
        break;
      }
      case 'turn.failed': this.add({ key, kind: 'note', tone: 'bad', text: `The turn failed: ${d.error}`, ts }); break;
      case 'turn.cancelled': this.add({ key, kind: 'note', tone: 'busy', text: `The turn was cancelled${d.reason ? ': ' + d.reason : ''}.`, ts }); break;
      case 'approval.response': this.add({ key, kind: 'note', tone: d.response === 'reject' ? 'bad' : 'good', text: `${d.response === 'reject' ? 'Rejected' : d.response === 'approve_for_session' ? 'Approved for this session' : 'Approved'}${d.tool_name ? ' ' + d.tool_name : ''}${d.feedback ? ': ' + d.feedback : ''}`, ts }); break;
      case 'approval.cancelled': this.add({ key, kind: 'note', tone: 'busy', text: `The question was withdrawn (${d.reason}).`, ts }); break;
      case 'verify.completed': this.add({ key, kind: 'note', tone: d.exit_code === 0 ? 'good' : 'bad', text: `Check “${d.command}”: ${d.exit_code === 0 ? 'passed' : `failed (${d.exit_code})`}`, ts }); break;
      case 'session.compaction.completed': this.add({ key, kind: 'note', tone: '', text: 'What was before is summed up for the model.', ts }); break;
    }
  }
}

export class Session {
  /** @param {string} id @param {() => void} onChange */
  constructor(id, onChange) {
    this.id = id;
    this.onChange = onChange;
    /** @type {any[]} */
    this.events = []; // with a seq, oldest first
    this.items = new Items();
    this.first = 0; // there may be something older; 1: there is not
    this.cursor = /** @type {{epoch: string, seq: number} | null} */ (null);
    this.running = false;
    /** @type {{id: string, text: string}[]} */
    this.queue = [];
    this.text = ''; // that is being written
    this.stream = '';
    this.problem = '';
    this.ready = false;
    this.busy = false;
    this.frame = 0;
    this.channel = page.live?.join('agent:' + id, {
      cursor: () => (this.cursor ? { since: this.cursor.seq, epoch: this.cursor.epoch } : null),
      joined: (r) => this.joined(r),
      event: (name, payload) => this.event(name, payload),
      refused: (reason) => {
        this.problem = reason === 'unmatched topic' ? 'There is no such session.' : reason;
        this.changed();
      },
    });
  }

  /** Has the view drawn once a frame, however much comes. */
  changed() {
    if (this.frame) return;
    const f = () => {
      this.frame = 0;
      this.onChange();
    };
    this.frame = document.hidden ? window.setTimeout(f, 100) : requestAnimationFrame(f);
  }

  close() {
    this.channel?.leave();
    cancelAnimationFrame(this.frame);
    this.onChange = () => {};
  }

  /** @param {any} r */
  joined(r) {
    this.problem = '';
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
        this.events = r.events.filter((/** @type {any} */ e) => SHOWN.has(e.type)).concat(this.events);
        this.items = new Items();
        for (const e of this.events) this.items.take(e);
        this.ready = true;
      }
    } catch (e) {
      this.problem = /** @type {any} */ (e).message;
    }
    this.busy = false;
    if (this.cursor && this.cursor.epoch !== epoch) void this.older(FIRST); // begun anew meanwhile
    this.changed();
  }

  /** @param {string} name @param {any} p */
  event(name, p) {
    switch (name) {
      case 'stream_start': this.stream = p.request_id; this.text = ''; break;
      case 'stream_chunk': if (p.request_id === this.stream) this.text += p.chunk; break;
      case 'stream_end': case 'stream_error': break; // what it came to follows
      case 'resync': this.cursor = null; this.joined({ cursor: { epoch: p.current.epoch, seq: p.current.as_of_seq }, snapshot: p.current }); return;
      default: {
        if (p.cursor) {
          if (this.cursor && p.cursor.epoch === this.cursor.epoch && p.cursor.seq <= this.cursor.seq) return;
          this.cursor = p.cursor;
        }
        if (name === 'queue_changed') this.queue = p.data.queue;
        if (name === 'turn.started') this.running = true;
        if (name === 'turn.completed' || name === 'turn.failed' || name === 'turn.cancelled') this.running = false;
        if (name === 'llm.call.response' || name === 'assistant.message.done' || name.startsWith('turn.')) this.text = this.stream = '';
        if (p.cursor && SHOWN.has(name)) this.events.push(p);
        this.items.take(p);
      }
    }
    this.changed();
  }
}
