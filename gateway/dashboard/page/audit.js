// The audit: who changed what, as sentences, with filters that stay in the address.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { request } from './api.js';
import { sentence } from './auditwords.js';
import { go, may, useLoaded } from './state.js';
import { style } from './style.js';
import { plain } from './text.js';
import { toast } from './toast.js';
import { Do, Empty, Field, html, Icon, Name, Of, Pre, Time, typed, View } from './ui.js';
import { count, locale, t } from './words.js';

style('audit');

/** @typedef {Admin<'Audit'>} Entry
 * @typedef {{event: string, actor: string, target: string, span: number}} Filter */

const PAGE = 100;
const EXPORT = 10_000;

/** @type {readonly {title: string, span: number}[]} */
const SPANS = [
  { title: t('1 h'), span: 60 },
  { title: t('24 h'), span: 1440 },
  { title: t('7 d'), span: 10_080 },
  { title: t('All'), span: 0 },
];

/** @param {string} text @returns {Filter} */
function parsed(text) {
  const f = new URLSearchParams(text);
  return {
    event: f.get('event') ?? '',
    actor: f.get('actor') ?? '',
    target: f.get('target') ?? '',
    span: Math.min(Number.parseInt(f.get('last') ?? '', 10) || 0, 525_600),
  };
}

/** The same without what is not chosen. The page takes = out of addresses, so each value follows
 * its name in a part of its own. @param {Filter} f @returns {string[]} */
const parts = (f) =>
  /** @type {const} */ ([
    ['event', f.event],
    ['actor', f.actor],
    ['target', f.target],
    ['last', f.span],
  ]).flatMap(([k, v]) => (v ? [k, String(v)] : []));

/** @param {string[]} rest */
function filterOf(rest) {
  const q = new URLSearchParams();
  for (let i = 0; i + 1 < rest.length; i += 2) q.set(rest[i], rest[i + 1]);
  return parsed(q.toString());
}

/** @param {Filter} f @param {Record<string, string | number>} more */
function query(f, more) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries({
    event: f.event,
    actor: f.actor,
    target: f.target,
    ...more,
  }))
    if (v) q.set(k, String(v));
  // To the minute, so that a view that is drawn again asks for the same.
  if (f.span)
    q.set('since', new Date(Math.floor(Date.now() / 60_000 - f.span) * 60_000).toISOString());
  return `/api/audit?${q.toString()}`;
}

/** Saves the entries that match, as lines of JSON. @param {Filter} f */
async function save(f) {
  /** @type {Entry[]} */
  const all = await (await request('GET', query(f, { limit: EXPORT }))).json();
  const lines = all.map((e) => JSON.stringify(e)).join('\n') + '\n';
  const url = URL.createObjectURL(new Blob([lines]));
  Object.assign(document.createElement('a'), { href: url, download: 'audit.jsonl' }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  toast(count(all.length, '{n} entry is exported.', '{n} entries are exported.'), 'download');
}

/** @param {{e: Entry}} p */
function Row({ e }) {
  const said = sentence(e.event, {
    actor: html`<b class="strong"><${Name} text=${e.actor} max=${48} /></b>`,
    target: html`<code><${Name} text=${e.target || '–'} max=${80} /></code>`,
  });
  const details = e.payload && Object.keys(e.payload).length > 0;
  return html`<li class="entry">
    <span class="what">
      ${said ??
      html`
        <b class="strong"><${Name} text=${e.actor} max=${48} /></b>
        ${' '}
        <code><${Name} text=${e.target} max=${80} /></code>
      `}
      ${' '}
      <small class="mono faint"><${Name} text=${e.event} max=${48} /></small>
      ${details &&
      html`<details>
        <summary>${t('Details')}</summary>
        <${Pre} text=${plain(JSON.stringify(e.payload, null, 2), true)} label=${t('Details')} />
      </details>`}
    </span>
    <span class="faint no" title=${t('Number of the entry')}>
      ${e.raft_log_index.toLocaleString(locale())}
    </span>
    <${Time} at=${e.ts} />
  </li>`;
}

/** One page of entries, newest first; the next begins before its last one. One that has a next
 * keeps its end when entries are added. @param {{f: Filter, before: number, after: number, last: boolean, more: (before: number) => void}} p */
function Page({ f, before, after, last, more }) {
  const of = useLoaded(
    /** @type {'/api/audit'} */ (query(f, { limit: after ? EXPORT : PAGE, before, after })),
    before ? [] : ['audit'],
  );
  return html`<${Of} of=${of}>
    ${(/** @type {Entry[]} */ d) => html`
      ${d.length === 0 &&
      !before &&
      html`<li><${Empty} icon="audit">${t('No entries match.')}<//></li>`}
      ${[...d].reverse().map((e) => html`<${Row} key=${e.raft_log_index} e=${e} />`)}
      ${last &&
      d.length === PAGE &&
      html`<li class="entry">
        <button type="button" class="small" onClick=${() => more(d[0].raft_log_index)}>
          ${t('Earlier entries')}
        </button>
      </li>`}
    `}
  <//>`;
}

/** @param {{f: Filter, set: (f: Filter) => void}} p */
function Filters({ f, set }) {
  const [fields, setFields] = useState(f);
  useEffect(() => setFields(f), [parts(f).join(' ')]);
  const input = (
    /** @type {'event' | 'actor' | 'target'} */ k,
    /** @type {string} */ label,
    /** @type {string} */ hint,
  ) =>
    html`<${Field} label=${label}>
      ${(/** @type {string} */ id) =>
        html`<input
          id=${id}
          type=${k === 'actor' ? 'search' : 'text'}
          value=${fields[k]}
          placeholder=${hint}
          spellcheck="false"
          maxlength="128"
          onInput=${typed((v) => setFields({ ...fields, [k]: v }))} />`}
    <//>`;
  return html`<form
    class="filters"
    aria-label=${t('Filters')}
    onSubmit=${(/** @type {Event} */ e) => {
      e.preventDefault();
      set(fields);
    }}>
    ${input('actor', t('Who'), '')} ${input('event', t('What'), 'device_*')}
    ${input('target', t('To what'), '')}
    <button type="submit"><${Icon} of="filter" />${t('Filter')}</button>
    <div class="seg" role="group" aria-label=${t('Time')}>
      ${SPANS.map(
        (s) =>
          html`<button
            type="button"
            aria-pressed=${f.span === s.span}
            onClick=${() => set({ ...fields, span: s.span })}>
            ${s.title}
          </button>`,
      )}
    </div>
  </form>`;
}

/** @param {{rest: string[]}} p */
export default function Audit({ rest }) {
  const f = filterOf(rest);
  const at = parts(f).join(' ');
  const [pages, setPages] = useState({ at, befores: [0] });
  const befores = pages.at === at ? pages.befores : [0];
  return html`<${View}
    title=${t('Audit')}
    actions=${may('audit:read') &&
    html`<${Do} run=${() => save(f)}><${Icon} of="download" />${t('Export')}<//>`}>
    <${Filters} f=${f} set=${(/** @type {Filter} */ x) => go('audit', ...parts(x))} />
    <section class="box" aria-label=${t('Audit')}>
      <header>
        <h2>${t('Changes, newest first')}</h2>
        <span class="faint">
          ${t('The entries form a hash chain: nobody can remove or alter one unnoticed.')}
        </span>
      </header>
      <ul class="rows entries">
        ${befores.map(
          (b, i) =>
            html`<${Page}
              key=${at + b}
              f=${f}
              before=${b}
              after=${i + 1 < befores.length ? befores[i + 1] - 1 : 0}
              last=${i === befores.length - 1}
              more=${(/** @type {number} */ n) => setPages({ at, befores: [...befores, n] })} />`,
        )}
      </ul>
    </section>
  <//>`;
}
