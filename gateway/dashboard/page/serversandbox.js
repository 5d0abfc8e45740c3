// The sandbox of a server, its enforced parts, and its refusals.
// @ts-check
import { Command } from './copy.js';
import { said } from './said.js';
import { href } from './state.js';
import { listed, plain } from './text.js';
import { html, Name } from './ui.js';
import { t } from './words.js';

/** The sandbox of a server's process, its enforced parts, and its refusals.
 * @param {{of: Admin<'ServerSandbox'>, server: string}} p */
export function Boxed({ of, server }) {
  const open = of.profile === 'off' || of.backend === 'off';
  return html`<section class="box" aria-label=${t('Sandbox')}>
    <header>
      <h2>${t('Sandbox')}</h2>
      <a class="end" href=${href('sandbox')}>${t('What is enforced here')}</a>
    </header>
    <div class="body">
      ${open &&
      html`<p class="problem">
        ${of.profile === 'off'
          ? html`
              <b>${t('Outside the sandbox.')}</b> ${t(
                'It runs with all rights of your user, and can read and change yaya’s own files.',
              )}
            `
          : html`
              <b>${t('Nothing is enforced.')}</b> ${t(
                'It runs with all rights of your user, although it should be sandboxed:',
              )}
            `}
      </p>`}
      ${of.profile !== 'off' && html`<p><${Name} text=${of.allowed} max=${4096} /></p>`}
      ${!open &&
      of.backend &&
      html`<dl>
        <dt>${t('Enforced')}</dt>
        <dd>
          ${t('{parts} ({backend})', {
            parts: listed((of.enforced ?? []).map((x) => said('sandbox', x))) || t('nothing'),
            backend: plain(of.backend),
          })}
        </dd>
        ${!!of.missing?.length &&
        html`
          <dt>${t('Not enforced, or only in part')}</dt>
          <dd>
            <ul class="plain">
              ${of.missing.map(
                (/** @type {string} */ m) => html`<li><${Name} text=${m} max=${1000} /></li>`,
              )}
            </ul>
          </dd>
        `}
        ${!!of.breaks?.length &&
        html`
          <dt>${t('Does not work here')}</dt>
          <dd>
            <ul class="plain">
              ${of.breaks.map(
                (/** @type {string} */ m) => html`<li><${Name} text=${m} max=${1000} /></li>`,
              )}
            </ul>
          </dd>
        `}
      </dl>`}
      ${!!of.denied?.length &&
      html`
        <h3>${t('What it was kept from')}</h3>
        <ul class="plain changes">
          ${of.denied.map(
            (d) =>
              html`<li key=${d.what}>
                <${Name} text=${d.what} max=${1024} />
                ${d.allow &&
                html`<${Command}
                  text=${d.allow}
                  label=${t('The command that allows {server} this', {
                    server: plain(server),
                  })} />`}
              </li>`,
          )}
        </ul>
      `}
    </div>
  </section>`;
}
