// The hooks and skills of the user, of packages, and of the folder that yaya runs in.
// @ts-check
import { useLoaded } from './state.js';
import { listed, ms, oneLine, plain } from './text.js';
import { Empty, html, Name, Of } from './ui.js';
import { count, rich, t } from './words.js';

export function Hooks() {
  const hooks = useLoaded('/api/hooks', ['config']);
  return html`<section class="box" aria-label=${t('Hooks')}>
    <header>
      <h2>${t('Hooks')}</h2>
      <span class="faint">${t('Commands that run when something happens.')}</span>
    </header>
    <${Of} of=${hooks}>
      ${(/** @type {Admin<'Hooks'>} */ d) => html`
        ${d.problem &&
        html`<p class="problem within" role="alert">
          ${d.denies
            ? t('Calls of tools are denied, since hooks cannot be read:')
            : t('A file has a mistake, and the hooks that were read before are in force:')}
          ${' '}
          <${Name} text=${d.problem} max=${1000} />
        </p>`}
        ${d.hooks.length
          ? html`<table class="list" role="table" aria-label=${t('Hooks')}>
              <thead role="rowgroup">
                <tr role="row">
                  <th role="columnheader">${t('Hook')}</th>
                  <th role="columnheader">${t('Event')}</th>
                  <th role="columnheader">${t('Command')}</th>
                  <th role="columnheader" class="num">${t('At most')}</th>
                </tr>
              </thead>
              <tbody role="rowgroup">
                ${d.hooks.map(
                  (k) => html`<tr role="row" key=${k.file + k.name}>
                    <td role="cell" class="p1">
                      <span class="two">
                        <b class="strong"><${Name} text=${k.name} max=${80} /></b>
                        <small class="mono"><${Name} text=${k.file} max=${200} /></small>
                      </span>
                    </td>
                    <td role="cell" class="p2">
                      ${plain(k.event)}
                      ${k.tool &&
                      html`<br /><small class="faint"><${Name} text=${k.tool} max=${80} /></small>`}
                    </td>
                    <td role="cell" class="p3">
                      <code><${Name} text=${k.command} max=${200} /></code>
                    </td>
                    <td role="cell" class="num">${ms(k.timeout_ms)}</td>
                  </tr>`,
                )}
              </tbody>
            </table>`
          : html`<${Empty}>
              ${t('No hooks. The file hooks.toml in yaya’s configuration folder has them.')}
            <//>`}
        ${!!d.ignored.length &&
        html`<p class="faint under">
          ${t('Hooks of Claude Code that yaya does not run: {names}', { names: listed(d.ignored) })}
        </p>`}
      `}
    <//>
  </section>`;
}

/** The users of a skill. @param {Admin<'Skill'>} s */
const use = (s) =>
  s.shadowed_by
    ? rich('not used: {other} counts', {
        other: html`<code><${Name} text=${s.shadowed_by} max=${120} /></code>`,
      })
    : s.manual
      ? t('by people')
      : t('by agents and people');

export function Skills() {
  const skills = useLoaded('/api/skills', ['config']);
  return html`<section class="box" aria-label=${t('Skills')}>
    <header>
      <h2>${t('Skills')}</h2>
      <span class="faint">${t('Instructions that agents read when they need them.')}</span>
    </header>
    <${Of} of=${skills}>
      ${(/** @type {Admin<'Skills'>} */ d) => html`
        ${d.skills.length
          ? html`<table class="list" role="table" aria-label=${t('Skills')}>
              <thead role="rowgroup">
                <tr role="row">
                  <th role="columnheader">${t('Skill')}</th>
                  <th role="columnheader">${t('Description')}</th>
                  <th role="columnheader">${t('Use')}</th>
                </tr>
              </thead>
              <tbody role="rowgroup">
                ${d.skills.map(
                  (s) => html`<tr role="row" key=${s.folder}>
                    <td role="cell" class="p1">
                      <span class="two">
                        <b class="strong"><${Name} text=${s.name} max=${64} /></b>
                        <small class="mono"><${Name} text=${s.folder} max=${200} /></small>
                      </span>
                    </td>
                    <td role="cell" class="p3">
                      <${Name} text=${oneLine(s.description)} max=${300} />
                      ${s.warnings.map(
                        (w) =>
                          html`<br /><small class="warn"><${Name} text=${w} max=${200} /></small>`,
                      )}
                    </td>
                    <td role="cell" class="p2">${use(s)}</td>
                  </tr>`,
                )}
              </tbody>
            </table>`
          : html`<${Empty}>${t('No skills.')}<//>`}
        ${!!d.broken.length &&
        html`<div class="under">
          <p class="notice">
            ${count(
              d.broken.length,
              '{n} folder is not a skill, or not read as a whole:',
              '{n} folders are not skills, or not read as a whole:',
            )}
          </p>
          <ul class="plain">
            ${d.broken.map(
              (b) =>
                html`<li key=${b.folder}>
                  <code><${Name} text=${b.folder} max=${200} /></code>
                  ${' '}
                  <${Name} text=${b.reason} max=${500} />
                </li>`,
            )}
          </ul>
        </div>`}
      `}
    <//>
  </section>`;
}
