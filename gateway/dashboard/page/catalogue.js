// The catalogue: servers of registries, and of the list that comes with yaya.
// @ts-check
import { useState } from './vendor/hooks.js';
import { Agree } from './agree.js';
import { api, seg } from './api.js';
import { Install } from './install.js';
import { Tile } from './tile.js';
import { go, href, may, useLoaded } from './state.js';
import { style } from './style.js';
import { plain } from './text.js';
import { toast } from './toast.js';
import { Do, Empty, html, Icon, Name, Of, Problem, typed, View } from './ui.js';
import { t } from './words.js';

style('servers');
style('catalogue');

/** @typedef {Admin<'CatalogEntry'>} Found */

/** The kinds of a server, in the words that its badges and the filter have. */
const KINDS = [
  { title: t('All'), icon: '', has: () => true },
  { title: t('Remote'), icon: 'globe', has: (/** @type {string} */ k) => k === 'remote' },
  {
    title: t('This machine'),
    icon: 'terminal',
    has: (/** @type {string} */ k) => k !== 'remote' && k !== 'oci',
  },
  { title: t('Container'), icon: 'lock', has: (/** @type {string} */ k) => k === 'oci' },
];

/** @param {{rest: string[]}} p */
export default function Catalogue({ rest: [words = ''] }) {
  const [text, setText] = useState(words);
  const [kind, setKind] = useState(0);
  const [chosen, setChosen] = useState(/** @type {Found | null} */ (null));
  const of = useLoaded(`/api/catalogue?q=${encodeURIComponent(words)}`, ['servers']);
  return html`<${View}
    title=${t('Catalogue')}
    lead=${t(
      'Anybody can publish a server. Nothing runs before you have seen exactly what would run, and approved it.',
    )}>
    <${Updates} />
    <form
      class="filters"
      role="search"
      onSubmit=${(/** @type {Event} */ e) => {
        e.preventDefault();
        go('catalogue', text.trim());
      }}>
      <input
        type="search"
        class="grow"
        maxlength="200"
        aria-label=${t('Search the catalogue')}
        placeholder=${t('Search the catalogue')}
        value=${text}
        onInput=${typed(setText)} />
      <button type="submit"><${Icon} of="search" />${t('Search')}</button>
      <span class="seg" role="group" aria-label=${t('Show')}>
        ${KINDS.map(
          (k, i) =>
            html`<button
              key=${i}
              type="button"
              aria-pressed=${i === kind}
              onClick=${() => setKind(i)}>
              ${k.title}
            </button>`,
        )}
      </span>
    </form>
    <${Of} of=${of}>
      ${(/** @type {Admin<'CatalogPage'>} */ page) =>
        html`<${Pages} key=${words} first=${page} kind=${kind} choose=${setChosen} />`}
    <//>
    ${chosen && html`<${Install} entry=${chosen} close=${() => setChosen(null)} />`}
  <//>`;
}

/** The servers of one page, and of those that were asked for after it.
 * @param {{first: Admin<'CatalogPage'>, kind: number, choose: (s: Found) => void}} p */
function Pages({ first, kind, choose }) {
  const [more, setMore] = useState(/** @type {Admin<'CatalogPage'>[]} */ ([]));
  const pages = [first, ...more];
  const seen = new Set(); // a registry may list a server on several pages
  const all = pages
    .flatMap((p) => p.servers)
    .filter((s) => {
      const key = `${s.registry} ${s.name} ${s.version}`;
      return !seen.has(key) && seen.add(key) && s.kinds.some(KINDS[kind].has);
    });
  const next = pages.at(-1)?.next;
  const failed = new Map(); // registry → its last error
  for (const r of pages.flatMap((p) => p.registries)) if (r.error) failed.set(r.name, r.error);
  return html`
    ${[...failed].map(
      ([name, error]) =>
        html`<${Problem}
          key=${name}
          error=${t(
            'The registry {name} gave no usable answer, so its servers are missing or old: {error}',
            { name, error: plain(error) },
          )} />`,
    )}
    ${all.length
      ? html`<ul class="plain cards catalogue">
          ${all.map(
            (s) =>
              html`<${Card}
                key=${`${s.registry} ${s.name} ${s.version}`}
                s=${s}
                choose=${choose} />`,
          )}
        </ul>`
      : html`<${Empty} icon="catalogue">${t('No server fits.')}<//>`}
    ${next &&
    html`<div class="buttons">
      <${Do} run=${async () => {
        const p = await api('GET', `/api/catalogue?cursor=${encodeURIComponent(next)}`);
        setMore([...more, p]);
      }}>
        ${t('Show more')}
      <//>
    </div>`}
  `;
}

/** @param {{s: Found, choose: (s: Found) => void}} p */
const Card = ({ s, choose }) =>
  html`<li class="card">
    <span class="flex">
      <${Tile} name=${s.title || s.name} />
      <span class="two grow">
        <b class="strong"><${Name} text=${s.title || s.name} max=${64} /></b>
        <small class="faint"><${Name} text=${s.name} max=${80} /></small>
      </span>
      ${s.installed
        ? html`<a class="badge good" href=${href('servers', s.installed)}>
            <${Icon} of="check" />
            ${t('Added')}
          </a>`
        : may('config:write') &&
          html`<button
            type="button"
            class="small"
            aria-label=${t('Add {name}', { name: plain(s.title || s.name) })}
            onClick=${() => choose(s)}>
            <${Icon} of="plus" />
            ${t('Add')}
          </button>`}
    </span>
    <p><${Name} text=${s.description} max=${300} /></p>
    <p class="faint flex">
      ${s.kinds.map((k) => {
        const of = KINDS.findLast((x) => x.has(k));
        return html`<span class="badge" key=${k} title=${of?.title}>
          <${Icon} of=${of?.icon ?? ''} />
          <bdi>${plain(k)}</bdi>
        </span>`;
      })}
      <bdi class="cut">${s.version} · ${s.registry}</bdi>
      ${s.deprecated && html`<span class="badge bad">${t('deprecated')}</span>`}
    </p>
  </li>`;

/** Newer versions of the servers that were added from the catalogue. */
function Updates() {
  const of = useLoaded('/api/mcp/updates', ['servers']);
  const [change, setChange] = useState(/** @type {Admin<'Change'> | null} */ (null));
  const rows = (of.data ?? []).filter((/** @type {Admin<'CatalogUpdate'>} */ u) => u.newest);
  if (!rows.length && !change) return null;
  return html`<section class="box" aria-label=${t('Updates')}>
    <header><h2>${t('Updates')}</h2></header>
    <ul class="plain body">
      ${rows.map(
        (/** @type {Admin<'CatalogUpdate'>} */ u) =>
          html`<li key=${u.server} class="flex">
            <span class="grow">
              <b><${Name} text=${u.server} max=${64} /></b> ${' '}
              ${`${plain(u.version)} → ${plain(u.newest)}`}
            </span>
            ${may('config:write') &&
            html`<${Do}
              kind="small"
              label=${t('Update {name}', { name: plain(u.server) })}
              run=${async () =>
                setChange(await api('POST', `/api/mcp/servers/${seg(u.server)}/update`))}>
              ${t('Update')}
            <//>`}
          </li>`,
      )}
    </ul>
    ${change &&
    html`<${Agree}
      changes=${[change]}
      cancel=${() => setChange(null)}
      done=${() => {
        setChange(null);
        of.reload();
        toast(t('The change is in force.'));
      }} />`}
  </section>`;
}
