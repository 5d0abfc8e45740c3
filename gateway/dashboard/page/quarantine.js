// Changes that wait for approval: new and changed tools, instructions of servers, and servers
// that a project brings. An approval covers exactly the shown content, by its digest.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { plain, pretty, prose } from './text.js';
import { Do, html, Name, Of, Pre, View } from './ui.js';

export default function Quarantine() {
  const waiting = useLoaded('/api/mcp/quarantine', ['quarantine', 'servers']);
  return html`<${View}
    title="Quarantine"
    lead="yaya pins tools and instructions when it first sees them. A tool that appears later, or whose parameters or results change, is neither listed nor called until you approve it. If only a description changes, clients keep getting the approved one.">
    <${Of} of=${waiting}>
      ${(/** @type {Admin<'Waiting'>[]} */ d) =>
        d.length
          ? d.map((w) => html`<${Waiting} key=${w.server + w.digest} w=${w} />`)
          : html`<p class="empty">No changes wait for approval.</p>`}
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
  return html`<section class="card wide" aria-label=${`Waiting: ${plain(w.server)}`}>
    <h2><a href=${href('servers', w.server)}><${Name} text=${w.server} /></a></h2>
    ${w.reason &&
    html`<p class="notice">All tools wait: <${Name} text=${w.reason} max=${300} /></p>`}
    ${w.runs &&
    html`
      <h3>It would run</h3>
      <${Pre} all text=${w.runs} label="What it would run" />
      <details><summary>Configuration</summary><${Pre} all text=${pretty(w.config)} /></details>
    `}
    ${w.tools.map(
      (t) => html`<article key=${t.name}>
        <h3>
          <label>
            <input
              type="checkbox"
              checked=${chosen.has(t.name)}
              onChange=${() => toggle(t.name)} /> <code><${Name} text=${t.name} /></code>
          </label> <span class=${t.wording && !w.reason ? 'badge' : 'badge busy'}>
            ${t.new ? 'new' : t.wording ? 'description' : 'changed'}
          </span>
        </h3>
        ${t.wording &&
        !w.reason &&
        html`<p class="muted">Clients get the approved description.</p>`}
        ${t.diff
          ? html`<${Pre}
              all
              diff
              text=${prose(t.diff)}
              label=${`What has changed in ${plain(t.name)}`} />`
          : html`<p class="muted">Its definition is too large to show.</p>`}
      </article>`,
    )}
    ${w.instructions &&
    html`<article>
      <h3>Instructions <span class="badge">changed</span></h3>
      <p class="muted">Clients get the approved instructions.</p>
      <${Pre}
        all
        diff
        text=${prose(w.instructions)}
        label=${`What has changed in the instructions of ${plain(w.server)}`} />
    </article>`}
    ${may('config:write') &&
    html`<div class="buttons">
      ${chosen.size > 0 &&
      chosen.size < w.tools.length + (w.instructions ? 1 : 0) &&
      html`<${Do} arm run=${approve([...chosen])}>Approve ${chosen.size} selected<//>`}
      <${Do} arm kind="primary" run=${approve([])}>Approve all<//>
    </div>`}
  </section>`;
}
