// The editor for a message and its files.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { api, request, seg } from './api.js';
import { flush, newID, outbox } from './outbox.js';
import { Do, html, Name, Problem, typed } from './ui.js';

/** @param {{id: string, running: boolean, retry: string | false, closed: boolean,
 * draw: () => void}} p */
export function Composer({ id, running, retry, closed, draw }) {
  const [text, setText] = useState('');
  const [files, setFiles] = useState(/** @type {Attachment[]} */ ([]));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const input = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const file = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => input.current?.focus(), []);
  if (closed) return html`<p class="empty">The session is closed. Fork it to continue.</p>`;
  /** @param {import('./outbox.js').Delivery} delivery */
  const send = (delivery) => {
    if (!text.trim() && !files.length) return;
    const box = outbox.get(id) ?? [];
    outbox.set(id, box);
    /** @type {V1<'Part'>[]} */
    const parts = files.map((f) => ({
      type: f.mime_type.startsWith('image/') ? 'image' : 'file',
      ref: f.ref,
      mime_type: f.mime_type,
      name: f.name,
    }));
    if (text.trim()) parts.unshift({ type: 'text', text });
    box.push({ id: newID(), parts, delivery, refused: null, note: '' });
    setText('');
    setFiles([]);
    draw();
    void flush(id, draw);
  };
  /** @param {FileList | null} list */
  const attach = async (list) => {
    setError(null);
    for (const f of list ?? []) {
      try {
        const form = new FormData();
        form.append('file', f, f.name);
        const r = await request('POST', `/v1/sessions/${seg(id)}/attachments`, { raw: form });
        const up = await r.json();
        setFiles((all) => [...all, up]);
      } catch (e) {
        setError(e);
      }
    }
  };
  const stop = () => api('POST', `/v1/sessions/${seg(id)}/cancel`).catch(setError);
  return html`<form
    class="composer"
    onSubmit=${(/** @type {Event} */ e) => {
      e.preventDefault();
      send('queue');
    }}>
    ${files.map(
      (f) =>
        html`<span class="chip">
          📎 <${Name} text=${f.name || f.ref} max=${40} /> <button
            type="button"
            class="icon"
            aria-label="Remove the file"
            onClick=${() => setFiles(files.filter((x) => x !== f))}>
            ✕
          </button>
        </span>`,
    )}
    <${Problem} error=${error} />
    <textarea
      ref=${input}
      aria-label="Message"
      rows="3"
      value=${text}
      maxlength="900000"
      placeholder=${running
        ? 'Enter queues, Ctrl+Enter steers, Esc stops'
        : 'Enter sends, Shift+Enter adds a line'}
      onInput=${typed(setText)}
      onPaste=${(/** @type {ClipboardEvent} */ e) => {
        if (e.clipboardData?.files.length) {
          e.preventDefault();
          void attach(e.clipboardData.files);
        }
      }}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => {
        if (e.isComposing) return;
        if (e.key === 'Enter' && !e.shiftKey) {
          e.preventDefault();
          send(running && (e.ctrlKey || e.metaKey) ? 'steer' : 'queue');
        }
        if (e.key === 'Escape' && running) {
          e.preventDefault();
          void stop();
        }
      }}></textarea>
    <div class="buttons">
      <input
        ref=${file}
        type="file"
        multiple
        hidden
        onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) => {
          void attach(e.target.files);
        }} />
      <button type="button" onClick=${() => file.current?.click()}>Attach</button>
      ${retry &&
      !running &&
      html`<${Do} run=${() => api('POST', `/v1/sessions/${seg(id)}/turns/${seg(retry)}/retry`)}>
        Run it again
      <//>`}
      ${running && html`<button type="button" onClick=${() => send('steer')}>Steer</button>`}
      <button class="primary" type="submit">${running ? 'Queue' : 'Send'}</button>
    </div>
  </form>`;
}
