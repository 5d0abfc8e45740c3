// The models: which one is in use, the providers, and the services that can be added.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Confirm } from './dialog.js';
import { Add } from './provideradd.js';
import { called, Edit, shown } from './provideredit.js';
import { Result } from './providertest.js';
import { Tile } from './tile.js';
import { href, may, useLoaded } from './state.js';
import { style } from './style.js';
import { plain } from './text.js';
import { Do, html, Icon, Name, Of, typed, View } from './ui.js';
import { count, rich, t } from './words.js';

style('servers');
style('models');

/** @typedef {Admin<'Provider'>} Provider
 * @typedef {Map<string, Admin<'Tested'>>} Tests by the id of the provider */

/** The model that answers. @param {{rows: Provider[], write: boolean}} p */
function InUse({ rows, write }) {
  const sessions = useLoaded('/v1/sessions?limit=100', ['sessions']).data?.sessions ?? [];
  const running = sessions.filter((s) => s.state !== 'idle').length;
  const now = rows.find((r) => r.active);
  const [wanted, setWanted] = useState('');
  return html`<section class="box" aria-label=${t('Model in use')}>
    <header>
      <h2>${t('Model in use')}</h2>
      <span class="faint">${t('Every session uses it from its next step on.')}</span>
      <a class="end" href=${href('chat')}>
        ${running
          ? count(running, '{n} session works now', '{n} sessions work now')
          : t('Sessions')}
      </a>
    </header>
    <div class="body flex use">
      <select aria-label=${t('Model in use')} disabled=${!write} onChange=${typed(setWanted)}>
        ${!now && html`<option value="" selected>${t('None')}</option>`}
        ${rows.map(
          (r) =>
            html`<option value=${r.id} selected=${(wanted || now?.id) === r.id}>
              ${plain(called(r)).slice(0, 64)}
              ${r.config.model !== undefined && ` · ${plain(shown(r.config.model)).slice(0, 64)}`}
            </option>`,
        )}
      </select>
      ${write &&
      html`<${Do}
        kind="primary"
        disabled=${!wanted || wanted === now?.id}
        run=${() => api('PATCH', '/api/llm-providers/active', { name: wanted })}>
        ${t('Use this model')}
      <//>`}
    </div>
    ${now?.plugin === 'llm-echo' &&
    html`<p class="faint under">
      ${t(
        'The model that is built in repeats what you write. It needs no network, and is good for a look around.',
      )}
    </p>`}
  </section>`;
}

/** @param {{r: Provider, write: boolean, tested: Admin<'Tested'> | undefined,
 * test: (r: Provider) => Promise<void>, edit: (r: Provider) => void}} p */
const Row = ({ r, write, tested, test, edit }) =>
  html`<tr role="row">
    <td role="cell" class="p1">
      <span class="flex">
        <${Tile} name=${called(r)} />
        <span class="two">
          <span>
            <b class="strong"><${Name} text=${called(r)} max=${64} /></b>
            ${r.active && html` <span class="badge good">${t('in use')}</span>`}
          </span>
          <small class="mono"><${Name} text=${r.id} max=${64} /></small>
        </span>
      </span>
    </td>
    <td role="cell" class="p4">
      <code><${Name} text=${shown(r.config.model) || '–'} max=${48} /></code>
    </td>
    <td role="cell" class="wide">
      ${r.plugin === 'llm-echo' ? t('none needed') : r.config.api_key ? t('sealed') : t('none')}
    </td>
    <td role="cell" class="p3">
      ${tested
        ? html`<${Result} of=${tested} />`
        : html`<span class="faint">${t('not tested')}</span>`}
    </td>
    <td role="cell" class="p2">
      ${write &&
      html`<span class="acts">
        <${Do}
          kind="small"
          label=${t('Test {name}', { name: plain(called(r)) })}
          run=${() => test(r)}>
          ${t('Test')}
        <//>
        <button
          type="button"
          class="small"
          aria-label=${t('Change {name}', { name: plain(called(r)) })}
          onClick=${() => edit(r)}>
          ${t('Change')}
        </button>
        ${!r.active &&
        html`<${Confirm}
          kind="small quiet sq danger"
          label=${t('Delete {name}', { name: plain(called(r)) })}
          yes=${t('Delete the provider')}
          ask=${rich('{name} and its settings are deleted, its key with them.', {
            name: html`<b><${Name} text=${called(r)} /></b>`,
          })}
          run=${() => api('DELETE', `/api/llm-providers/${seg(r.id)}`)}>
          <${Icon} of="trash" />
        <//>`}
      </span>`}
    </td>
  </tr>`;

/** @param {{rest: string[]}} p */
export default function Models({ rest: [part = ''] }) {
  const rows = useLoaded('/api/llm-providers', ['config', 'plugins']);
  const [edit, setEdit] = useState(/** @type {Provider | null} */ (null));
  const [tests, setTests] = useState(/** @type {Tests} */ (new Map()));
  const write = may('config:write');
  const test = async (/** @type {Provider} */ r) => {
    const got = await api(
      'POST',
      `/api/llm-providers/${seg(r.id)}/test?measure=true&timeout_ms=30000`,
    );
    setTests((all) => new Map(all).set(r.id, got));
  };
  return html`<${View}
    title=${t('Models')}
    actions=${write &&
    html`
      <${Do} kind="nophone" run=${() => Promise.all((rows.data ?? []).map(test))}>
        <${Icon} of="play" />
        ${t('Test all')}
      <//>
      <a class="button primary" href=${href('providers', 'add')}>
        <${Icon} of="plus" />
        ${t('Add a provider')}
      </a>
    `}>
    <${Of} of=${rows}>
      ${(/** @type {Provider[]} */ d) => html`
        <${InUse} rows=${d} write=${write} />
        ${write &&
        part === 'add' &&
        html`<section class="box" aria-label=${t('Add a provider')}>
          <header>
            <h2>${t('Add a provider')}</h2>
            <a class="button quiet small end" href=${href('providers')}>${t('Done')}</a>
          </header>
          <div class="body"><${Add} /></div>
        </section>`}
        <section class="box" aria-label=${t('Providers')}>
          <header><h2>${t('Providers')}</h2></header>
          <table class="list" role="table" aria-label=${t('Providers')}>
            <thead role="rowgroup">
              <tr role="row">
                <th role="columnheader">${t('Provider')}</th>
                <th role="columnheader">${t('Model')}</th>
                <th role="columnheader" class="wide">${t('Key')}</th>
                <th role="columnheader">${t('Last test')}</th>
                <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
              </tr>
            </thead>
            <tbody role="rowgroup">
              ${d.map(
                (r) =>
                  html`<${Row}
                    key=${r.id}
                    r=${r}
                    write=${write}
                    tested=${tests.get(r.id)}
                    test=${test}
                    edit=${setEdit} />`,
              )}
            </tbody>
          </table>
        </section>
      `}
    <//>
    ${edit && html`<${Edit} row=${edit} done=${() => setEdit(null)} />`}
  <//>`;
}
