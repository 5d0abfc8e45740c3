// Turns a session's events into the items of the view.
// @ts-check

/**
 * @typedef {object} Item an entry in the view for one or more events
 * @property {string} key
 * @property {'user' | 'assistant' | 'tool' | 'note'} kind
 * @property {string} [text]
 * @property {string} [ts]
 * @property {Attachment[]} [attachments]
 * @property {string} [tone] of a note
 * @property {{id: string, name?: string, args: unknown}} [call] of a tool
 * @property {{ok?: boolean, error?: string, envelope?: Envelope, kind?: string,
 * detail?: unknown}} [result]
 * @property {{progress?: number, total?: number, message?: string}} [progress]
 */

/** The kinds of events that the view shows. */
export const SHOWN = new Set([
  'user.message.received',
  'llm.call.response',
  'assistant.message.done',
  'tool.call.request',
  'tool.call.start',
  'tool.call.result',
  'tool.error',
  'turn.started',
  'turn.completed',
  'turn.failed',
  'turn.cancelled',
  'approval.response',
  'approval.cancelled',
  'verify.completed',
  'session.compaction.completed',
]);

/** The texts of answers other than a single approval. */
const ANSWERS = new Map([
  ['reject', 'Rejected'],
  ['approve_for_session', 'Approved for this session'],
]);

/** Turns events into items. */
export class Items {
  constructor() {
    /** @type {Item[]} */
    this.list = [];
    /** @type {Map<string, Item>} */
    this.tools = new Map();
    /** @type {Set<string>} */
    this.clients = new Set(); // ids of messages that have arrived
    this.answer = ''; // the model's last text in this turn
  }

  /** Returns the part of a streamed text that no item contains yet. The event with the whole text
   * arrives before the last pieces of a fast model, and a page that opens later gets both.
   * @param {string} text
   */
  unsaid(text) {
    return this.answer.startsWith(text.trim()) ? '' : text;
  }

  /** @param {Item} i */
  add(i) {
    this.list.push(i);
    return i;
  }

  /** @param {string | undefined} id @param {string} key @returns {Item} */
  tool(id = '', key) {
    let i = this.tools.get(id);
    if (!i) {
      i = this.add({ key: 't' + key, kind: 'tool', call: { id, name: '', args: undefined } });
      this.tools.set(id, i);
    }
    return i;
  }

  /** Adds an event. @param {Told} e */
  take(e) {
    const d = e.data ?? {};
    const key = String(e.cursor?.seq ?? '');
    const ts = e.ts;
    switch (e.type) {
      case 'turn.started':
        this.answer = '';
        break;
      case 'user.message.received':
        if (e.client_id) this.clients.add(e.client_id);
        this.add({ key, kind: 'user', text: d.text, attachments: d.attachments ?? [], ts });
        break;
      case 'llm.call.response':
        if (d.text) {
          this.add({ key, kind: 'assistant', text: d.text, ts });
          this.answer = d.text;
        }
        break;
      case 'assistant.message.done':
        if (d.content && d.content !== this.answer)
          this.add({ key, kind: 'assistant', text: d.content, ts });
        this.answer = '';
        break;
      case 'tool.call.request':
      case 'tool.call.start': {
        const i = this.tool(d.id, key);
        i.call = { id: d.id ?? '', name: d.name, args: d.args };
        i.ts ??= ts;
        break;
      }
      case 'tool.call.result':
        this.tool(d.id, key).result = { ok: d.ok, error: d.error, envelope: d.envelope };
        break;
      case 'tool.error':
        this.tool(d.id, key).result = { ok: false, error: d.brief, kind: d.kind, detail: d.detail };
        break;
      case 'tool.progress': {
        const i = this.tools.get(d.id ?? '');
        if (i) i.progress = d;
        break;
      }
      case 'turn.failed':
        this.add({ key, kind: 'note', tone: 'bad', text: `The turn failed: ${d.error}`, ts });
        break;
      case 'turn.cancelled':
        this.add({
          key,
          kind: 'note',
          tone: 'busy',
          text: `The turn was cancelled${d.reason ? ': ' + d.reason : ''}.`,
          ts,
        });
        break;
      case 'approval.response':
        this.add({
          key,
          kind: 'note',
          tone: d.response === 'reject' ? 'bad' : 'good',
          text:
            (ANSWERS.get(d.response ?? '') ?? 'Approved') +
            (d.tool_name ? ' ' + d.tool_name : '') +
            (d.feedback ? ': ' + d.feedback : ''),
          ts,
        });
        break;
      case 'approval.cancelled':
        this.add({
          key,
          kind: 'note',
          tone: 'busy',
          text:
            d.reason === 'timeout'
              ? 'Nobody answered in time, so the call was rejected.'
              : 'The question was withdrawn, because the turn was canceled or yaya stopped.',
          ts,
        });
        break;
      case 'verify.completed':
        this.add({
          key,
          kind: 'note',
          tone: d.exit_code === 0 ? 'good' : 'bad',
          text: `Check “${d.command}”: ${d.exit_code === 0 ? 'passed' : `failed (${d.exit_code})`}`,
          ts,
        });
        break;
      case 'session.compaction.completed':
        this.add({
          key,
          kind: 'note',
          tone: '',
          text:
            d.how === 'shortened'
              ? 'Long results of tools were shortened for the model.'
              : 'The earlier conversation was summarized for the model.',
          ts,
        });
        break;
    }
  }
}
