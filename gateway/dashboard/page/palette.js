// The command palette, and the list of keys. Names from others are shown as text, and a command
// that cannot be undone opens its confirmation where it always is.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { Dialog } from './dialog.js';
import { found, GROUPS, ORDER, useEntries } from './entries.js';
import { PLACES, setSingle, single } from './keys.js';
import { may, page } from './state.js';
import { style } from './style.js';
import { plain, words } from './text.js';
import { toast } from './toast.js';
import { html, Icon } from './ui.js';
import { viewAt } from './views.js';
import { rich, t } from './words.js';

style('palette');

export function Palette() {
  const all = useEntries();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const entries = found(all, text);
  const now = Math.min(at, entries.length - 1);
  const close = () => page.over.set('');
  useEffect(() => {
    const d = box.current;
    const before = document.activeElement;
    d?.showModal();
    return () => {
      d?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    box.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [now, text]);
  const run = (/** @type {import('./entries.js').Entry | undefined} */ e) => {
    if (!e) return;
    close();
    if (e.to !== undefined) location.hash = e.to;
    else e.run?.().then(toast, (error) => toast(words(error), 'error'));
  };
  const key = (/** @type {KeyboardEvent} */ e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && entries.length) setAt((now + step + entries.length) % entries.length);
    else if (e.key === 'Enter' && !e.isComposing) run(entries[now]);
    else return;
    e.preventDefault();
  };
  return html`<dialog
    ref=${box}
    class="palette"
    aria-label=${t('Search or run')}
    onClick=${(/** @type {Event} */ e) => e.target === box.current && close()}
    onCancel=${(/** @type {Event} */ e) => {
      e.preventDefault();
      close();
    }}>
    <header>
      <${Icon} of="search" />
      <input
        role="combobox"
        aria-label=${t('Search or run')}
        aria-expanded="true"
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant=${entries.length ? `found-${now}` : undefined}
        autocomplete="off"
        spellcheck="false"
        maxlength="200"
        value=${text}
        onInput=${(/** @type {Event & {target: HTMLInputElement}} */ e) => {
          setText(e.target.value);
          setAt(0);
        }}
        onKeyDown=${key} />
      <kbd>Esc</kbd>
    </header>
    <div role="listbox" id="found" aria-label=${t('Found')} tabindex="-1">
      ${ORDER.map((g) => {
        const some = entries.flatMap((e, i) => (e.group === g ? [{ e, i }] : []));
        return (
          some.length > 0 &&
          html`<div role="group" aria-label=${GROUPS[g]} key=${g}>
            <h3 aria-hidden="true">${GROUPS[g]}</h3>
            ${some.map(
              ({ e, i }) =>
                html`<div
                  key=${i}
                  id=${`found-${i}`}
                  role="option"
                  aria-selected=${i === now}
                  onMouseMove=${() => i !== now && setAt(i)}
                  onClick=${() => run(e)}>
                  <${Icon} of=${e.icon} />
                  <b class="cut"><bdi>${plain(e.name).slice(0, 120)}</bdi></b>
                  <span class="cut">${plain(e.hint).slice(0, 80)}</span>
                </div>`,
            )}
          </div>`
        );
      })}
    </div>
    ${entries.length === 0 &&
    html`<p class="empty" role="status">${t('Nothing is called that.')}</p>`}
    <footer class="nophone">
      <span>${rich('{keys} move', { keys: html`<kbd>↑</kbd> <kbd>↓</kbd>` })}</span>
      <span>${rich('{key} run', { key: html`<kbd>↵</kbd>` })}</span>
      <span class="end">
        ${rich(
          'Start with {commands} for commands, {names} servers and tools, {sessions} sessions',
          {
            commands: html`<kbd>></kbd>`,
            names: html`<kbd>@</kbd>`,
            sessions: html`<kbd>#</kbd>`,
          },
        )}
      </span>
    </footer>
  </dialog>`;
}

/** The list of keys, and the switch that turns single keys off. */
export function Keys() {
  const on = single.use();
  const row = (/** @type {string[]} */ keys, /** @type {string} */ what) =>
    html`<dt>${keys.map((k, i) => html`${i > 0 && ' '}<kbd>${k}</kbd>`)}</dt><dd>${what}</dd>`;
  return html`<${Dialog} title=${t('Keys')} onClose=${() => page.over.set('')}>
    <dl>
      ${row(['Ctrl K'], t('Search or run'))}
      ${row(['/'], t('Filter the view'))}
      ${row(['c'], t('New session'))}
      ${PLACES.map(([k, at]) => {
        const v = viewAt(at);
        return v && may(v.needs) && row(['g', k], v.title);
      })}
      ${row(['Esc'], t('Close what is on top'))}
      ${row(['?'], t('This list'))}
    </dl>
    <label>
      <input
        type="checkbox"
        checked=${on}
        onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) =>
          setSingle(e.target.checked)} />
      ${' '}
      ${t('Single keys work in this browser')}
    </label>
  <//>`;
}
