// Turns a session's events into the items of the view.
// @ts-check
import { t } from './words.js';

/**
 * @typedef {object} Item an entry in the view for one or more events
 * @property {string} key
 * @property {'user' | 'assistant' | 'tool' | 'note'} kind
 * @property {string} [text]
 * @property {string} [ts]
 * @property {Attachment[]} [attachments]
 * @property {string} [tone] of a note
 * @property {string[]} [undone] files that are as before an earlier call
 * @property {boolean} [stopped] a text that was being written when its turn ended
 * @property {{id: string, name?: string, args: unknown}} [call] of a tool
 * @property {{ok?: boolean, error?: string, envelope?: Envelope, kind?: string,
 * detail?: unknown}} [result]
 * @property {string} [began] when a tool began
 * @property {string} [ended]
 * @property {{response: string, feedback: string}} [answer] of a person, to a tool
 * @property {boolean} [cut] its turn ended before it did
 * @property {boolean} [after] a tool follows another one
 * @property {boolean} [more] another tool follows
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
  'turn.note',
  'turn.notice',
  'llm.call.retry',
  'llm.call.fallback',
  'x.session.mode',
]);

/** A text that was being written when its turn ended: the page keeps it as an event. */
export const KEPT = 'kept';
SHOWN.add(KEPT);

/** An answer in words. @param {string | undefined} response */
export const answered = (response) =>
  response === 'reject'
    ? t('Rejected')
    : response === 'approve_for_session'
      ? t('Approved for this session')
      : t('Approved');

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
    /** @type {Set<Item>} */
    this.open = new Set(); // tools without a result
    /** @type {V1<'Usage'> | null} */
    this.usage = null; // of the last request to the model
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
    const last = this.list.at(-1);
    if (i.kind === 'tool' && last?.kind === 'tool') last.more = i.after = true;
    this.list.push(i);
    return i;
  }

  /** The turn has ended, and with it what still ran. */
  cut() {
    for (const i of this.open) i.cut = true;
    this.open.clear();
  }

  /** @param {string | undefined} id @param {string} key @returns {Item} */
  tool(id = '', key) {
    let i = this.tools.get(id);
    if (!i) {
      i = this.add({ key: 't' + key, kind: 'tool', call: { id, name: '', args: undefined } });
      this.tools.set(id, i);
      this.open.add(i);
    }
    return i;
  }

  /** A tool that has a result. @param {string | undefined} id @param {string} key
   * @param {string | undefined} ts */
  ended(id, key, ts) {
    const i = this.tool(id, key);
    this.open.delete(i);
    i.ended = ts;
    i.cut = false;
    return i;
  }

  /** Adds an event. @param {Told} e */
  take(e) {
    const d = e.data ?? {};
    const key = String(e.cursor?.seq ?? '');
    const ts = e.ts;
    const note = (/** @type {string | undefined} */ text) =>
      this.add({ key, kind: 'note', tone: '', text, ts });
    switch (e.type) {
      case 'turn.started':
        this.answer = '';
        break;
      case 'user.message.received':
        if (e.client_id) this.clients.add(e.client_id);
        this.add({ key, kind: 'user', text: d.text, attachments: d.attachments ?? [], ts });
        break;
      case KEPT:
        this.add({ key, kind: 'assistant', text: d.text, ts, stopped: true });
        break;
      case 'llm.call.response':
        if (d.usage) this.usage = d.usage;
        if (d.text) {
          const stopped = d.stop_reason === 'interrupted';
          this.add({ key, kind: 'assistant', text: d.text, ts, stopped });
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
        if (e.type === 'tool.call.start') i.began = ts;
        break;
      }
      case 'tool.call.result':
        this.ended(d.id, key, ts).result = { ok: d.ok, error: d.error, envelope: d.envelope };
        break;
      case 'tool.error':
        this.ended(d.id, key, ts).result = {
          ok: false,
          error: d.brief,
          kind: d.kind,
          detail: d.detail,
        };
        break;
      case 'tool.progress': {
        const i = this.tools.get(d.id ?? '');
        if (i) i.progress = d;
        break;
      }
      case 'turn.completed':
        this.cut();
        break;
      case 'turn.failed':
        this.cut();
        this.add({
          key,
          kind: 'note',
          tone: 'bad',
          text: t('The turn failed: {error}', { error: d.error ?? '' }),
          ts,
        });
        break;
      case 'turn.cancelled':
        this.cut();
        this.add({
          key,
          kind: 'note',
          tone: 'busy',
          text: d.reason
            ? t('The turn was cancelled: {reason}', { reason: d.reason })
            : t('The turn was cancelled.'),
          ts,
        });
        break;
      case 'approval.response': {
        // Only a call that is open can have been asked about.
        const [only] = this.open.size === 1 ? this.open : [];
        if (only) only.answer = { response: d.response ?? '', feedback: d.feedback ?? '' };
        else {
          const said = answered(d.response);
          this.add({
            key,
            kind: 'note',
            tone: d.response === 'reject' ? 'bad' : 'good',
            text: d.feedback ? `${said}: ${d.feedback}` : said,
            ts,
          });
        }
        break;
      }
      case 'approval.cancelled':
        this.add({
          key,
          kind: 'note',
          tone: 'busy',
          text:
            d.reason === 'timeout'
              ? t('Nobody answered in time, so the call was rejected.')
              : t('The question was withdrawn, because the turn was cancelled or yaya stopped.'),
          ts,
        });
        break;
      case 'verify.completed':
        this.add({
          key,
          kind: 'note',
          tone: d.exit_code === 0 ? 'good' : 'bad',
          text:
            d.exit_code === 0
              ? t('Check “{command}”: passed', { command: d.command ?? '' })
              : t('Check “{command}”: failed ({code})', {
                  command: d.command ?? '',
                  code: d.exit_code ?? '?',
                }),
          ts,
        });
        break;
      case 'turn.note': // the others are for the model alone
        if (d.name === 'undo')
          this.add({
            key,
            kind: 'note',
            tone: '',
            text: t('The last change of files was undone.'),
            undone: (d.text ?? '').split('\n').slice(1),
            ts,
          });
        break;
      case 'turn.notice':
        note(d.text);
        break;
      case 'llm.call.retry':
        note(
          t('The model did not answer ({error}). It was asked again after {n} s.', {
            error: d.error ?? '',
            n: Math.round((d.wait_s ?? 0) * 10) / 10,
          }),
        );
        break;
      case 'llm.call.fallback':
        note(
          t('{from} cannot answer ({error}): {to} answers instead.', {
            from: [d.failed?.provider, d.failed?.model].filter(Boolean).join('/'),
            to: [d.next?.provider, d.next?.model].filter(Boolean).join('/'),
            error: d.error ?? '',
          }),
        );
        break;
      case 'x.session.mode':
        note(
          {
            plan: t('The agent only reads until you approve its plan.'),
            edits: t('The agent changes files without a question.'),
          }[/** @type {{mode?: string}} */ (d).mode ?? ''] ??
            t('The agent may work again, as far as you allow it.'),
        );
        break;
      case 'session.compaction.completed':
        note(
          d.how === 'shortened'
            ? t('Long results of tools were shortened for the model.')
            : t('The earlier conversation was summarized for the model.'),
        );
        break;
    }
  }
}
