// The MCP clients of this machine: which of them use yaya, and the change of their files that
// has them use it, seen before it is made.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Copy } from './copy.js';
import { Dialog } from './dialog.js';
import { Tile } from './tile.js';
import { href, may, page, useLoaded } from './state.js';
import { style } from './style.js';
import { listed, plain } from './text.js';
import { toast } from './toast.js';
import { worded } from './traffic.js';
import { Do, Empty, html, Icon, Name, Of, Pre, View } from './ui.js';
import { locale, rich, t } from './words.js';

style('servers');
style('models');
style('devices');

/** @typedef {Admin<'ClientFile'>} ClientFile
 * @typedef {Admin<'ClientChange'>} Change */

/** Yaya's entry before and after, as lines that go and come. @param {Change} c */
export const diffOf = (c) =>
  [
    ...(c.was
      ? c.was
          .trimEnd()
          .split('\n')
          .map((l) => '-' + l)
      : []),
    ...(c.now
      ? c.now
          .trimEnd()
          .split('\n')
          .map((l) => '+' + l)
      : []),
  ]
    .map((l) => plain(l))
    .join('\n');

/** The change of a client's file, which is made once somebody has seen it.
 * @param {{c: Change, done: () => void, again: () => void}} p */
function Seen({ c, done, again }) {
  const name = plain(c.name);
  const write = async () => {
    const got = await api('POST', `/api/client-changes/${seg(c.id)}/apply`);
    toast(
      got.backup
        ? t('{file} is written. Its copy from before is {backup}. Restart {name} to apply it.', {
            file: plain(got.file),
            backup: plain(got.backup),
            name,
          })
        : t('{file} is written. Restart {name} to apply it.', { file: plain(got.file), name }),
    );
    again();
    done();
  };
  return html`<${Dialog}
    wide
    title=${c.now ? t('Connect {name}', { name }) : t('Disconnect {name}', { name })}
    onClose=${done}>
    <p>
      ${c.gone
        ? t('The file has nothing but the entry of yaya, and is removed.')
        : c.new
          ? t('The file is new: it has the entry of yaya alone.')
          : t('Only the entry of yaya changes. A copy of the file is kept beside it.')}
    </p>
    <p><code><${Name} text=${c.file} max=${500} /></code></p>
    <${Pre} all diff text=${diffOf(c)} label=${t('What changes in the file')} />
    <div class="buttons">
      <button type="button" onClick=${done}>${t('Cancel')}</button>
      <${Do} arm kind="primary" run=${write}>${c.gone ? t('Remove the file') : t('Write it')}<//>
    </div>
  <//>`;
}

/** @param {{f: ClientFile}} p */
const Standing = ({ f }) =>
  f.error
    ? html`<span class="state bad wrap" title=${plain(f.error)}>
        <span class="dot bad"></span>
        ${t('The file cannot be read')}
      </span>`
    : f.other
      ? html`<span class="state busy wrap">
          <span class="dot busy"></span>
          ${t('Another program has the name yaya there')}
        </span>`
      : f.yaya
        ? html`<span class="state good"><span class="dot good"></span>${t('Connected')}</span>`
        : html`<span class="state off"><span class="dot off"></span>${t('Not connected')}</span>`;

/** The clients on this machine. @param {{of: import('./state.js').Loaded<ClientFile[]>}} p */
export function Local({ of }) {
  const [change, setChange] = useState(/** @type {Change | null} */ (null));
  const propose = async (/** @type {ClientFile} */ f) =>
    setChange(
      await api('POST', `/api/clients/${seg(f.client)}/changes`, {
        file: f.file,
        remove: Boolean(f.yaya),
      }),
    );
  return html`
    <${Of} of=${of}>
      ${(/** @type {ClientFile[]} */ all) => {
        const d = all.filter((f) => f.found);
        const rest = [...new Set(all.filter((f) => !f.found).map((f) => f.name))].filter(
          (n) => !d.some((f) => f.name === n),
        );
        return html`<section class="box" aria-label=${t('On this machine')}>
          <header>
            <h2>${t('On this machine')}</h2>
            <span class="faint">
              ${t('{n} of {all} connected', { n: d.filter((f) => f.yaya).length, all: d.length })}
            </span>
            <button type="button" class="small quiet end" onClick=${of.reload}>
              <${Icon} of="restart" />
              ${t('Look again')}
            </button>
          </header>
          ${d.length
            ? html`<table class="list" role="table" aria-label=${t('Clients')}>
                <thead role="rowgroup">
                  <tr role="row">
                    <th role="columnheader">${t('Client')}</th>
                    <th role="columnheader">${t('State')}</th>
                    <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
                  </tr>
                </thead>
                <tbody role="rowgroup">
                  ${d.map(
                    (f) => html`<tr role="row" key=${f.file}>
                      <td role="cell" class="p1">
                        <span class="flex">
                          <${Tile} name=${f.name} />
                          <span class="two">
                            <b class="strong">${plain(f.name)}</b>
                            <small class="mono"><${Name} text=${f.file} max=${120} /></small>
                          </span>
                        </span>
                      </td>
                      <td role="cell" class="p2"><${Standing} f=${f} /></td>
                      <td role="cell" class="p3">
                        <span class="acts">
                          ${!f.error &&
                          !f.other &&
                          html`<${Do}
                            kind=${f.yaya ? 'small quiet' : 'small'}
                            label=${f.yaya
                              ? t('Disconnect {name}', { name: plain(f.name) })
                              : t('Connect {name}', { name: plain(f.name) })}
                            run=${() => propose(f)}>
                            ${f.yaya ? t('Disconnect …') : t('Connect …')}
                          <//>`}
                        </span>
                      </td>
                    </tr>`,
                  )}
                </tbody>
              </table>`
            : html`<${Empty} icon="client">${t('No MCP client was found on this machine.')}<//>`}
          ${rest.length > 0 &&
          html`<p class="faint under">
            ${rich('Not found here: {names}', { names: html`<bdi>${listed(rest)}</bdi>` })}
          </p>`}
        </section>`;
      }}
    <//>
    ${change && html`<${Seen} c=${change} done=${() => setChange(null)} again=${of.reload} />`}
  `;
}

/** @param {string} client */
const title = (client) => (client === 'Other clients' ? t('Other clients') : plain(client));

/** How any other client is connected: a text for each. @param {{start?: string}} p */
export function Others({ start = 'Other clients' }) {
  const setup = useLoaded('/api/setup', ['config']).data;
  const [client, setClient] = useState(start);
  const snippet = setup?.snippets.find((s) => s.client === client);
  if (!setup) return null;
  return html`<section class="box" aria-label=${t('By hand')}>
    <header><h2>${t('By hand')}</h2></header>
    <div class="body">
      <div class="tabs" role="tablist" aria-label=${t('Clients')}>
        ${setup.snippets.map(
          (s) =>
            html`<button
              type="button"
              role="tab"
              aria-selected=${s.client === client}
              onClick=${() => setClient(s.client)}>
              ${title(s.client)}
            </button>`,
        )}
      </div>
      ${snippet &&
      html`<div role="tabpanel" aria-label=${title(snippet.client)}>
        <p lang="en">${plain(snippet.where)}</p>
        <${Pre} all text=${snippet.text} label=${t('Text to copy')} />
        <${Copy} text=${snippet.text} />
      </div>`}
    </div>
  </section>`;
}

/** The clients that have called, by the names that they give themselves. */
function Called() {
  const of = useLoaded(
    may('audit:read') ? '/api/traffic/series?by=client&step=1440&slices=60' : null,
    [],
  ).data;
  const some = of?.groups.filter((g) => g.name) ?? [];
  if (!some.length) return null;
  return html`<section class="box" aria-label=${t('Called in the last 24 hours')}>
    <header><h2>${t('Called in the last 24 hours')}</h2></header>
    <div class="rows tight">
      ${some
        .slice(0, 20)
        .map(
          (g) =>
            html`<a key=${g.name} href=${href('traffic', worded({ client: g.name, span: 1440 }))}>
              <span class="cut grow"><${Name} text=${g.name} max=${64} /></span>
              <small class="faint">${g.calls.toLocaleString(locale())}</small>
              ${g.errors > 0 &&
              html`<small class="bad">
                ${t('{n} failed', { n: g.errors.toLocaleString(locale()) })}
              </small>`}
            </a>`,
        )}
    </div>
  </section>`;
}

/** Whether this user may read the files of clients: those of the one that runs yaya. */
export const isOwner = () => page.me.value?.kind === 'owner';

export default function Clients() {
  const of = useLoaded(isOwner() ? '/api/clients' : null, []);
  return html`<${View}
    title=${t('Clients')}
    actions=${html`<a class="button" href=${href('start', 'call')}>${t('Try a call')}</a>`}>
    ${isOwner()
      ? html`<${Local} of=${of} />`
      : html`<p class="notice">
          ${t(
            'The files of clients are shown on the machine that yaya runs on, to the user that runs it.',
          )}
        </p>`}
    <${Called} />
    <${Others} />
    <p class="faint">
      ${rich('On a terminal, {command} does the same.', {
        command: html`<code>yaya client</code>`,
      })}
    </p>
  <//>`;
}
