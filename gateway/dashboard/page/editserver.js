// Adding and changing a server: nothing runs before the user has seen it.
// @ts-check
import { useState } from './vendor/hooks.js';
import { api, seg } from './api.js';
import { Dialog } from './dialog.js';
import { plain, words } from './text.js';
import { Do, Field, html, Name, Pre, Problem, typed } from './ui.js';

/** Shows in full what a change would run; the button that approves it has a delay.
 * @param {{changes: Admin<'Change'>[], done: () => void, cancel: () => void}} p */
export function Agree({ changes, done, cancel }) {
  const [left, setLeft] = useState(changes);
  const [results, setResults] = useState(/** @type {Map<string, string>} */ (new Map()));
  const drop = (/** @type {Admin<'Change'>} */ c) => {
    const rest = left.filter((x) => x !== c);
    setLeft(rest);
    if (!rest.length) done();
  };
  const apply = async (/** @type {Admin<'Change'>[]} */ list) => {
    const failed = new Map(results);
    const rest = left.filter((c) => !list.includes(c));
    for (const c of list) {
      try {
        await api('POST', `/api/mcp/changes/${seg(c.id)}/apply`);
      } catch (e) {
        failed.set(c.id, words(e));
        rest.push(c);
      }
    }
    setResults(failed);
    setLeft(rest);
    if (!rest.length) done();
  };
  return html`<${Dialog}
    wide
    title=${left.length === 1 ? 'This would run' : `These ${left.length} would run`}
    onClose=${cancel}>
    <p>yaya starts these on this machine, as you, or talks to them. Agree only to what you know.</p>
    <ul class="plain changes">
      ${left.map(
        (c) => html`<li key=${c.id}>
          <b><${Name} text=${c.server} /></b> <small class="muted">
            ${c.action === 'add' ? 'new' : 'changed'}
          </small>
          <${Pre} all text=${c.runs} label=${`What ${plain(c.server)} would run`} />
          ${(c.notes ?? []).map(
            (/** @type {string} */ n) =>
              html`<p class="muted"><${Name} text=${n} max=${300} /></p>`,
          )}
          <${Problem} error=${results.get(c.id)} />
          ${left.length > 1 &&
          html`<${Do}
            kind="small"
            run=${async () => {
              await api('DELETE', `/api/mcp/changes/${seg(c.id)}`).catch(() => {});
              drop(c);
            }}>
            Leave out
          <//>`}
        </li>`,
      )}
    </ul>
    <div class="buttons">
      <button type="button" onClick=${cancel}>Cancel</button>
      <${Do} arm kind="primary" run=${() => apply(left)}>
        ${left.length === 1 ? 'Approve' : 'Approve all'}
      <//>
    </div>
  <//>`;
}

const NEW = { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'], env: {} };

/** @param {{server?: Admin<'Server'>, done: () => void}} p */
export function Edit({ server, done }) {
  const [name, setName] = useState(server?.name ?? '');
  const [text, setText] = useState(JSON.stringify(server?.config ?? NEW, null, 2));
  const [change, setChange] = useState(/** @type {Admin<'Change'> | null} */ (null));
  const propose = async () => {
    let config;
    try {
      config = JSON.parse(text);
    } catch (e) {
      throw new Error(`This is not JSON: ${words(e)}`);
    }
    setChange(
      server
        ? await api('PUT', `/api/mcp/servers/${seg(server.name)}`, { config })
        : await api('POST', '/api/mcp/servers', { name: name.trim(), config }),
    );
  };
  if (change)
    return html`<${Agree} changes=${[change]} done=${done} cancel=${() => setChange(null)} />`;
  return html`<${Dialog}
    wide
    title=${server ? `Change ${server.name}` : 'Add a server'}
    onClose=${done}>
    ${!server &&
    html`<${Field} label="Name" hint="Its tools are called name__tool.">
      ${(/** @type {string} */ id) =>
        html`<input id=${id} value=${name} spellcheck="false" onInput=${typed(setName)} />`}
    <//>`}
    <${Field}
      label="Configuration"
      hint="As in any client's mcpServers: command, args, env; or type, url, headers. Secrets shown as **** are kept as long as the address or the command stays the same.">
      ${(/** @type {string} */ id) =>
        html`<textarea
          id=${id}
          rows="12"
          class="code"
          spellcheck="false"
          value=${text}
          onInput=${typed(setText)}></textarea>`}
    <//>
    <div class="buttons">
      <button type="button" onClick=${done}>Cancel</button>
      <${Do} kind="primary" disabled=${!server && !name.trim()} run=${propose}>Next<//>
    </div>
  <//>`;
}
