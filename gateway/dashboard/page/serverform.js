// The configuration of a server as a form, or as JSON: nothing runs before the user has seen it.
// @ts-check
import { useMemo, useState } from './vendor/hooks.js';
import { Agree } from './agree.js';
import { api, seg } from './api.js';
import { entryOf, fieldsOf, Inputs } from './serverfields.js';
import { go, href } from './state.js';
import { words } from './text.js';
import { toast } from './toast.js';
import { Do, Field, html, typed, View } from './ui.js';
import { t } from './words.js';

/** @typedef {import('./serverfields.js').Entry} Entry */
/** @typedef {import('./serverfields.js').Fields} Fields */

const NEW = { command: '' };

/** A configuration to be shown, changed or added. Without a server it is a new one.
 * @param {{s?: Admin<'Server'>, readonly?: boolean}} p */
export function Form({ s, readonly = false }) {
  const was = useMemo(() => JSON.stringify(s?.config ?? NEW, null, 2), [s?.revision]);
  const [text, write] = useState(was);
  // The fields as they are filled in: a variable without a name is not in the entry yet.
  const [draft, setDraft] = useState(/** @type {Fields | null} */ (null));
  const setText = (/** @type {string} */ s) => {
    setDraft(null);
    write(s);
  };
  const [base, setBase] = useState({ was, revision: s?.revision });
  const [asJSON, setAsJSON] = useState(false);
  const [name, setName] = useState('');
  const [change, setChange] = useState(/** @type {Admin<'Change'> | null} */ (null));
  // Somebody else has changed it, or this form has: what nobody has edited follows.
  if (base.was !== was && text === base.was) {
    setBase({ was, revision: s?.revision });
    setText(was);
  }
  let entry = /** @type {unknown} */ (null);
  let mistake = '';
  try {
    entry = JSON.parse(text);
  } catch (e) {
    mistake = words(e);
  }
  const fields = draft ?? fieldsOf(entry);
  const form = fields && !asJSON;
  const changed = text !== base.was;
  const review = async () => {
    if (mistake) throw new Error(t('This is not JSON: {error}', { error: mistake }));
    setChange(
      s
        ? await api('PUT', `/api/mcp/servers/${seg(s.name)}`, {
            config: entry,
            ...(base.revision && { revision: base.revision }),
          })
        : await api('POST', '/api/mcp/servers', { name: name.trim(), config: entry }),
    );
  };
  const done = () => {
    setChange(null);
    if (!s) {
      go('servers', name.trim());
      return;
    }
    setDraft(null);
    setBase({ was: text, revision: undefined });
    toast(t('The change is in force.'));
  };
  return html`<section class="box form" aria-label=${t('Configuration')}>
    <header>
      <h2>${t('Configuration')}</h2>
      ${changed && s && html`<span class="badge busy">${t('not saved')}</span>`}
      <span class="seg end" role="group" aria-label=${t('Edit as')}>
        <button
          type="button"
          aria-pressed=${Boolean(form)}
          disabled=${!fields}
          title=${fields ? '' : t('The form cannot show this configuration whole')}
          onClick=${() => setAsJSON(false)}>
          ${t('Form')}
        </button>
        <button type="button" aria-pressed=${!form} onClick=${() => setAsJSON(true)}>JSON</button>
      </span>
    </header>
    <div class="body">
      ${!s &&
      html`<${Field} label=${t('Name')} hint=${t('Its tools are called name__tool.')}>
        ${(/** @type {string} */ id) =>
          html`<input
            id=${id}
            value=${name}
            spellcheck="false"
            maxlength="128"
            onInput=${typed(setName)} />`}
      <//>`}
      ${form
        ? html`<${Inputs}
            f=${fields}
            readonly=${readonly}
            set=${(/** @type {Fields} */ f) => {
              write(JSON.stringify(entryOf(/** @type {Entry} */ (entry), f), null, 2));
              setDraft(f);
            }} />`
        : html`<${Field}
            label="JSON"
            hint=${t(
              'As in the mcpServers of clients: command, args, env; or type, url, headers.',
            )}>
            ${(/** @type {string} */ id) =>
              html`<textarea
                id=${id}
                rows="16"
                class="code"
                spellcheck="false"
                readonly=${readonly}
                value=${text}
                onInput=${typed(setText)}></textarea>`}
          <//>`}
      ${!readonly &&
      html`<div class="buttons">
        <${Do}
          kind="primary"
          disabled=${s ? !changed : !name.trim() || (form && !fields.command && !fields.url)}
          run=${review}>
          ${s ? t('Review change') : t('Review')}
        <//>
        ${s &&
        changed &&
        html`<button type="button" onClick=${() => setText(base.was)}>${t('Discard')}</button>`}
      </div>`}
    </div>
    ${change && html`<${Agree} changes=${[change]} done=${done} cancel=${() => setChange(null)} />`}
  </section>`;
}

/** The view that adds a server. */
export const New = () =>
  html`<${View}
    title=${t('Add a server')}
    crumb=${html`<a href=${href('servers')}>${t('Servers')}</a>`}
    lead=${t('Nothing runs before you have seen exactly what would run, and approved it.')}>
    <${Form} />
  <//>`;
