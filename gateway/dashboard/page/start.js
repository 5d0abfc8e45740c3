// Setup: servers of other clients, a model, clients that use yaya, and the first call of one.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { Agree } from './agree.js';
import { api, seg } from './api.js';
import { Calls } from './calls.js';
import { isOwner, Local, Others } from './clients.js';
import { Invite } from './invite.js';
import { Add } from './provideradd.js';
import { called } from './provideredit.js';
import { go, href, may, useLoaded } from './state.js';
import { style } from './style.js';
import { ms, plain } from './text.js';
import { toast } from './toast.js';
import { Do, Empty, html, Icon, Name, Of, State, View } from './ui.js';
import { count, rich, t } from './words.js';

style('servers');
style('models');
style('start');

/** The steps, by their place in the address. */
const STEPS = [
  { at: '', title: t('Servers'), View: Servers },
  { at: 'model', title: t('Model'), View: Model },
  { at: 'clients', title: t('Clients'), View: Clients },
  { at: 'call', title: t('First call'), View: First },
];

/** The servers of other clients, which are imported once somebody has seen what they run. */
function Servers() {
  const imports = useLoaded('/api/mcp/import', ['servers']);
  const servers = useLoaded('/api/mcp/servers', ['servers']).data ?? [];
  const [changes, setChanges] = useState(/** @type {Admin<'Change'>[] | null} */ (null));
  return html`
    <h2>${t('The servers that you use already')}</h2>
    <p class="muted">
      ${t(
        'yaya can run them once for all your clients. The files of your clients stay as they are. Nothing starts before you have seen its command.',
      )}
    </p>
    <${Of} of=${imports}>
      ${(/** @type {Admin<'Importable'>[]} */ d) =>
        d.length
          ? d.map((i) => {
              const fresh = i.servers.filter((s) => !s.known).length;
              return html`<section class="box" key=${i.path} aria-label=${plain(i.client)}>
                <header>
                  <${Icon} of="client" />
                  <h2>${plain(i.client)}</h2>
                  <small class="faint mono"><${Name} text=${i.path} max=${80} /></small>
                  ${may('config:write') &&
                  fresh > 0 &&
                  html`<span class="end">
                    <${Do}
                      kind="small"
                      run=${async () => {
                        const c = await api('POST', '/api/mcp/import', { client: i.client });
                        if (c.length) setChanges(c);
                      }}>
                      ${count(fresh, 'Import {n} server', 'Import {n} servers')}
                    <//>
                  </span>`}
                </header>
                <ul class="rows tight">
                  ${i.servers.map(
                    (s) =>
                      html`<li key=${s.name}>
                        <span class="two">
                          <b class="strong"><${Name} text=${s.name} max=${48} /></b>
                          <small class="mono cut"><${Name} text=${s.endpoint} max=${160} /></small>
                        </span>
                        ${s.known && html`<span class="badge good">${t('yaya has it')}</span>`}
                      </li>`,
                  )}
                </ul>
              </section>`;
            })
          : html`<${Empty} icon="server">${t('No other client on this machine has servers.')}<//>`}
    <//>
    ${servers.length > 0 &&
    html`<section class="box" aria-label=${t('Servers of yaya')}>
      <header><h2>${t('Servers of yaya')}</h2></header>
      <div class="rows tight">
        ${servers.map(
          (s) =>
            html`<a key=${s.name} href=${href('servers', s.name)}>
              <span class="grow cut"><${Name} text=${s.name} max=${48} /></span>
              <${State} state=${s.state} />
            </a>`,
        )}
      </div>
    </section>`}
    <p><a href=${href('servers', '', 'new')}>${t('Add a server by hand')}</a></p>
    ${changes &&
    html`<${Agree}
      changes=${changes}
      cancel=${() => setChanges(null)}
      done=${() => {
        toast(
          count(
            changes.length,
            '{n} server is imported and starts now.',
            '{n} servers are imported and start now.',
          ),
        );
        setChanges(null);
      }} />`}
  `;
}

function Model() {
  const rows = useLoaded('/api/llm-providers', ['config', 'plugins']);
  const now = rows.data?.find((r) => r.active);
  return html`
    <h2>${t('A model for the agents of yaya')}</h2>
    <p class="muted">
      ${t(
        'Your MCP clients bring their own model. Sessions of yaya need one: a service with a key, or one on this machine.',
      )}
    </p>
    ${now &&
    html`<p>
      ${rich('{name} is in use.', { name: html`<b><${Name} text=${called(now)} max=${64} /></b>` })}
      ${' '}
      ${now.plugin === 'llm-echo' &&
      t('It works offline and repeats what you write: enough to look around.')}
    </p>`}
    ${may('config:write') &&
    html`<section class="box" aria-label=${t('Add a provider')}>
      <div class="body"><${Add} activate /></div>
    </section>`}
  `;
}

function Clients() {
  const of = useLoaded(isOwner() ? '/api/clients' : null, []);
  return html`
    <h2>${t('Clients that use yaya')}</h2>
    <p class="muted">
      ${t(
        'A client that is connected reaches all servers through yaya. Each change of its file is shown before it is made.',
      )}
    </p>
    ${isOwner() && html`<${Local} of=${of} />`}
    <${Others} start="Claude Code" />
  `;
}

/** Waits for the first call of a client that succeeds. */
function First() {
  const read = may('audit:read');
  const [call, setCall] = useState(/** @type {Admin<'Record'> | undefined} */ (undefined));
  const setup = useLoaded('/api/setup', ['config']).data;
  const [device, setDevice] = useState(false);
  useEffect(() => {
    if (!read) return undefined;
    const c = new Calls({}, 200, () =>
      setCall(c.list.findLast((x) => x.origin === 'mcp' && x.outcome === 'ok')),
    );
    return () => c.close();
  }, []);
  return html`
    <h2>${t('The first call')}</h2>
    ${call
      ? html`<p class="box body done" role="status">
          <span class="ico good"><${Icon} of="check" /></span>
          <span>
            ${rich('{client} has called {tool} through yaya in {time}: everything works.', {
              client: html`<b><${Name} text=${call.client || t('A client')} max=${48} /></b>`,
              tool: html`<a href=${href('traffic', '', String(call.id))}>
                <${Name} text=${call.name || call.tool} max=${64} />
              </a>`,
              time: ms(call.took_ms),
            })}
          </span>
        </p>`
      : read
        ? html`<p class="box body done" role="status">
            <span class="ico busy"><${Icon} of="clock" /></span>
            <span>
              ${t(
                'Waiting for a call. Restart the client that you have connected, and ask it for something that needs one of your tools.',
              )}
            </span>
          </p>`
        : html`<p class="notice">${t('Calls are shown to those who may read the audit log.')}</p>`}
    <p class="muted">
      ${t('Every call is in Traffic, with its arguments, its result and the client that made it.')}
    </p>
    <h3>${t('Elsewhere')}</h3>
    <p class="muted">
      ${setup?.remote
        ? t('Watch and steer from a phone or another machine.')
        : t(
            'Other machines cannot reach yaya now: it listens only on this machine. Start it with TLS, or behind a proxy: docs/TLS.md says how.',
          )}
    </p>
    ${may('devices:approve') &&
    html`<button type="button" onClick=${() => setDevice(true)}>
      <${Icon} of="device" />
      ${t('Add a device')}
    </button>`}
    ${device &&
    html`<${Invite} url=${setup?.remote ? setup.url : ''} done=${() => setDevice(false)} />`}
  `;
}

/** @param {{rest: string[]}} p */
export default function Start({ rest: [at = ''] }) {
  const i = Math.max(
    0,
    STEPS.findIndex((s) => s.at === at),
  );
  const step = STEPS[i];
  const to = (/** @type {number} */ k) => href('start', ...(STEPS[k].at ? [STEPS[k].at] : []));
  const finish = async () => {
    if (may('config:write'))
      await api('PATCH', `/api/config/${seg('_meta.setup_done_at')}`, {
        value: new Date().toISOString(),
      });
    go('');
  };
  return html`<${View}
    title=${t('Set yaya up')}
    actions=${i < STEPS.length - 1 &&
    html`<${Do} kind="quiet" run=${finish}>${t('Skip setup')}<//>`}>
    <div class="wizard">
      <ol class="way" aria-label=${t('Steps')}>
        ${STEPS.map(
          (s, k) =>
            html`<li key=${s.at} class=${k < i ? 'past' : ''}>
              <a href=${to(k)} aria-current=${k === i ? 'step' : undefined}>
                <span class="no" aria-hidden="true">${k + 1}</span>${s.title}
              </a>
            </li>`,
        )}
      </ol>
      <${step.View} />
      <div class="buttons ends">
        ${i > 0 && html`<a class="button quiet" href=${to(i - 1)}>${t('Back')}</a>`}
        <span class="grow"></span>
        ${i < STEPS.length - 1
          ? html`<a class="button primary" href=${to(i + 1)}>
              ${t('Next: {step}', { step: STEPS[i + 1].title })}
            </a>`
          : html`<${Do} kind="primary" run=${finish}>${t('Finish')}<//>`}
      </div>
    </div>
  <//>`;
}
