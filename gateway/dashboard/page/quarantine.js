// Changes that wait for approval: new and changed tools, instructions of servers, and servers
// that a project brings. An approval covers exactly the shown content, by its digest.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { plain, pretty, prose } from './text.js';
import { Do, html, Name, Of, Pre, View } from './ui.js';
import { rich, t } from './words.js';

export default function Quarantine() {
  const waiting = useLoaded('/api/mcp/quarantine', ['quarantine', 'servers']);
  return html`<${View}
    title=${t('Quarantine')}
    lead=${t(
      'yaya pins tools and instructions when it first sees them. A tool that appears later, or whose parameters or results change, is neither listed nor called until you approve it. If only a description changes, clients keep getting the approved one.',
    )}>
    <${Of} of=${waiting}>
      ${(/** @type {Admin<'Waiting'>[]} */ d) =>
        d.length
          ? d.map((w) => html`<${Waiting} key=${w.server + w.digest} w=${w} />`)
          : html`<p class="empty">${t('No changes wait for approval.')}</p>`}
    <//>
  <//>`;
}

/** @param {{w: Admin<'Waiting'>}} p */
export function Waiting({ w }) {
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
  return html`<section
    class="card wide"
    aria-label=${t('Waiting: {server}', { server: plain(w.server) })}>
    <h2><a href=${href('servers', w.server)}><${Name} text=${w.server} /></a></h2>
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
        <h3>
          <label>
            <input
              type="checkbox"
              checked=${chosen.has(x.name)}
              onChange=${() => toggle(x.name)} /> <code><${Name} text=${x.name} /></code>
          </label> <span class=${x.wording && !w.reason ? 'badge' : 'badge busy'}>
            ${x.new ? t('new') : x.wording ? t('description') : t('changed')}
          </span>
        </h3>
        ${x.wording &&
        !w.reason &&
        html`<p class="muted">${t('Clients get the approved description.')}</p>`}
        ${x.diff
          ? html`<${Pre}
              all
              diff
              text=${prose(x.diff)}
              label=${t('What has changed in {tool}', { tool: plain(x.name) })} />`
          : html`<p class="muted">${t('Its definition is too large to show.')}</p>`}
      </article>`,
    )}
    ${w.instructions &&
    html`<article>
      <h3>${t('Instructions')} <span class="badge">${t('changed')}</span></h3>
      <p class="muted">${t('Clients get the approved instructions.')}</p>
      <${Pre}
        all
        diff
        text=${prose(w.instructions)}
        label=${t('What has changed in the instructions of {server}', {
          server: plain(w.server),
        })} />
    </article>`}
    ${may('config:write') &&
    html`<div class="buttons">
      ${chosen.size > 0 &&
      chosen.size < w.tools.length + (w.instructions ? 1 : 0) &&
      html`<${Do} arm run=${approve([...chosen])}>
        ${t('Approve {n} selected', { n: chosen.size })}
      <//>`}
      <${Do} arm kind="primary" run=${approve([])}>${t('Approve all')}<//>
    </div>`}
  </section>`;
}
