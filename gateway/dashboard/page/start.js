// The first start: import servers, choose a model, connect a client, add a device.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Copy } from './copy.js';
import { Invite } from './invite.js';
import { Edit, kinds } from './providers.js';
import { Agree } from './agree.js';
import { go, href, may, useLoaded } from './state.js';
import { plain } from './text.js';
import { Badge, Do, html, Name, Of, Pre, View } from './ui.js';
import { rich, t } from './words.js';

export default function Start() {
  const setup = useLoaded('/api/setup', ['config']);
  const imports = useLoaded('/api/mcp/import', ['servers']);
  const servers = useLoaded('/api/mcp/servers', ['servers']);
  const providers = useLoaded('/api/llm-providers', ['config']);
  const plugins = useLoaded('/api/plugins', ['plugins']);
  const [changes, setChanges] = useState(/** @type {Admin<'Change'>[] | null} */ (null));
  const [adding, setAdding] = useState('');
  const [client, setClient] = useState('Claude Code');
  const [note, setNote] = useState('');
  const schemas = kinds(plugins.data, providers.data);
  const active = providers.data?.find((p) => p.active);
  const snippet = setup.data?.snippets.find((s) => s.client === client);
  const write = may('config:write');
  return html`<${View}
    title=${t('Set yaya up')}
    lead=${t('Four steps, none of which you have to take now.')}>
    <ol class="steps">
      <li>
        <h2>${t('Import your MCP servers')}</h2>
        <${Of} of=${imports}>
          ${(/** @type {Admin<'Importable'>[]} */ d) =>
            d.length
              ? html`<ul class="plain">
                  ${d.map((i) => {
                    const fresh = i.servers.filter((s) => !s.known);
                    return html`<li>
                      <b>${plain(i.client)}</b> <small class="muted">
                        <code><${Name} text=${i.path} max=${80} /></code>
                      </small>
                      <br />
                      ${i.servers.map(
                        (s) =>
                          html`
                            <span class="chip">
                              <${Name} text=${s.name} max=${32} />
                              ${s.known ? ' ✓' : ''}
                            </span> `,
                      )}
                      ${write &&
                      fresh.length > 0 &&
                      html`<${Do}
                        kind="small"
                        run=${async () => {
                          const c = await api('POST', '/api/mcp/import', { client: i.client });
                          if (c.length) setChanges(c);
                        }}>
                        ${t('Import {n}', { n: fresh.length })}
                      <//>`}
                    </li>`;
                  })}
                </ul>`
              : html`<p class="muted">${t('No other client on this machine has servers.')}</p>`}
        <//>
        <p>
          ${servers.data?.length
            ? html`
                ${servers.data.map(
                  (s) =>
                    html`
                      <span class="chip">
                        <a href=${href('servers', s.name)}>
                          <${Name} text=${s.name} max=${32} />
                        </a> <${Badge} state=${s.state} />
                      </span> `,
                )}
              `
            : ''} <a href=${href('servers')}>${t('Add one by hand')}</a>
        </p>
      </li>
      <li>
        <h2>${t('Choose a model')}</h2>
        <p>
          ${active
            ? html`
                ${rich('{model} is active.', {
                  model: html`<b><${Name} text=${active.label || active.id} /></b>`,
                })}
                ${active.plugin === 'llm-echo' &&
                ' ' + t('It works offline and repeats its input: enough to look around.')}
              `
            : ''}
        </p>
        ${write &&
        html`<div class="buttons">
          <button type="button" onClick=${() => setAdding('provider')}>
            ${t('Use another model')}
          </button>
          ${active?.plugin !== 'llm-echo' &&
          html`<${Do} run=${() => api('PATCH', '/api/llm-providers/active', { name: 'llm-echo' })}>
            ${t('Stay offline')}
          <//>`}
        </div>`}
      </li>
      <li>
        <h2>${t('Connect a client')}</h2>
        <p>${t('The client reaches all servers through yaya.')}</p>
        <div class="tabs" role="tablist" aria-label=${t('Clients')}>
          ${setup.data?.snippets.map(
            (s) =>
              html`<button
                type="button"
                role="tab"
                aria-selected=${s.client === client}
                onClick=${() => setClient(s.client)}>
                ${plain(s.client)}
              </button>`,
          )}
        </div>
        ${snippet &&
        html`<div role="tabpanel" aria-label=${snippet.client}>
          <p>${plain(snippet.where)} <${Copy} text=${snippet.text} /></p>
          <${Pre} all text=${snippet.text} label=${t('Text to copy')} />
        </div>`}
      </li>
      <li>
        <h2>${t('Add a device')}</h2>
        <p>
          ${setup.data?.remote
            ? t('Watch and steer from a phone or another machine.')
            : rich(
                'Other machines cannot reach yaya now: it listens only on this machine. Start it with {cert} and {key}, or behind a proxy ({proxy}).',
                {
                  cert: html`<code>--tls-cert</code>`,
                  key: html`<code>--tls-key</code>`,
                  proxy: html`<code>--behind-proxy --host NAME</code>`,
                },
              )}
        </p>
        ${may('devices:approve') &&
        html`<button type="button" onClick=${() => setAdding('device')}>
          ${t('Add a device')}
        </button>`}
      </li>
    </ol>
    ${note && html`<p role="status">${note}</p>`}
    ${write &&
    html`<div class="buttons">
      <${Do}
        kind="primary"
        run=${async () => {
          await api('PATCH', `/api/config/${seg('_meta.setup_done_at')}`, {
            value: new Date().toISOString(),
          });
          go('');
        }}>
        ${t('Done')}
      <//>
    </div>`}
    ${changes &&
    html`<${Agree}
      changes=${changes}
      cancel=${() => setChanges(null)}
      done=${() => {
        setNote(t('{n} imported: they are starting now.', { n: changes.length }));
        setChanges(null);
      }} />`}
    ${adding === 'provider' &&
    html`<${Edit}
      plugins=${[...schemas.keys()]}
      schemas=${schemas}
      activate
      done=${() => setAdding('')} />`}
    ${adding === 'device' &&
    html`<${Invite} url=${setup.data?.remote ? setup.data.url : ''} done=${() => setAdding('')} />`}
  <//>`;
}
