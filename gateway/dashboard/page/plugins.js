// Plugins with their permissions, health and source, and the hooks and skills of the user.
// @ts-check
import { api, seg } from './api.js';
import { Hooks, Skills } from './extras.js';
import { href, may, useLoaded } from './state.js';
import { listed, oneLine, plain, pretty } from './text.js';
import { style } from './style.js';
import { Do, Empty, html, Icon, Name, Of, Pre, State, Table, Time, View } from './ui.js';
import { rich, t } from './words.js';

style('servers');
style('models');
style('devices');
style('plugins');

/** The points of guards, in words. */
const GUARDS = new Map([
  ['pre_tool', t('calls of tools')],
  ['prompt', t('your messages')],
]);

/** The kinds of plugins, in words. */
const KINDS = new Map([
  ['strategy', t('strategy')],
  ['llm-provider', t('models')],
  ['memory', t('memory')],
  ['tool', t('tools')],
  ['skill', t('skills')],
  ['adapter', t('adapter')],
]);

/** @param {Admin<'Plugin'>} p */
const kindOf = (p) => KINDS.get(p.category) ?? plain(p.category);

/** @param {Admin<'Plugin'>} p */
const guarded = (p) => listed((p.guards ?? []).map((g) => GUARDS.get(g) ?? g));

/** @param {Admin<'Plugin'>} p */
const stateOf = (p) => (p.status === 'unloaded' && !p.enabled ? 'disabled' : p.status);

/** @param {{rest: string[]}} p */
export default function Plugins({ rest: [name] }) {
  const plugins = useLoaded('/api/plugins', ['plugins', 'config']);
  const health = useLoaded('/api/doctor', ['plugins']);
  const one = name ? plugins.data?.plugins.find((p) => p.name === name) : null;
  const of = (/** @type {string} */ n) => health.data?.find((d) => d.plugin === n);
  const again = () => {
    plugins.reload();
    health.reload();
  };
  if (name && plugins.data && !one)
    return html`<${View} title=${name}>
      <${Empty} icon="plugin">
        ${t('Plugin not found.')} <a href=${href('plugins')}>${t('All plugins')}</a>
      <//>
    <//>`;
  if (one) return html`<${One} p=${one} health=${of(one.name)} again=${again} />`;
  return html`<${View} title=${t('Plugins')}>
    <${Of} of=${plugins}>
      ${(/** @type {{plugins: Admin<'Plugin'>[]}} */ d) =>
        html`
          <${Stopped} all=${d.plugins} />
          <${Rows}
            label=${t('Installed plugins')}
            all=${d.plugins.filter((p) => !p.bundled)}
            of=${of}
            empty=${t('No plugins are installed. On a terminal, yaya plugin install adds one.')} />
        `}
    <//>
    <${Hooks} />
    <${Skills} />
    ${plugins.data &&
    html`<${Rows}
      label=${t('Parts of yaya')}
      all=${plugins.data.plugins.filter((p) => p.bundled)}
      of=${of} />`}
  <//>`;
}

/** The guards that do not work: everything that they guard is denied.
 * @param {{all: Admin<'Plugin'>[]}} p */
const Stopped = ({ all }) =>
  all
    .filter((p) => p.guards?.length && p.status !== 'loaded' && p.enabled)
    .map(
      (p) =>
        html`<p key=${p.name} class="problem" role="alert">
          ${rich('{name} guards {what} and does not work: they are denied.', {
            name: html`<a href=${href('plugins', p.name)}><${Name} text=${p.name} max=${64} /></a>`,
            what: guarded(p),
          })}
        </p>`,
    );

/** @typedef {Admin<'Diagnosis'> | undefined} Health */

/** @param {{label: string, all: Admin<'Plugin'>[], of: (name: string) => Health,
 * empty?: string}} p */
const Rows = ({ label, all, of, empty = '' }) =>
  html`<section class="box" aria-label=${label}>
    <header><h2>${label}</h2><span class="faint">${all.length}</span></header>
    ${all.length
      ? html`<table class="list" role="table" aria-label=${label}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${t('Plugin')}</th>
              <th role="columnheader">${t('State')}</th>
              <th role="columnheader" class="wide">${t('Kind')}</th>
              <th role="columnheader">${t('Health')}</th>
              <th role="columnheader"><span class="sr">${t('Actions')}</span></th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${all.map((p) => html`<${Row} key=${p.name} p=${p} health=${of(p.name)} />`)}
          </tbody>
        </table>`
      : html`<${Empty} icon="plugin">${empty}<//>`}
  </section>`;

/** @param {{p: Admin<'Plugin'>, health: Health}} props */
const Row = ({ p, health }) =>
  html`<tr role="row">
    <td role="cell" class="p1">
      <span class="two">
        <a class="strong" href=${href('plugins', p.name)}><${Name} text=${p.name} max=${64} /></a>
        <small>
          ${plain(p.version)}
          ${!!p.guards?.length && html`, ${t('guards {what}', { what: guarded(p) })}`}
        </small>
      </span>
    </td>
    <td role="cell" class="p2">
      <${State} state=${stateOf(p)} />
      ${p.enabled !== (p.status === 'loaded') &&
      p.status !== 'failed' &&
      html`<br /><small class="faint">${t('from the next start on')}</small>`}
    </td>
    <td role="cell" class="wide">${p.package?.parts ? t('package') : kindOf(p)}</td>
    <td role="cell" class="p4">
      ${p.error
        ? html`<small class="bad"><${Name} text=${p.error} max=${160} /></small>`
        : html`<${Standing} health=${health} />`}
    </td>
    <td role="cell" class="p3">
      ${may('config:write') &&
      p.name !== 'web' &&
      html`<span class="acts"><${Switch} p=${p} /></span>`}
    </td>
  </tr>`;

/** @param {{p: Admin<'Plugin'>}} props */
const Switch = ({ p }) =>
  html`<${Do}
    kind="small quiet"
    label=${p.enabled
      ? t('Turn off {name}', { name: plain(p.name) })
      : t('Turn on {name}', { name: plain(p.name) })}
    run=${() => api('PATCH', `/api/plugins/${seg(p.name)}`, { enabled: !p.enabled })}>
    ${p.enabled ? t('Turn off') : t('Turn on')}
  <//>`;

/** @param {{health: Health}} p */
const Standing = ({ health }) =>
  health
    ? html`
        <${State} state=${health.status} />
        ${health.status !== 'ok' &&
        html`<br /><small class="muted"><${Name} text=${health.summary} max=${120} /></small>`}
      `
    : html`<span class="muted">–</span>`;

/** @param {{p: Admin<'Plugin'>, health: Health, again: () => void}} props */
function One({ p, health, again }) {
  const of = p.package;
  const reload = async () => {
    try {
      await api('POST', `/api/plugins/${seg(p.name)}/reload`, {});
    } finally {
      again(); // a plugin that does not start has changed as well
    }
  };
  return html`<${View}
    title=${p.name}
    actions=${of &&
    may('config:write') &&
    html`<${Do} kind="primary" run=${reload}><${Icon} of="restart" />${t('Reload')}<//>`}
    crumb=${html`<a href=${href('plugins')}>${t('Plugins')}</a>`}>
    <p>
      <${State} state=${stateOf(p)} /> ${p.error && html`<${Name} text=${p.error} max=${1000} />`}
    </p>
    <dl>
      <dt>${t('Version')}</dt>
      <dd>
        ${of?.parts
          ? t('{version}, a package: {format}', {
              version: plain(p.version),
              format: plain(of.parts.format),
            })
          : t('{version}, of the kind {kind}', {
              version: plain(p.version),
              kind: kindOf(p),
            })}
      </dd>
      ${of?.description &&
      html`
        <dt>${t('Description')}</dt>
        <dd><${Name} text=${oneLine(of.description)} max=${500} /></dd>
      `}
      ${!!p.guards?.length &&
      html`
        <dt>${t('Guards')}</dt>
        <dd>${t('{what}: while it does not work, they are denied', { what: guarded(p) })}</dd>
      `}
      <dt>${t('Source')}</dt>
      <dd>
        ${of
          ? html`
              <code><${Name} text=${of.source} max=${500} /></code>
              ${of.editable &&
              html`<br />${t('Editable: changes of its files run without another question.')}`}
            `
          : p.bundled
            ? t('a part of yaya')
            : t('unknown')}
      </dd>
      ${of && html`<dt>${t('Installed')}</dt><dd><${Time} at=${of.installed} /></dd>`}
      ${of?.digest &&
      html`<dt>${t('Digest')}</dt><dd><code><${Name} text=${of.digest} max=${100} /></code></dd>`}
      ${!!of?.requires?.length &&
      html`<dt>${t('Requires')}</dt><dd>${of.requires.map((r) => plain(r)).join(', ')}</dd>`}
      ${!!of?.gets?.length &&
      html`<dt>${t('Gets events')}</dt><dd>${of.gets.map((g) => plain(g)).join(', ')}</dd>`}
    </dl>
    ${of?.problem && html`<p class="problem"><${Name} text=${of.problem} max=${1000} /></p>`}
    ${!!of?.runs?.length &&
    html`
      <h2>${t('Runs')}</h2>
      <${Pre} all text=${plain(of.runs.join(' '))} label=${t('Its program and arguments')} />
    `}
    ${of?.parts && html`<${Parts} of=${of.parts} />`}
    ${of &&
    !of.parts &&
    html`
      <h2>${t('Permissions')}</h2>
      <ul class="plain">
        ${of.permissions.map(
          (line) => html`<li key=${line}><${Name} text=${line} max=${4096} /></li>`,
        )}
      </ul>
    `}
    <h2>${t('Health')}</h2>
    ${health
      ? html`
          <p><${State} state=${health.status} /> <${Name} text=${health.summary} max=${1000} /></p>
          ${!!health.details?.length &&
          html`<${Table}
            label=${t('Checks')}
            head=${[t('Check'), t('State'), t('Message')]}
            rows=${health.details}
            empty=""
            row=${(/** @type {Admin<'HealthCheck'>} */ c) => html`<tr key=${c.name}>
              <td><${Name} text=${c.name} max=${100} /></td>
              <td><${State} state=${c.status} /></td>
              <td><${Name} text=${c.message} max=${600} /></td>
            </tr>`} />`}
        `
      : html`<p class="muted" role="status">${t('Loading …')}</p>`}
    ${Object.keys(p.current_config).length > 0 &&
    html`
      <h2>${t('Settings')}</h2>
      <${Pre} text=${pretty(p.current_config)} label=${t('Settings, secrets masked')} />
    `}
  <//>`;
}

/** The parts of a package for agents.
 * @param {{of: Admin<'Parts'>}} p */
const Parts = ({ of }) =>
  [
    { what: t('Servers'), lines: of.servers },
    { what: t('Skills'), lines: of.skills },
    { what: t('Hooks'), lines: of.hooks },
    { what: t('Left out'), lines: of.left_out },
  ]
    .filter((part) => part.lines?.length)
    .map(
      (part) => html`
        <h2 key=${part.what}>${part.what}</h2>
        <ul class="plain">
          ${part.lines?.map(
            (line) => html`<li key=${line}><${Name} text=${line} max=${8192} /></li>`,
          )}
        </ul>
      `,
    );
