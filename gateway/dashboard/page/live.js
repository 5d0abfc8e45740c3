// The wire protocol (docs/WIRE.md), vsn 2.0.0 in JSON: one WebSocket for all live updates. It
// reconnects by itself, and each topic resumes at its cursor.
// @ts-check
import { t } from './words.js';

const BEAT = 20_000; // ms between heartbeats
const DEAD = 45_000; // without any message, the connection counts as lost
const BACK = [300, 15_000]; // ms until the next attempt, growing

/** The payload of a frame depends on its topic and event (docs/WIRE.md).
 * @typedef {any} Payload */

/**
 * @typedef {object} Handlers the callbacks of a topic's owner
 * @property {() => ({since: number, epoch: string} | null)} [cursor] its position
 * @property {(response: Payload) => void} [joined] called after each join
 * @property {(name: string, payload: Payload) => void} [event]
 * @property {(reason: string) => void} [refused]
 */

/**
 * @typedef {object} Options
 * @property {string} url
 * @property {(frame: Payload, send: (x: unknown) => void) => Promise<boolean>} greet handles
 * the frames before auth_ok, and returns whether it is authenticated
 * @property {(s: State, why?: string) => void} onState
 * @property {() => Promise<boolean>} onUnauthorized
 */

/** @typedef {'connecting' | 'open' | 'waiting' | 'ended'} State */

export class Live {
  /** @param {Options} o */
  constructor(o) {
    this.o = o;
    /** @type {WebSocket | null} */
    this.ws = null;
    /** @type {Map<string, Channel>} */
    this.channels = new Map();
    /** @type {Map<string, {ok: (x: Payload) => void, fail: (e: Error) => void}>} */
    this.replies = new Map();
    this.refs = 0;
    this.tries = 0;
    this.in = false;
    this.heard = 0;
    /** @type {State} */
    this.state = 'connecting';
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    addEventListener('online', () => this.soon());
    document.addEventListener('visibilitychange', () => document.hidden || this.soon());
    setInterval(() => this.beat(), BEAT);
    this.connect();
  }

  /** @param {State} s @param {string} [why] */
  be(s, why) {
    this.state = s;
    this.o.onState(s, why);
  }

  /** Starts the next attempt at once. */
  soon() {
    if (this.state === 'waiting') {
      clearTimeout(this.timer);
      this.connect();
    }
  }

  connect() {
    this.be('connecting');
    const ws = new WebSocket(this.o.url + '?vsn=2.0.0');
    this.ws = ws;
    this.in = false;
    this.heard = Date.now();
    let chain = Promise.resolve(); // greeting is asynchronous, but frames keep their order
    ws.onmessage = (m) => {
      if (this.ws !== ws || typeof m.data !== 'string') return;
      this.heard = Date.now();
      const frame = JSON.parse(m.data);
      if (this.in) return this.receive(frame);
      chain = chain
        .then(async () => {
          if (this.in) return this.receive(frame);
          if (!(await this.o.greet(frame, (x) => ws.send(JSON.stringify(x))))) return;
          this.in = true;
          this.tries = 0;
          this.be('open');
          for (const c of this.channels.values()) c.join();
        })
        .catch((e) => this.end(e.message));
    };
    ws.onclose = (e) => this.ws === ws && this.closed(e.code);
  }

  /** @param {number} code */
  async closed(code) {
    this.ws = null;
    this.in = false;
    for (const r of this.replies.values()) r.fail(new Error(t('the connection was lost')));
    this.replies.clear();
    if (this.state === 'ended') return;
    if (code === 4401 && !(await this.o.onUnauthorized())) return this.end('');
    if (code === 4400 || code === 1003 || code === 1007 || code === 1009)
      return this.end(t('yaya does not understand this page ({code}): reload it', { code }));
    const wait = Math.min(BACK[0] * 1.7 ** this.tries++, BACK[1]);
    this.be('waiting');
    this.timer = setTimeout(() => this.connect(), wait * (0.5 + Math.random() / 2));
  }

  /** Ends the connection for good. @param {string} why */
  end(why) {
    clearTimeout(this.timer);
    this.be('ended', why);
    this.ws?.close();
    this.ws = null;
  }

  beat() {
    if (!this.in || !this.ws) return;
    if (Date.now() - this.heard > DEAD) {
      const ws = this.ws;
      ws.onclose = null;
      ws.close();
      void this.closed(1006);
      return;
    }
    this.push(null, 'phoenix', 'heartbeat', {}).catch(() => {});
  }

  /** @param {string | null} joinRef @param {string} topic @param {string} event
   * @param {unknown} payload @returns {Promise<Payload>} */
  push(joinRef, topic, event, payload) {
    return new Promise((ok, fail) => {
      if (!this.in || !this.ws) return fail(new Error(t('yaya cannot be reached')));
      const ref = String(++this.refs);
      this.replies.set(ref, { ok, fail });
      this.ws.send(JSON.stringify([joinRef, ref, topic, event, payload]));
    });
  }

  /** @param {[string | null, string | null, string, string, Payload]} frame */
  receive([joinRef, ref, topic, event, payload]) {
    if (event === 'phx_reply') {
      const r = this.replies.get(ref ?? '');
      this.replies.delete(ref ?? '');
      if (payload.status === 'ok') r?.ok(payload.response);
      else r?.fail(new Error(payload.response?.reason ?? t('refused')));
      return;
    }
    const c = this.channels.get(topic);
    if (!c || (joinRef !== null && joinRef !== c.ref)) return;
    if (event === 'phx_error')
      setTimeout(() => this.in && this.channels.get(topic) === c && c.join(), 1000);
    else if (event !== 'phx_close') c.handlers.event?.(event, payload);
  }

  /** @param {string} topic @param {Handlers} handlers */
  join(topic, handlers) {
    const c = new Channel(this, topic, handlers);
    this.channels.set(topic, c);
    if (this.in) c.join();
    return c;
  }
}

export class Channel {
  /** @param {Live} live @param {string} topic @param {Handlers} handlers */
  constructor(live, topic, handlers) {
    this.live = live;
    this.topic = topic;
    this.handlers = handlers;
    /** @type {string | null} */
    this.ref = null;
  }

  join() {
    const ref = (this.ref = String(this.live.refs + 1)); // the reference of the following push
    this.live.push(ref, this.topic, 'phx_join', this.handlers.cursor?.() ?? {}).then(
      (response) => this.ref === ref && this.handlers.joined?.(response),
      (e) => this.live.in && this.ref === ref && this.handlers.refused?.(e.message),
    );
  }

  /** @param {string} event @param {unknown} payload @returns {Promise<Payload>} */
  push(event, payload) {
    return this.live.push(this.ref, this.topic, event, payload);
  }

  leave() {
    if (this.live.channels.get(this.topic) !== this) return;
    this.live.channels.delete(this.topic);
    if (this.live.in) this.live.push(this.ref, this.topic, 'phx_leave', {}).catch(() => {});
  }
}
