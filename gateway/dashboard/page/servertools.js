// The tools of a server, with a switch each.
// @ts-check
import { useRef, useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { href, may, useLoaded } from './state.js';
import { oneLine, plain, words } from './text.js';
import { Empty, html, Name, Of, typed } from './ui.js';
import { count, t } from './words.js';

/** A tool, or the name or pattern of some that the configuration withholds.
 * @typedef {{name: string, tool?: Admin<'Tool'>, pattern: boolean}} Row */

/** @param {{s: Admin<'Server'>}} p */
export function Tools({ s }) {
  const tools = useLoaded('/api/tools', ['tools', 'servers']);
  const [filter, setFilter] = useState('');
  const last = useRef(/** @type {Admin<'Tool'>[]} */ ([])); // while it starts again
  return html`<${Of} of=${tools}>
    ${(/** @type {Admin<'Tool'>[]} */ d) => {
      const now = d.filter((x) => x.provider === s.name);
      const there = now.length > 0 || ['ready', 'degraded'].includes(s.state);
      if (there) last.current = now;
      const withheld = s.withheld ?? [];
      // One that was just switched off is offered until the server has taken it back.
      const offered = there ? now : last.current.filter((x) => !withheld.includes(x.tool));
      /** @type {Row[]} */
      const all = [
        ...offered.map((x) => ({ name: x.tool, tool: x, pattern: false })),
        ...withheld
          .filter((name) => !offered.some((x) => x.tool === name))
          .map((name) => ({ name, pattern: /[*?]/.test(name) })),
      ].sort((a, b) => (a.name < b.name ? -1 : 1));
      const rows = all.filter((r) =>
        `${r.name} ${r.tool?.description ?? ''}`.toLowerCase().includes(filter.toLowerCase()),
      );
      if (!all.length)
        return html`<${Empty} icon="tool">
          ${s.state === 'ready'
            ? t('This server offers no tools.')
            : t('The tools of a server are known while it runs.')}
        <//>`;
      return html`<section class="box" aria-label=${t('Tools')}>
        <header>
          <h2>${t('Tools')}</h2>
          <span class="faint" role="status">
            ${count(
              all.filter((r) => r.tool).length,
              '{n} tool is offered',
              '{n} tools are offered',
            )}
          </span>
          <input
            type="search"
            class="end"
            aria-label=${t('Filter tools')}
            placeholder=${t('Filter')}
            value=${filter}
            onInput=${typed(setFilter)} />
        </header>
        <ul class="rows">
          ${rows
            .slice(0, 500)
            .map((r) => html`<${Line} key=${r.name} r=${r} s=${s} there=${there} />`)}
        </ul>
        ${rows.length === 0 && html`<${Empty}>${t('No tools match.')}<//>`}
      </section>`;
    }}
  <//>`;
}

/** @param {{r: Row, s: Admin<'Server'>, there: boolean}} p */
function Line({ r, s, there }) {
  const [saving, setSaving] = useState(false);
  const [error, setError] = useState('');
  const tool = r.tool;
  const hints = /** @type {{readOnlyHint?: boolean, destructiveHint?: boolean} | undefined} */ (
    tool?.annotations
  );
  const flip = async () => {
    setSaving(true);
    setError('');
    try {
      await api('PATCH', `/api/mcp/servers/${seg(s.name)}/tools/${seg(r.name)}`, {
        enabled: !tool,
      });
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
      aria-label=${t('Offer {tool}', { tool: plain(r.name) })}
      title=${s.editable ? '' : t('The file of this server is not yaya’s to change')}
      checked=${Boolean(tool)}
      disabled=${saving || !there || r.pattern || !s.editable || !may('config:write')}
      onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) => {
        e.target.checked = Boolean(tool); // it shows what is so, not what is asked for
        void flip();
      }} />
    <span class="two">
      ${tool
        ? html`<a class="mono" href=${href('tools', tool.name)}>
            <${Name} text=${r.name} max=${80} />
          </a>`
        : html`<code><${Name} text=${r.name} max=${80} /></code>`}
      <small class="cut">
        ${tool
          ? html`<${Name} text=${oneLine(tool.title || tool.description)} max=${160} />`
          : r.pattern
            ? t('A pattern in the configuration: these are not offered')
            : t('Not offered')}
      </small>
      ${error && html`<small class="bad" role="alert">${error}</small>`}
    </span>
    ${hints?.destructiveHint === true &&
    hints.readOnlyHint !== true &&
    html`<span class="badge bad" title=${t('By the server’s own account')}>
      ${t('destructive')}
    </span>`}
    ${tool &&
    html`<span class="badge" title=${t('The kind that rules see')}>
      <bdi>${plain(tool.kind)}</bdi>
    </span>`}
    ${tool?.requires_approval && html`<span class="badge busy">${t('asks first')}</span>`}
  </li>`;
}
