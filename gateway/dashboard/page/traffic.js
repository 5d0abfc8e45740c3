// Traffic: the calls as they end, newest first, with filters that stay in the address.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { request } from './api.js';
import { Detail } from './call.js';
import { Calls, query } from './calls.js';
import { List } from './calllist.js';
import { Legend, Plot } from './plot.js';
import { said } from './said.js';
import { go, useLoaded } from './state.js';
import { style } from './style.js';
import { exact } from './text.js';
import { toast } from './toast.js';
import { Do, Empty, Field, html, Icon, Problem, Skeleton, typed, View } from './ui.js';
import { count, t } from './words.js';

style('traffic');

const LONGEST = 10_800; // seconds of a slice: longer times are shown by day
const PAGES = 10; // of 1000 calls each, of an export

/** @typedef {import('./calls.js').Filter} Filter */

/** @type {[string, number][]} */
const SPANS = [
  [t('15 min'), 15],
  [t('1 h'), 60],
  [t('24 h'), 1440],
  [t('All'), 0],
];

/** The filter that a text stands for: server:x tool:y client:z since:T until:T failed.
 * @param {string} text @returns {Filter & {span: number}} */
export function parsed(text) {
  /** @type {Filter & {span: number}} */
  const f = { span: 0 };
  for (const [, k, quoted, bare] of text.matchAll(/(\w+):(?:"([^"]*)"|(\S+))/g)) {
    const v = quoted ?? bare;
    if (k === 'server' || k === 'tool' || k === 'client' || k === 'principal') f[k] = v;
    if ((k === 'since' || k === 'until') && !Number.isNaN(Date.parse(v))) f[k] = v;
    if (k === 'last') f.span = Math.min(Number.parseInt(v, 10) || 0, 525_600);
  }
  if (/(^|\s)failed(\s|$)/.test(text)) f.errors = true;
  return f;
}

/** @param {Filter & {span: number}} f */
export function worded(f) {
  const q = (/** @type {string} */ v) => (/\s/.test(v) ? `"${v.replaceAll('"', '')}"` : v);
  const out = /** @type {const} */ (['server', 'tool', 'client', 'principal', 'since', 'until'])
    .filter((k) => f[k])
    .map((k) => `${k}:${q(f[k] ?? '')}`);
  if (f.errors) out.push('failed');
  if (f.span) out.push(`last:${f.span}`);
  return out.join(' ');
}

/** Saves the calls that match, whole, as lines of JSON. @param {Filter} f */
async function save(f) {
  /** @type {string[]} */
  const lines = [];
  let before = 0;
  for (let i = 0; i < PAGES; i++) {
    const r = await request(
      'GET',
      `/api/traffic?${query({ ...f, before, full: true, limit: 1000 })}`,
    );
    /** @type {Admin<'CallPage'>} */
    const p = await r.json();
    lines.unshift(...p.calls.map((c) => JSON.stringify(c)));
    before = p.calls[0]?.id ?? 0;
    if (!p.more || !before) break;
  }
  const url = URL.createObjectURL(new Blob([lines.join('\n') + '\n']));
  Object.assign(document.createElement('a'), { href: url, download: 'calls.jsonl' }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  toast(count(lines.length, '{n} call is exported.', '{n} calls are exported.'), 'download');
}

/** The calls by time. @param {{f: Filter & {span: number}, last: number}} p */
function Histogram({ f, last }) {
  const span = f.span || 60;
  const step = Math.max(1, Math.ceil(span / 60)) * 60;
  const q = query({
    server: f.server,
    tool: f.tool,
    client: f.client,
    ...(step > LONGEST ? { days: Math.ceil(span / 1440) } : { step, slices: Math.min(60, span) }),
  });
  const of = useLoaded(`/api/traffic/series?${q}`, []);
  useEffect(() => {
    const timer = setTimeout(of.reload, 2000);
    return () => clearTimeout(timer);
  }, [last]);
  if (!of.data) return null;
  const { slices, total } = of.data;
  const good = { name: t('answered'), tone: 's1', values: slices.map((s) => s.calls - s.errors) };
  const bad = { name: t('failed'), tone: 'se', values: slices.map((s) => s.errors) };
  return html`<div class="low brush">
    <p class="flex">
      <span class="faint">
        ${f.span ? t('Calls in this time') : t('Calls in the last hour')}
        ${of.data.partial ? ` (${t('not all')})` : ''}
      </span>
      <${Legend} lines=${[
        [good, String(total.calls - total.errors)],
        [bad, String(total.errors)],
      ]} />
    </p>
    <${Plot}
      stacked
      label=${t('Calls by time')}
      times=${slices.map((s) => Date.parse(s.ts))}
      lines=${[good, bad]}
      show=${String} />
  </div>`;
}

/** @param {{f: Filter & {span: number}, set: (f: Filter & {span: number}) => void}} p */
function Filters({ f, set }) {
  const [fields, setFields] = useState(f);
  useEffect(() => setFields(f), [worded(f)]);
  const input = (/** @type {'server' | 'tool' | 'client'} */ k, /** @type {string} */ label) =>
    html`<${Field} label=${label}>
      ${(/** @type {string} */ id) =>
        html`<input
          id=${id}
          type=${k === 'server' ? 'search' : 'text'}
          value=${fields[k] ?? ''}
          spellcheck="false"
          maxlength="256"
          onInput=${typed((v) => setFields({ ...fields, [k]: v }))} />`}
    <//>`;
  return html`<form
    class="filters"
    aria-label=${t('Filters')}
    onSubmit=${(/** @type {Event} */ e) => {
      e.preventDefault();
      set(fields);
    }}>
    ${input('server', t('Server'))} ${input('tool', t('Tool'))} ${input('client', t('Client'))}
    <button type="submit"><${Icon} of="filter" />${t('Filter')}</button>
    <div class="seg" role="group" aria-label=${t('Outcome')}>
      ${[false, true].map(
        (errors) =>
          html`<button
            type="button"
            aria-pressed=${Boolean(f.errors) === errors}
            onClick=${() => set({ ...fields, errors })}>
            ${errors ? t('Failed') : t('All calls')}
          </button>`,
      )}
    </div>
    <div class="seg" role="group" aria-label=${t('Time')}>
      ${SPANS.map(
        ([word, span]) =>
          html`<button
            type="button"
            aria-pressed=${f.span === span && !f.since}
            onClick=${() => set({ ...fields, span, since: undefined, until: undefined })}>
            ${word}
          </button>`,
      )}
    </div>
  </form>`;
}

/** @param {{rest: string[]}} p */
export default function Traffic({ rest: [text = '', open = ''] }) {
  const [, draw] = useState(0);
  const calls = useRef(/** @type {Calls | null} */ (null));
  const f = parsed(text);
  useEffect(() => {
    const { span, ...filter } = f;
    const since = span ? new Date(Date.now() - span * 60_000).toISOString() : filter.since;
    const c = new Calls({ ...filter, since }, 500, () => draw((n) => n + 1));
    calls.current = c;
    draw((n) => n + 1);
    return () => c.close();
  }, [text]);
  const c = calls.current;
  const close = () => go('traffic', ...(text ? [text] : []));
  return html`<${View}
    title=${t('Traffic')}
    actions=${html`<${Do} run=${() => save(c?.filter ?? {})}>
      <${Icon} of="download" />
      ${t('Export')}
    <//>`}>
    <${Filters}
      f=${f}
      set=${(/** @type {Filter & {span: number}} */ x) => go('traffic', worded(x))} />
    <${Problem} error=${c?.error} />
    ${c &&
    c.bodies !== 'all' &&
    html`<p class="faint">
      ${c.bodies === 'errors'
        ? t(
            'Arguments and results are recorded of failed calls only: see traffic.bodies in Settings.',
          )
        : c.why
          ? t('Arguments and results are not recorded ({why}): see traffic.bodies in Settings.', {
              why: said('traffic', c.why),
            })
          : t('Arguments and results are not recorded: see traffic.bodies in Settings.')}
    </p>`}
    ${c &&
    c.lost > 0 &&
    html`<p class="notice">
      ${count(
        c.lost,
        '{n} call is missing from the record.',
        '{n} calls are missing from the record.',
      )}
    </p>`}
    ${f.since && f.until
      ? html`<p class="faint">
          ${t('Calls from {from} to {to}', { from: exact(f.since), to: exact(f.until) })}
        </p>`
      : html`<${Histogram} f=${f} last=${c?.list.at(-1)?.id ?? 0} />`}
    <div class=${open ? 'split open' : 'split'}>
      ${!c || (!c.ready && !c.error)
        ? html`<${Skeleton} rows=${8} />`
        : c.list.length
          ? html`<${List}
              key=${text}
              calls=${c}
              open=${open}
              choose=${(/** @type {number} */ id) => go('traffic', text, String(id))} />`
          : html`<${Empty} icon="traffic">
              ${text
                ? t('No calls match.')
                : t(
                    'No calls are recorded yet. Calls of clients, agents and this page appear here.',
                  )}
            <//>`}
      ${open && html`<${Detail} key=${open} id=${open} close=${close} />`}
    </div>
  <//>`;
}
