// The editor for a message and its files. A draft is kept until it is sent, for each session, as
// long as the browser's tab is there.
// @ts-check
import { useEffect, useLayoutEffect, useRef, useState } from './vendor/hooks.js';
import { api, request, seg } from './api.js';
import { flush, newID, outbox } from './outbox.js';
import { plain } from './text.js';
import { Do, html, Icon, Name, Problem, typed } from './ui.js';
import { t } from './words.js';

const LONGEST = 64 * 1024; // characters of a draft that is kept

/** @param {string} id */
const place = (id) => 'yaya.draft.' + id;

/** @param {string} id */
function draftOf(id) {
  try {
    return sessionStorage.getItem(place(id)) ?? '';
  } catch {
    return ''; // storage may be off
  }
}

/** @param {string} id @param {string} text */
function keep(id, text) {
  try {
    if (text && text.length <= LONGEST) sessionStorage.setItem(place(id), text);
    else sessionStorage.removeItem(place(id));
  } catch {
    // it is kept while the view is open
  }
}

/** Puts a message into the outbox of a session, and sends it.
 * @param {string} id @param {V1<'Part'>[]} parts
 * @param {import('./outbox.js').Delivery} delivery @param {() => void} draw */
export function post(id, parts, delivery, draw) {
  const box = outbox.get(id) ?? [];
  outbox.set(id, box);
  box.push({ id: newID(), parts, delivery, refused: null, note: '' });
  draw();
  void flush(id, draw);
}

/** @param {{id: string, title: string, running: boolean, retry: string | false, closed: boolean,
 * note?: Children, stop: () => Promise<unknown>, draw: () => void}} p note is beside the buttons */
export function Composer({ id, title, running, retry, closed, note, stop, draw }) {
  const [text, setText] = useState(draftOf(id));
  const [files, setFiles] = useState(/** @type {Attachment[]} */ ([]));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const input = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const file = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => input.current?.focus(), []);
  useLayoutEffect(() => keep(id, text), [text]); // before the view can be left
  useLayoutEffect(() => {
    const i = input.current;
    if (!i) return;
    const most = window.innerHeight / 3;
    i.style.height = 'auto';
    // A very long text is not laid out to be measured.
    i.style.height = `${text.length > LONGEST ? most : Math.min(i.scrollHeight, most)}px`;
  }, [text]);
  if (closed) return html`<p class="empty">${t('The session is closed. Fork it to continue.')}</p>`;
  /** @param {import('./outbox.js').Delivery} delivery */
  const send = (delivery) => {
    if (!text.trim() && !files.length) return;
    /** @type {V1<'Part'>[]} */
    const parts = files.map((f) => ({
      type: f.mime_type.startsWith('image/') ? 'image' : 'file',
      ref: f.ref,
      mime_type: f.mime_type,
      name: f.name,
    }));
    if (text.trim()) parts.unshift({ type: 'text', text });
    setText('');
    setFiles([]);
    post(id, parts, delivery, draw);
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
  return html`<form
    class="composer"
    onSubmit=${(/** @type {Event} */ e) => {
      e.preventDefault();
      send('queue');
    }}>
    <${Problem} error=${error} />
    ${files.length > 0 &&
    html`<p class="files">
      ${files.map(
        (f) =>
          html`<span key=${f.ref} class="chip">
            <${Icon} of="attach" />
            <${Name} text=${f.name || f.ref} max=${40} />
            <button
              type="button"
              class="quiet sq small"
              aria-label=${t('Remove the file {name}', { name: plain(f.name || f.ref) })}
              onClick=${() => setFiles(files.filter((x) => x !== f))}>
              <${Icon} of="close" />
            </button>
          </span>`,
      )}
    </p>`}
    <textarea
      ref=${input}
      aria-label=${t('Message')}
      rows="1"
      value=${text}
      maxlength="900000"
      placeholder=${t('Message {title}', { title: plain(title).slice(0, 60) })}
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
          stop().catch(setError);
        }
      }}></textarea>
    <div class="tools">
      <input
        ref=${file}
        type="file"
        multiple
        hidden
        onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) => {
          void attach(e.target.files);
        }} />
      <button
        type="button"
        class="quiet sq"
        aria-label=${t('Attach files')}
        title=${t('Attach files')}
        onClick=${() => file.current?.click()}>
        <${Icon} of="attach" />
      </button>
      ${note}
      <span class="end flex">
        ${retry &&
        !running &&
        html`<${Do} run=${() => api('POST', `/v1/sessions/${seg(id)}/turns/${seg(retry)}/retry`)}>
          <${Icon} of="restart" />
          ${t('Run it again')}
        <//>`}
        ${running &&
        html`<button type="button" class="quiet" onClick=${() => send('steer')}>
          <${Icon} of="steer" />
          ${t('Steer')} <kbd aria-hidden="true">Ctrl ↵</kbd>
        </button>`}
        <button class="primary" type="submit" title=${t('Enter sends, Shift+Enter adds a line')}>
          <${Icon} of=${running ? 'queue' : 'send'} />
          ${running ? t('Queue') : t('Send')} <kbd aria-hidden="true">↵</kbd>
        </button>
      </span>
    </div>
  </form>`;
}
