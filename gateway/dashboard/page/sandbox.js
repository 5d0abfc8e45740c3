// The sandbox: the programs in each profile, what is enforced on this machine and what is not,
// and the command that changes that.
// @ts-check
import { Command } from './copy.js';
import { Said } from './said.js';
import { href, useLoaded } from './state.js';
import { plain } from './text.js';
import { style } from './style.js';
import { html, Name, Of, State, Table, View } from './ui.js';
import { rich, t } from './words.js';

style('models');

/** The status: plain if all is well, and prominent if nothing is enforced.
 * @param {{s: Admin<'Sandbox'>}} p */
function Standing({ s }) {
  const bad = s.status === 'failed' || s.backend === 'off';
  return html`
    ${s.status === 'ok'
      ? html`<p class="flex"><${State} state="ok" /> <${Name} text=${s.summary} max=${1000} /></p>`
      : html`<p class=${bad ? 'problem' : 'notice'} role="status">
          <${Name} text=${s.summary} max=${1000} />
        </p>`}
    ${s.fix &&
    html`
      <p>${t('To change that, run on the machine that yaya runs on:')}</p>
      <${Command} text=${s.fix} label=${t('The command that changes it')} />
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
          : html`<${Said} of="sandbox" text=${x.name} />`}
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
    ? t('All profiles')
    : some.length <= all.length / 2
      ? some.join(', ')
      : t('All but {names}', {
          names: all
            .map((p) => p.profile)
            .filter((p) => !some.includes(p))
            .join(', '),
        });

export default function Sandbox() {
  const state = useLoaded('/api/sandbox', ['config', 'servers']);
  return html`<${View}
    title=${t('Sandbox')}
    lead=${t('The files, hosts and other resources that programs started by yaya can reach.')}>
    <${Of} of=${state}>
      ${(/** @type {Admin<'Sandbox'>} */ s) => html`
        <${Standing} s=${s} />
        ${s.programs.some(outside) &&
        html`<p class="problem">
          ${rich('Outside the sandbox, with all rights of your user: {programs}', {
            programs: html`<${Programs} all=${s.programs.filter(outside)} profile="" />`,
          })}
        </p>`}
        ${s.programs.some((x) => x.note) &&
        html`
          <h2>${t('Deviations from the profiles')}</h2>
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
        <h2>${t('Profiles')}</h2>
        <${Table}
          label=${t('Profiles')}
          head=${[
            t('Profile'),
            t('Programs'),
            t('Access'),
            t('Not enforced here'),
            t('Refused connections'),
          ]}
          rows=${s.profiles}
          empty=${t('No program starts in a sandbox.')}
          row=${(/** @type {Admin<'SandboxProfile'>} */ p) => html`<tr key=${p.profile}>
            <td><code>${p.profile}</code></td>
            <td><${Programs} all=${s.programs} profile=${p.profile} /></td>
            <td>
              ${p.backend === 'off'
                ? t('all rights of your user')
                : html`<${Said} of="sandbox" text=${p.about} />`}
            </td>
            <td class=${p.lacks.length ? 'bad' : ''}>
              ${p.backend === 'off'
                ? t('everything')
                : p.lacks.length
                  ? p.lacks.map(
                      (/** @type {string} */ x, /** @type {number} */ i) =>
                        html`
                          ${i > 0 && ', '}
                          ${x === 'hosts'
                            ? t('hosts: the network is off')
                            : html`<${Said} of="sandbox" text=${x} />`}
                        `,
                    )
                  : t('nothing')}
            </td>
            <td>${p.denials}</td>
          </tr>`} />
        ${s.backend !== 'off' &&
        s.gaps.length > 0 &&
        html`
          <h2>${t('Not enforced here, or only in part')}</h2>
          <dl>
            ${s.gaps.map(
              (g) =>
                html`
                  <dt><bdi>${named(g.profiles, s.profiles)}</bdi></dt>
                  <dd><${Name} text=${g.what} max=${1000} /></dd>
                `,
            )}
          </dl>
        `}
        ${s.backend !== 'off' &&
        s.breaks.length > 0 &&
        html`
          <h2>${t('Does not work here, although the profile allows it')}</h2>
          <dl>
            ${s.breaks.map(
              (g) =>
                html`
                  <dt><bdi>${named(g.profiles, s.profiles)}</bdi></dt>
                  <dd><${Name} text=${g.what} max=${1000} /></dd>
                `,
            )}
          </dl>
        `}
        <h2>${t('This machine')}</h2>
        <dl>
          <dt>${t('System')}</dt>
          <dd>
            ${rich('{system}, yaya runs as {user}', {
              system: html`<bdi>${plain(s.system)}</bdi>`,
              user: html`<bdi>${plain(s.user)}</bdi>`,
            })}
          </dd>
          <dt>${t('Settings')}</dt>
          <dd>
            <a href=${href('config')}><code>sandbox.mode</code></a> <code>${s.mode}</code>
            , <code>sandbox.backend</code> <code>${s.setting}</code>
          </dd>
          <dt>${t('Back ends')}</dt>
          <dd>
            <ul class="plain">
              ${s.backends.map(
                (b) =>
                  html`<li>
                    <code>${b.name}</code> ${b.name === s.backend
                      ? t('is used')
                      : b.name === 'off'
                        ? t('enforces nothing')
                        : b.works
                          ? t('works')
                          : rich('does not work: {why}', {
                              why: html`<${Name} text=${b.why} max=${500} />`,
                            })}
                  </li>`,
              )}
            </ul>
          </dd>
        </dl>
      `}
    <//>
  <//>`;
}
