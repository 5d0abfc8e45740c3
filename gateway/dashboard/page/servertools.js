// The tools of a server, with a switch each.
// @ts-check
import { useRef, useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { plain, words } from './text.js';
import { count } from './words.js';
import { Empty, html, Name, Of, typed } from './ui.js';

/** A tool, or the name or pattern of some that the configuration withholds.
 * @typedef {{name: string, tool?: Admin<'Tool'>, pattern: boolean}} Row */

/** @param {{s: Admin<'Server'>}} p */
export function Tools({ s }) {
  const tools = useLoaded('/api/tools', ['tools', 'servers']);
  const [filter, setFilter] = useState('');
  const last = useRef(/** @type {Admin<'Tool'>[]} */ ([])); // while it starts again
  return html`<${Of} of=${tools}>
    ${(/** @type {Admin<'Tool'>[]} */ d) => {
      const now = d.filter((t) => t.provider === s.name);
      const there = now.length > 0 || ['ready', 'degraded'].includes(s.state);
      if (there) last.current = now;
      /** @type {Row[]} */
      const all = [
        ...last.current
          .filter((t) => !s.withheld?.includes(t.tool))
          .map((t) => ({ name: t.tool, tool: t, pattern: false })),
        ...(s.withheld ?? []).map((name) => ({ name, pattern: /[*?]/.test(name) })),
      ].sort((a, b) => (a.name < b.name ? -1 : 1));
      const rows = all.filter((r) =>
        `${r.name} ${r.tool?.description ?? ''}`.toLowerCase().includes(filter.toLowerCase()),
      );
      if (!all.length)
        return html`<${Empty} icon="tool">
          ${s.state === 'ready'
            ? 'This server offers no tools.'
            : 'The tools of a server are known while it runs.'}
        <//>`;
      return html`<section class="box" aria-label="Tools">
        <header>
          <h2>Tools</h2>
          <span class="faint" role="status">
            ${count(all.filter((r) => r.tool).length, '{n} tool is', '{n} tools are')} offered
          </span>
          <input
            type="search"
            class="end"
            aria-label="Filter tools"
            placeholder="Filter"
            value=${filter}
            onInput=${typed(setFilter)} />
        </header>
        <ul class="rows">
          ${rows
            .slice(0, 500)
            .map((r) => html`<${Line} key=${r.name} r=${r} s=${s} there=${there} />`)}
        </ul>
        ${rows.length === 0 && html`<${Empty}>No tools match.<//>`}
      </section>`;
    }}
  <//>`;
}

/** @param {{r: Row, s: Admin<'Server'>, there: boolean}} p */
function Line({ r, s, there }) {
  const [saving, setSaving] = useState(false);
  const [error, setError] = useState('');
  const t = r.tool;
  const hints = /** @type {{readOnlyHint?: boolean, destructiveHint?: boolean} | undefined} */ (
    t?.annotations
  );
  const flip = async () => {
    setSaving(true);
    setError('');
    try {
      await api('PATCH', `/api/mcp/servers/${seg(s.name)}/tools/${seg(r.name)}`, { enabled: !t });
    } catch (e) {
      setError(words(e));
    }
    setSaving(false);
  };
  return html`<li>
    <input
      type="checkbox"
      role="switch"
      class="switch"
      aria-label=${`Offer ${plain(r.name)}`}
      title=${s.editable ? '' : 'The file of this server is not yaya’s to change'}
      checked=${Boolean(t)}
      disabled=${saving || !there || r.pattern || !s.editable || !may('config:write')}
      onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) => {
        e.target.checked = Boolean(t); // it shows what is so, not what is asked for
        void flip();
      }} />
    <span class="two">
      ${t
        ? html`<a class="mono" href=${href('tools', t.name)}>
            <${Name} text=${r.name} max=${80} />
          </a>`
        : html`<code><${Name} text=${r.name} max=${80} /></code>`}
      <small class="cut">
        ${t
          ? html`<${Name} text=${t.title || t.description} max=${160} />`
          : r.pattern
            ? 'A pattern in the configuration: these are not offered'
            : 'Not offered'}
      </small>
      ${error && html`<small class="bad" role="alert">${error}</small>`}
    </span>
    ${hints?.destructiveHint === true &&
    hints.readOnlyHint !== true &&
    html`<span class="badge bad" title="By the server’s own account">destructive</span>`}
    ${t && html`<span class="badge" title="The kind that rules see">${plain(t.kind)}</span>`}
    ${t?.requires_approval && html`<span class="badge busy">asks first</span>`}
  </li>`;
}
