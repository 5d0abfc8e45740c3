// Server-sent events over fetch: EventSource sends no token.
// @ts-check
import { ApiError, request } from './api.js';

const BACK = [500, 15_000]; // ms until the next attempt, growing
const LONGEST = 4 << 20; // characters of one event; yaya's are shorter

/** One event. @typedef {{name: string, id: string, data: unknown}} Event */

/** Splits a stream into its events. @param {ReadableStream<Uint8Array>} body
 * @param {(e: Event) => void} on */
async function read(body, on) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    if (text.length > LONGEST) throw new Error('an event of the stream is too long');
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const b of blocks) {
      const fields = new Map(
        b.split('\n').map((l) => {
          const [name, ...rest] = l.split(': ');
          return /** @type {[string, string]} */ ([name, rest.join(': ')]);
        }),
      );
      const data = fields.get('data');
      if (data !== undefined)
        on({ name: fields.get('event') ?? '', id: fields.get('id') ?? '', data: JSON.parse(data) });
    }
  }
}

/** Follows a stream until the returned function is called. It connects again when the stream
 * ends, at the place that path returns then.
 * @param {() => string} path @param {(e: Event) => void} on
 * @param {(error: unknown) => void} failed gets the errors that another attempt does not
 * mend, and of null when the stream is there @returns {() => void} */
export function follow(path, on, failed) {
  const ended = new AbortController();
  let tries = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const again = () => {
    if (ended.signal.aborted) return;
    timer = setTimeout(() => void connect(), Math.min(BACK[0] * 2 ** tries++, BACK[1]));
  };
  const connect = async () => {
    try {
      const r = await request('GET', path(), { signal: ended.signal });
      failed(null);
      if (r.body)
        await read(r.body, (e) => {
          tries = 0;
          on(e);
        });
    } catch (e) {
      if (ended.signal.aborted) return;
      if (e instanceof ApiError && e.status >= 400 && e.status < 500) return failed(e);
    }
    again();
  };
  void connect();
  return () => {
    clearTimeout(timer);
    ended.abort();
  };
}
