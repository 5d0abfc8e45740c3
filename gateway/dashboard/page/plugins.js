// Plugins with their permissions, health and source, and the hooks and skills of the user.
// @ts-check
import { api, seg } from './api.js';
import { Hooks, Skills } from './extras.js';
import { href, may, useLoaded } from './state.js';
import { plain, pretty } from './text.js';
import { Badge, Do, html, Name, Of, Pre, Table, Time, View } from './ui.js';

/** The points of guards, in words. */
const GUARDS = new Map([
  ['pre_tool', 'calls of tools'],
  ['prompt', 'your messages'],
]);

/** @param {Admin<'Plugin'>} p */
const guarded = (p) => (p.guards ?? []).map((g) => GUARDS.get(g) ?? plain(g)).join(' and ');

/** @param {Admin<'Plugin'>} p */
const stateOf = (p) => (p.status === 'unloaded' && !p.enabled ? 'switched_off' : p.status);

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
      <p class="empty">Plugin not found. <a href=${href('plugins')}>All plugins</a></p>
    <//>`;
  if (one) return html`<${One} p=${one} health=${of(one.name)} again=${again} />`;
  return html`<${View}
    title="Plugins"
    lead="The parts of yaya, plugins that you have installed, and the hooks and skills of agents.">
    <${Of} of=${plugins}>
      ${(/** @type {{plugins: Admin<'Plugin'>[]}} */ d) =>
        html`
          <${Stopped} all=${d.plugins} />
          <${Rows}
            label="Installed plugins"
            all=${d.plugins.filter((p) => !p.bundled)}
            of=${of}
            empty="No plugins are installed." />
        `}
    <//>
    <${Hooks} />
    <${Skills} />
    ${plugins.data &&
    html`<${Rows}
      label="Parts of yaya"
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
          <a href=${href('plugins', p.name)}><${Name} text=${p.name} max=${64} /></a> guards
          ${' ' + guarded(p)} and does not work: they are denied.
        </p>`,
    );

/** @typedef {Admin<'Diagnosis'> | undefined} Health */

/** @param {{label: string, all: Admin<'Plugin'>[], of: (name: string) => Health,
 * empty?: string}} p */
const Rows = ({ label, all, of, empty = 'None.' }) =>
  html`
    <h2>${label}</h2>
    <${Table}
      label=${label}
      head=${['Plugin', 'Category', 'Version', 'State', 'Health']}
      rows=${all}
      empty=${empty}
      row=${(/** @type {Admin<'Plugin'>} */ p) => html`<tr key=${p.name}>
        <td><a href=${href('plugins', p.name)}><${Name} text=${p.name} max=${64} /></a></td>
        <td>
          ${p.package?.parts ? 'package' : plain(p.category)}
          ${!!p.guards?.length && html`<br /><small class="muted">guards ${guarded(p)}</small>`}
        </td>
        <td>${plain(p.version)}</td>
        <td>
          <${Badge} state=${stateOf(p)} />
          ${p.error &&
          html`<br /><small class="bad"><${Name} text=${p.error} max=${160} /></small>`}
        </td>
        <td><${Standing} health=${of(p.name)} /></td>
      </tr>`} />
  `;

/** @param {{health: Health}} p */
const Standing = ({ health }) =>
  health
    ? html`
        <${Badge} state=${health.status} />
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
    actions=${of && may('config:write') && html`<${Do} kind="primary" run=${reload}>Reload<//>`}>
    <p>
      <${Badge} state=${stateOf(p)} /> ${p.error && html`<${Name} text=${p.error} max=${1000} />`}
    </p>
    <dl>
      <dt>Version</dt>
      <dd>
        ${plain(p.version)}
        ,
        ${of?.parts ? 'package: ' + plain(of.parts.format) : 'category ' + plain(p.category)}
      </dd>
      ${of?.description &&
      html`<dt>Description</dt><dd><${Name} text=${of.description} max=${500} /></dd>`}
      ${!!p.guards?.length &&
      html`<dt>Guards</dt><dd>${guarded(p)}: while it does not work, they are denied</dd>`}
      <dt>Source</dt>
      <dd>
        ${of
          ? html`
              <code><${Name} text=${of.source} max=${500} /></code>
              ${of.editable && ', editable: changes of its files run without another question'}
            `
          : p.bundled
            ? 'a part of yaya'
            : 'unknown'}
      </dd>
      ${of && html`<dt>Installed</dt><dd><${Time} at=${of.installed} /></dd>`}
      ${of?.digest &&
      html`<dt>Digest</dt><dd><code><${Name} text=${of.digest} max=${100} /></code></dd>`}
      ${!!of?.requires?.length &&
      html`<dt>Requires</dt><dd>${of.requires.map((r) => plain(r)).join(', ')}</dd>`}
      ${!!of?.gets?.length &&
      html`<dt>Gets events</dt><dd>${of.gets.map((g) => plain(g)).join(', ')}</dd>`}
    </dl>
    ${of?.problem && html`<p class="problem"><${Name} text=${of.problem} max=${1000} /></p>`}
    ${!!of?.runs?.length &&
    html`
      <h2>Runs</h2>
      <${Pre} all text=${plain(of.runs.join(' '))} label="Its program and arguments" />
    `}
    ${of?.parts && html`<${Parts} of=${of.parts} />`}
    ${of &&
    !of.parts &&
    html`
      <h2>Permissions</h2>
      <ul class="plain">
        ${of.permissions.map(
          (line) => html`<li key=${line}><${Name} text=${line} max=${4096} /></li>`,
        )}
      </ul>
    `}
    <h2>Health</h2>
    ${health
      ? html`
          <p><${Badge} state=${health.status} /> <${Name} text=${health.summary} max=${1000} /></p>
          ${!!health.details?.length &&
          html`<${Table}
            label="Checks"
            head=${['Check', 'State', 'Message']}
            rows=${health.details}
            empty="None."
            row=${(/** @type {Admin<'HealthCheck'>} */ c) => html`<tr key=${c.name}>
              <td><${Name} text=${c.name} max=${100} /></td>
              <td><${Badge} state=${c.status} /></td>
              <td><${Name} text=${c.message} max=${600} /></td>
            </tr>`} />`}
        `
      : html`<p class="muted" role="status">Loading …</p>`}
    ${Object.keys(p.current_config).length > 0 &&
    html`
      <h2>Settings</h2>
      <${Pre} text=${pretty(p.current_config)} label="Settings, secrets masked" />
    `}
  <//>`;
}

/** The parts of a package for agents.
 * @param {{of: Admin<'Parts'>}} p */
const Parts = ({ of }) =>
  [
    { what: 'Servers', lines: of.servers },
    { what: 'Skills', lines: of.skills },
    { what: 'Hooks', lines: of.hooks },
    { what: 'Left out', lines: of.left_out },
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
