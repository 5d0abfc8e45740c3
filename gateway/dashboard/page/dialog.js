// Dialogs, and the one that asks before an action that cannot be undone.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { plain } from './text.js';
import { Do, html, Icon } from './ui.js';
import { t } from './words.js';

/** @param {{title: string, onClose: () => void, children?: Children, wide?: boolean}} p */
export function Dialog({ title, onClose, children, wide }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const d = ref.current;
    const before = document.activeElement;
    d?.showModal();
    return () => {
      d?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return html`<dialog
    ref=${ref}
    class=${wide ? 'wide' : ''}
    aria-label=${plain(title)}
    onCancel=${(/** @type {Event} */ e) => {
      e.preventDefault();
      onClose();
    }}>
    <header>
      <h2>${plain(title)}</h2>
      <button type="button" class="icon" aria-label=${t('Close')} onClick=${onClose}>
        <${Icon} of="close" />
      </button>
    </header>
    <div class="body">${children}</div>
  </dialog>`;
}

/** Asks before an action that cannot be undone.
 * @param {{children?: Children, ask: Children, yes: string, run: () => Promise<unknown>,
 * kind?: string, label?: string}} p */
export function Confirm({ children, ask, yes, run, kind = '', label }) {
  const [open, setOpen] = useState(false);
  return html`
    <button type="button" class=${kind} aria-label=${label} onClick=${() => setOpen(true)}>
      ${children}
    </button>
    ${open &&
    html`<${Dialog} title=${yes} onClose=${() => setOpen(false)}>
      <p>${ask}</p>
      <div class="buttons">
        <button type="button" onClick=${() => setOpen(false)}>${t('Cancel')}</button>
        <${Do}
          arm
          kind="danger"
          run=${async () => {
            await run();
            setOpen(false);
          }}>
          ${yes}
        <//>
      </div>
    <//>`}
  `;
}
