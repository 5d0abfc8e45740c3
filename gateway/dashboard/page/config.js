// Settings: those of this browser, and those of yaya by subject, each with its source.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Confirm } from './dialog.js';
import { Said, said } from './said.js';
import { Edit, Switch } from './settingedit.js';
import { may, useLoaded } from './state.js';
import { style } from './style.js';
import { plain } from './text.js';
import { ThisBrowser } from './thisbrowser.js';
import { Empty, html, Icon, Name, Of, typed, View } from './ui.js';
import { rich, t } from './words.js';

style('settings');

/** @typedef {Admin<'Setting'>} Setting */

/** The subjects, with the beginnings of their keys. Everything else comes last. */
const SUBJECTS = [
  { title: t('Access'), of: ['approval', 'auth', 'workspace'] },
  { title: t('Servers and tools'), of: ['servers', 'http', 'wire'] },
  { title: t('Sandbox'), of: ['sandbox'] },
  {
    title: t('Models and agents'),
    of: ['provider', 'strategy', 'loop', 'compaction', 'session', 'agent_tool'],
  },
  { title: t('What is kept'), of: ['traffic', 'retention'] },
  { title: t('Log and telemetry'), of: ['log', 'otel'] },
  { title: t('Plugins and hooks'), of: ['plugins', 'hooks'] },
  { title: t('Plugins and providers, by key'), of: [] },
];

/** @param {Setting} s */
const subjectOf = (s) => {
  const first = s.key.split('.')[0];
  const i =
    s.type || s.key.startsWith('approval.') ? SUBJECTS.findIndex((x) => x.of.includes(first)) : -1;
  return i < 0 ? SUBJECTS.length - 1 : i;
};

/** Where a value comes from, in words. */
const ORIGINS = new Map([
  ['flag', t('by a flag')],
  ['environment', t('from the environment')],
  ['set', t('set here')],
  ['file', t('from the file')],
  ['default', t('default')],
]);

/** @param {unknown} v */
const worded = (v) =>
  v === undefined
    ? '–'
    : typeof v === 'string'
      ? v
      : Array.isArray(v) && v.every((x) => typeof x === 'string')
        ? v.join(', ') || '–'
        : JSON.stringify(v);

/** @param {{s: Setting, write: boolean, change: (s: Setting) => void}} p */
const Row = ({ s, write, change }) =>
  html`<li class="setting">
    <span class="two">
      <code class="strong"><${Name} text=${s.key} max=${100} /></code>
      ${s.doc && html`<small><${Said} of="setting" text=${s.doc} /></small>`}
    </span>
    <span class="value">
      ${s.type === 'boolean'
        ? html`<${Switch} s=${s} write=${write} />`
        : html`<code>
            <${Name}
              text=${s.value === undefined && s.unset ? said('setting', s.unset) : worded(s.value)}
              max=${80} />
          </code>`}
      ${s.origin &&
      s.origin !== 'default' &&
      html`<span class="badge">${ORIGINS.get(s.origin) ?? plain(s.origin)}</span>`}
      ${s.waits && html`<span class="badge busy">${t('from the next start on')}</span>`}
    </span>
    ${write &&
    html`<span class="acts">
      ${s.origin === 'set' &&
      html`<${Confirm}
        kind="small quiet"
        label=${t('Unset {key}', { key: plain(s.key) })}
        yes=${t('Unset')}
        ask=${rich('{key} returns to the value that it has without this change.', {
          key: html`<code><${Name} text=${s.key} /></code>`,
        })}
        run=${() => api('DELETE', `/api/config/${seg(s.key)}`)}>
        ${t('Unset')}
      <//>`}
      ${s.type !== 'boolean' &&
      html`<button
        type="button"
        class="small"
        aria-label=${t('Change {name}', { name: plain(s.key) })}
        onClick=${() => change(s)}>
        ${t('Change')}
      </button>`}
    </span>`}
  </li>`;

/** The settings; an address may name one of them. @param {{rest: string[]}} p */
export default function Config({ rest: [named = ''] }) {
  const rows = useLoaded('/api/settings', ['config']);
  const [edit, setEdit] = useState(/** @type {Partial<Setting> | null} */ (null));
  const [filter, setFilter] = useState(named);
  useEffect(() => setFilter(named), [named]);
  const [changed, setChanged] = useState(false);
  const write = may('config:write');
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return html`<${View}
    title=${t('Settings')}
    actions=${write &&
    html`<button type="button" onClick=${() => setEdit({})}>
      <${Icon} of="plus" />
      ${t('Set a value')}
    </button>`}>
    ${!words.length && !changed && html`<${ThisBrowser} />`}
    <div class="filters top">
      <input
        type="search"
        class="narrow"
        aria-label=${t('Filter settings')}
        placeholder=${t('Filter settings')}
        value=${filter}
        onInput=${typed(setFilter)} />
      <div class="seg" role="group" aria-label=${t('Show')}>
        ${[false, true].map(
          (c) =>
            html`<button type="button" aria-pressed=${c === changed} onClick=${() => setChanged(c)}>
              ${c ? t('Changed') : t('All')}
            </button>`,
        )}
      </div>
    </div>
    <${Of} of=${rows}>
      ${(/** @type {Setting[]} */ d) => {
        const some = d.filter(
          (r) =>
            words.every((w) =>
              `${r.key} ${r.doc ?? ''} ${said('setting', r.doc ?? '')}`.toLowerCase().includes(w),
            ) &&
            (!changed || (r.origin && r.origin !== 'default')),
        );
        if (!some.length) return html`<${Empty}>${t('No settings match.')}<//>`;
        return SUBJECTS.map((subject, i) => {
          const mine = some.filter((s) => subjectOf(s) === i);
          return (
            mine.length > 0 &&
            html`<section class="box" key=${i} aria-label=${subject.title}>
              <header><h2>${subject.title}</h2></header>
              <ul class="rows">
                ${mine.map(
                  (s) => html`<${Row} key=${s.key} s=${s} write=${write} change=${setEdit} />`,
                )}
              </ul>
            </section>`
          );
        });
      }}
    <//>
    ${edit && html`<${Edit} row=${edit} done=${() => setEdit(null)} />`}
  <//>`;
}
