// The hooks and skills of the user, of packages, and of the folder that yaya runs in.
// @ts-check
import { useLoaded } from './state.js';
import { ms, plain } from './text.js';
import { count } from './words.js';
import { html, Name, Of, Table } from './ui.js';

export function Hooks() {
  const hooks = useLoaded('/api/hooks', ['config']);
  return html`
    <h2>Hooks</h2>
    <${Of} of=${hooks}>
      ${(/** @type {Admin<'Hooks'>} */ d) => html`
        ${d.problem &&
        html`<p class="problem" role="alert">
          ${d.denies
            ? 'Calls of tools are denied, since hooks cannot be read: '
            : 'A file has a mistake, and the hooks that were read before are in force: '}
          <${Name} text=${d.problem} max=${1000} />
        </p>`}
        <${Table}
          label="Hooks"
          head=${['Hook', 'Event', 'Command', 'At most', 'File']}
          rows=${d.hooks}
          empty="No hooks. A hook is a command that runs when something happens; the file hooks.toml in yaya's configuration folder has them."
          row=${(/** @type {Admin<'Hook'>} */ k) => html`<tr key=${k.file + k.name}>
            <td><${Name} text=${k.name} max=${80} /></td>
            <td>
              ${plain(k.event)}
              ${k.tool &&
              html`<br /><small class="muted"><${Name} text=${k.tool} max=${80} /></small>`}
            </td>
            <td><code><${Name} text=${k.command} max=${200} /></code></td>
            <td>${ms(k.timeout_ms)}</td>
            <td><code><${Name} text=${k.file} max=${200} /></code></td>
          </tr>`} />
        ${!!d.ignored.length &&
        html`<p class="muted">
          Hooks of Claude Code that yaya does not run: ${d.ignored.map((x) => plain(x)).join(', ')}
        </p>`}
      `}
    <//>
  `;
}

export function Skills() {
  const skills = useLoaded('/api/skills', ['config']);
  return html`
    <h2>Skills</h2>
    <${Of} of=${skills}>
      ${(/** @type {Admin<'Skills'>} */ d) => html`
        <${Table}
          label="Skills"
          head=${['Skill', 'Description', 'Use', 'Folder']}
          rows=${d.skills}
          empty="No skills."
          row=${(/** @type {Admin<'Skill'>} */ s) => html`<tr key=${s.folder}>
            <td><${Name} text=${s.name} max=${64} /></td>
            <td>
              <${Name} text=${s.description} max=${300} />
              ${s.warnings.map(
                (w) => html`<br /><small class="muted"><${Name} text=${w} max=${200} /></small>`,
              )}
            </td>
            <td>
              ${s.shadowed_by
                ? html`not used: <code><${Name} text=${s.shadowed_by} max=${120} /></code> counts`
                : s.manual
                  ? 'by people'
                  : 'by agents and people'}
            </td>
            <td><code><${Name} text=${s.folder} max=${200} /></code></td>
          </tr>`} />
        ${!!d.broken.length &&
        html`
          <p class="notice">
            ${count(d.broken.length, '{n} folder is', '{n} folders are')} not a skill, or not read
            as a whole:
          </p>
          <ul class="plain">
            ${d.broken.map(
              (b) =>
                html`<li key=${b.folder}>
                  <code><${Name} text=${b.folder} max=${200} /></code>
                  : <${Name} text=${b.reason} max=${500} />
                </li>`,
            )}
          </ul>
        `}
      `}
    <//>
  `;
}
