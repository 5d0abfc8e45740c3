// The sandbox: the programs in each profile, what is enforced on this machine and what is not,
// and the command that changes that.
// @ts-check
import { Command } from './copy.js';
import { href, useLoaded } from './state.js';
import { plain } from './text.js';
import { Badge, html, Name, Of, Table, View } from './ui.js';

/** The status: plain if all is well, and prominent if nothing is enforced.
 * @param {{s: Admin<'Sandbox'>}} p */
function Standing({ s }) {
  const bad = s.status === 'failed' || s.backend === 'off';
  return html`
    ${s.status === 'ok'
      ? html`<p><${Badge} state="ok" /> <${Name} text=${s.summary} max=${1000} /></p>`
      : html`<p class=${bad ? 'problem' : 'notice'} role="status">
          <${Name} text=${s.summary} max=${1000} />
        </p>`}
    ${s.fix &&
    html`
      <p>To change that, run on the machine that yaya runs on:</p>
      <${Command} text=${s.fix} label="The command that changes it" />
    `}
  `;
}

/** The programs in a profile, "" for outside the sandbox.
 * @param {{all: Admin<'SandboxProgram'>[], profile: string}} p */
function Programs({ all, profile }) {
  const some = all.filter((x) => x.profile === profile);
  if (!some.length) return html`<span class="muted">–</span>`;
  return some.map(
    (x, i) =>
      html`
        ${i > 0 && ', '}
        ${x.kind === 'server'
          ? html`<a href=${href('servers', x.name ?? '')}><${Name} text=${x.name} max=${40} /></a>`
          : plain(x.name)}
      `,
  );
}

/** Whether a program runs, or will run, outside the sandbox.
 * @param {Admin<'SandboxProgram'>} x */
const outside = (x) => !x.profile && !(x.note && !x.backend);

/** Names a subset of the profiles.
 * @param {string[]} some @param {Admin<'SandboxProfile'>[]} all */
const named = (some, all) =>
  some.length === all.length
    ? 'All profiles'
    : some.length <= all.length / 2
      ? some.join(', ')
      : 'All but ' +
        all
          .map((p) => p.profile)
          .filter((p) => !some.includes(p))
          .join(', ');

export default function Sandbox() {
  const state = useLoaded('/api/sandbox', ['config', 'servers']);
  return html`<${View}
    title="Sandbox"
    lead="The files, hosts and other resources that programs started by yaya can reach.">
    <${Of} of=${state}>
      ${(/** @type {Admin<'Sandbox'>} */ s) => html`
        <${Standing} s=${s} />
        ${s.programs.some(outside) &&
        html`<p class="problem">
          Outside the sandbox, with all rights of your
          user: <${Programs} all=${s.programs.filter(outside)} profile="" />
        </p>`}
        ${s.programs.some((x) => x.note) &&
        html`
          <h2>Deviations from the profiles</h2>
          <ul class="plain">
            ${s.programs
              .filter((x) => x.note)
              .map(
                (x) =>
                  html`<li key=${x.name} class="bad">
                    <a href=${href('servers', x.name ?? '')}>
                      <${Name} text=${x.name} max=${40} />
                    </a> <${Name} text=${x.note} max=${600} />
                  </li>`,
              )}
          </ul>
        `}
        <h2>Profiles</h2>
        <${Table}
          label="Profiles"
          head=${['Profile', 'Programs', 'Access', 'Not enforced here', 'Refused connections']}
          rows=${s.profiles}
          empty="No program starts in a sandbox."
          row=${(/** @type {Admin<'SandboxProfile'>} */ p) => html`<tr key=${p.profile}>
            <td><code>${p.profile}</code></td>
            <td><${Programs} all=${s.programs} profile=${p.profile} /></td>
            <td>${p.backend === 'off' ? 'all rights of your user' : p.about}</td>
            <td class=${p.lacks.length ? 'bad' : ''}>
              ${p.backend === 'off'
                ? 'everything'
                : p.lacks
                    .map((/** @type {string} */ x) =>
                      x === 'hosts' ? 'hosts: the network is off' : x,
                    )
                    .join(', ') || 'nothing'}
            </td>
            <td>${p.denials}</td>
          </tr>`} />
        ${s.backend !== 'off' &&
        s.gaps.length > 0 &&
        html`
          <h2>Not enforced here, or only in part</h2>
          <dl>
            ${s.gaps.map(
              (g) =>
                html`
                  <dt>${named(g.profiles, s.profiles)}</dt>
                  <dd><${Name} text=${g.what} max=${1000} /></dd>
                `,
            )}
          </dl>
        `}
        ${s.backend !== 'off' &&
        s.breaks.length > 0 &&
        html`
          <h2>Does not work here, although the profile allows it</h2>
          <dl>
            ${s.breaks.map(
              (g) =>
                html`
                  <dt>${named(g.profiles, s.profiles)}</dt>
                  <dd><${Name} text=${g.what} max=${1000} /></dd>
                `,
            )}
          </dl>
        `}
        <h2>This machine</h2>
        <dl>
          <dt>System</dt>
          <dd>${plain(s.system)}, yaya runs as ${s.user}</dd>
          <dt>Settings</dt>
          <dd>
            <a href=${href('config')}><code>sandbox.mode</code></a> ${s.mode}
            , <code>sandbox.backend</code> ${s.setting}
          </dd>
          <dt>Back ends</dt>
          <dd>
            <ul class="plain">
              ${s.backends.map(
                (b) =>
                  html`<li>
                    <code>${b.name}</code> ${b.name === s.backend
                      ? 'is used'
                      : b.name === 'off'
                        ? 'enforces nothing'
                        : b.works
                          ? 'works'
                          : html`does not work: <${Name} text=${b.why} max=${500} />`}
                  </li>`,
              )}
            </ul>
          </dd>
        </dl>
      `}
    <//>
  <//>`;
}
