// Approval of a server's new and changed tools, of its instructions, or of the server itself, if
// a project brings it. An approval covers exactly the shown content, by its digest.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { may } from './state.js';
import { plain, pretty, prose } from './text.js';
import { Do, Empty, html, Name, Of, Pre } from './ui.js';
import { count, rich, t } from './words.js';

/** @param {{s: Admin<'Server'>, waiting: Admin<'Waiting'>[] | undefined}} p */
export function Trust({ s, waiting }) {
  const config = /** @type {{trust?: string} | null} */ (s.config);
  return html`
    <p class="lead">
      ${config?.trust === 'always'
        ? t('This server may change its tools without your approval: its configuration says so.')
        : t(
            'yaya pins tools and instructions when it first sees them. Tools that appear later, or whose parameters or results change, are not offered until you approve them.',
          )}
    </p>
    <${Of} of=${{ data: waiting, error: null, reload: () => {} }}>
      ${(/** @type {Admin<'Waiting'>[]} */ d) =>
        d.length
          ? d.map((w) => html`<${Waiting} key=${w.digest} w=${w} />`)
          : html`<${Empty} icon="shield">${t('No changes wait for approval.')}<//>`}
    <//>
  `;
}

/** @param {{w: Admin<'Waiting'>}} p */
function Waiting({ w }) {
  const [chosen, setChosen] = useState(/** @type {Set<string>} */ (new Set()));
  const approve = (/** @type {string[]} */ tools) => () =>
    api('POST', `/api/mcp/quarantine/${seg(w.server)}/approve`, {
      digest: w.digest,
      ...(tools.length && { tools }),
    });
  const toggle = (/** @type {string} */ n) => {
    const next = new Set(chosen);
    if (!next.delete(n)) next.add(n);
    setChosen(next);
  };
  const n = w.tools.length + (w.instructions ? 1 : 0);
  return html`<section
    class="box trust"
    aria-label=${t('Waiting: {server}', { server: plain(w.server) })}>
    <header>
      <h2>${w.runs ? t('Waits to start') : t('Waits for approval')}</h2>
      ${n > 0 && html`<span class="faint">${count(n, '{n} change', '{n} changes')}</span>`}
      ${may('config:write') &&
      html`<span class="flex end">
        ${chosen.size > 0 &&
        chosen.size < n &&
        html`<${Do} arm kind="small" run=${approve([...chosen])}>
          ${t('Approve {n} selected', { n: chosen.size })}
        <//>`}
        <${Do} arm kind="primary small" run=${approve([])}>${t('Approve all')}<//>
      </span>`}
    </header>
    <div class="body">
      ${w.reason &&
      html`<p class="notice">
        ${rich('All tools wait: {reason}', {
          reason: html`<${Name} text=${w.reason} max=${300} />`,
        })}
      </p>`}
      ${w.runs &&
      html`
        <h3>${t('It would run')}</h3>
        <${Pre} all text=${w.runs} label=${t('What it would run')} />
        <details>
          <summary>${t('Configuration')}</summary>
          <${Pre} all text=${pretty(w.config)} />
        </details>
      `}
      ${w.tools.map(
        (x) => html`<article key=${x.name}>
          <h3 class="flex">
            <label>
              <input
                type="checkbox"
                checked=${chosen.has(x.name)}
                onChange=${() => toggle(x.name)} /> <code><${Name} text=${x.name} /></code>
            </label>
            <span class=${x.wording && !w.reason ? 'badge' : 'badge busy'}>
              ${x.new ? t('new') : x.wording ? t('description') : t('changed')}
            </span>
          </h3>
          ${x.wording &&
          !w.reason &&
          html`<p class="faint">${t('Clients get the approved description.')}</p>`}
          ${x.diff
            ? html`<${Pre}
                all
                diff
                text=${prose(x.diff)}
                label=${t('What has changed in {tool}', { tool: plain(x.name) })} />`
            : html`<p class="faint">${t('Its definition is too large to show.')}</p>`}
        </article>`,
      )}
      ${w.instructions &&
      html`<article>
        <h3 class="flex">${t('Instructions')} <span class="badge">${t('changed')}</span></h3>
        <p class="faint">${t('Clients get the approved instructions.')}</p>
        <${Pre}
          all
          diff
          text=${prose(w.instructions)}
          label=${t('What has changed in the instructions of {server}', {
            server: plain(w.server),
          })} />
      </article>`}
    </div>
  </section>`;
}
