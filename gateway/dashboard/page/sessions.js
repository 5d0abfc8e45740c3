// Sessions: their list, and one of them with its chat.
// @ts-check
import { useEffect, useReducer, useRef, useState } from './vendor/hooks.js';
import { api, ApiError, request, seg } from './api.js';
import { around, grouped, Question } from './approvals.js';
import { Markdown } from './markdown.js';
import { Session } from './session.js';
import { go, href, may, page, useLoaded } from './state.js';
import { Badge, Confirm, Do, Field, html, Name, Of, plain, Pre, pretty, Problem, prose, SessionBadge, size, Table, Time, View } from './ui.js';
import { Virtual } from './virtual.js';

/** @param {{rest: string[]}} p */
export default function Sessions({ rest: [id] }) {
  if (id === 'new') return html`<${New} />`;
  return id ? html`<${Chat} key=${id} id=${id} />` : html`<${List} />`;
}

function List() {
  const [pages, setPages] = useState(/** @type {any[]} */ ([]));
  const first = useLoaded('/v1/sessions?limit=50', ['sessions']);
  const rows = [...(first.data?.sessions ?? []), ...pages.flatMap((p) => p.sessions)];
  const next = pages.length ? pages.at(-1).next : first.data?.next;
  return html`<${View} title="Sessions" actions=${may('sessions:write') && html`<a class="button primary" href=${href('chat', 'new')}>New session</a>`}>
    <${Of} of=${first}>${() => html`<${Table} label="Sessions" head=${['Session', 'State', 'Folder', 'Changed', null]} rows=${rows} empty=${html`There are no sessions yet. <a href=${href('chat', 'new')}>Begin one</a>.`} row=${(/** @type {any} */ s) => html`<tr key=${s.id}>
      <td><a href=${href('chat', s.id)}><${Name} text=${s.title || s.id} max=${80} /></a></td><td><${SessionBadge} s=${s} /></td><td><code><${Name} text=${s.workspace_path} max=${60} /></code></td><td><${Time} at=${s.updated_at} /></td>
      <td>${may('sessions:write') && html`<${Confirm} kind="small" label=${`Archive ${plain(s.title || s.id)}`} yes="Archive" ask=${html`“<${Name} text=${s.title || s.id} />” is put away: it is no longer listed, and its tape is kept in the archive.`} run=${() => api('POST', `/v1/sessions/${seg(s.id)}/archive`)}>Archive<//>`}</td></tr>`} />
    ${next && html`<${Do} run=${async () => { const p = await api('GET', `/v1/sessions?limit=50&cursor=${encodeURIComponent(next)}`); setPages([...pages, p]); }}>More<//>`}`}<//><//>`;
}

function New() {
  const setup = useLoaded(may('config:read') ? '/api/setup' : null, []);
  const [folder, setFolder] = useState('');
  const [title, setTitle] = useState('');
  const [system, setSystem] = useState('');
  const [error, setError] = useState(/** @type {any} */ (null));
  const begin = async () => {
    setError(null);
    // Who is quick clicks before it is known where yaya works.
    const at = folder || (setup.data ?? (may('config:read') ? await api('GET', '/api/setup') : undefined))?.workspace || '';
    const s = await api('POST', '/v1/sessions', { workspace_path: at, ...(title && { title }), ...(system && { system_prompt: system }), auto_run: true });
    go('chat', s.session_id);
  };
  return html`<${View} title="New session">
    <form class="narrow" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); begin().catch(setError); }}>
      <${Field} label="Folder that it works in" hint="On the machine that yaya runs on. Its tools reach nothing else.">${(/** @type {string} */ i) => html`<input id=${i} value=${folder} placeholder=${setup.data?.workspace ?? ''} spellcheck="false" onInput=${(/** @type {any} */ e) => setFolder(e.target.value)} />`}<//>
      <${Field} label="Title" hint="Its first message if there is none.">${(/** @type {string} */ i) => html`<input id=${i} value=${title} onInput=${(/** @type {any} */ e) => setTitle(e.target.value)} />`}<//>
      <details><summary>Instructions</summary><${Field} label="What the model is told before anything else">${(/** @type {string} */ i) => html`<textarea id=${i} rows="4" value=${system} onInput=${(/** @type {any} */ e) => setSystem(e.target.value)}></textarea>`}<//></details>
      <${Problem} error=${error} />
      <div class="buttons"><button class="primary" type="submit">Begin</button></div>
    </form><//>`;
}

/** Messages that yaya has not confirmed, by session: they are sent until it has, in
 * their order, with the same id, so that it takes each once. What it refuses waits for
 * its author. @type {Map<string, {id: string, parts: any[], delivery: string, refused: any, note: string}[]>} */
const outbox = new Map();

/** @type {Set<string>} */
const flushing = new Set();

/** @param {string} session @param {() => void} onChange */
async function flush(session, onChange) {
  if (flushing.has(session)) return;
  flushing.add(session);
  const box = outbox.get(session) ?? [];
  let wait = 500;
  for (let m; (m = box.find((x) => !x.refused)); ) {
    try {
      await api('POST', `/v1/sessions/${seg(session)}/messages`, { id: m.id, role: 'user', parts: m.parts, auto_run: true, delivery: m.delivery });
      box.splice(box.indexOf(m), 1);
      wait = 500;
    } catch (e) {
      if (e instanceof ApiError && e.status !== 0 && e.status < 500 && e.status !== 429) {
        m.refused = e;
      } else {
        m.note = 'yaya cannot be reached; it is sent as soon as it can';
        onChange();
        await new Promise((ok) => setTimeout(ok, wait));
        wait = Math.min(wait * 2, 8000);
      }
    }
    onChange();
  }
  flushing.delete(session);
}

const newID = () => 'msg_' + crypto.getRandomValues(new Uint8Array(12)).reduce((s, b) => s + b.toString(16).padStart(2, '0'), '');

/** @param {{id: string}} p */
function Chat({ id }) {
  const [, draw] = useReducer((/** @type {number} */ n) => n + 1, 0);
  const session = useRef(/** @type {Session | null} */ (null));
  // A sub-agent is no session of /v1: it can be watched, and works for its parent.
  const parent = id.includes('::agent::') ? id.slice(0, id.lastIndexOf('::agent::')) : '';
  const info = useLoaded(parent ? null : `/v1/sessions/${seg(id)}`, ['sessions']);
  const all = useLoaded('/api/approvals', ['approvals']);
  const [details, setDetails] = useState(false);
  const link = page.link.use();
  useEffect(() => {
    const s = (session.current = new Session(id, () => draw(0)));
    draw(0);
    return () => s.close();
  }, [id]);
  const s = session.current;
  const box = outbox.get(id) ?? [];
  // What its sub-agents ask is asked here, too.
  const mine = (all.data ?? []).filter((/** @type {any} */ a) => a.session_id === id || a.session_id.startsWith(id + '::agent::'));
  const state = mine.length ? 'asks you something' : s?.running ? 'is working' : 'is idle';
  const title = info.data?.title || id;
  /** @type {any[]} */
  const items = s ? [...s.items.list, ...box.filter((m) => !s.items.clients.has(m.id)).map((m) => ({ key: m.id, kind: 'user', text: m.parts.map((p) => p.text ?? '').join('\n'), pending: m.note || 'Sending …', refused: m.refused, again: () => { m.refused = null; draw(0); void flush(id, () => draw(0)); }, discard: () => { box.splice(box.indexOf(m), 1); draw(0); } }))] : [];
  const live = s?.items.unsaid(s.text);
  if (live) items.push({ key: 'live' + s?.stream, kind: 'assistant', text: live, live: true });
  return html`<div class="chat">
    <header class="view"><h1><${Name} text=${title} max=${80} /></h1><div class="actions">
      <span class="badge ${mine.length || s?.running ? 'busy' : ''}" role="status">${state}</span>
      ${s?.running && !parent && may('sessions:write') && html`<${Do} kind="small" run=${() => api('POST', `/v1/sessions/${seg(id)}/cancel`)}>Stop<//>`}
      ${parent && html`<a href=${href('chat', parent)}>works for <${Name} text=${parent} max=${40} /></a>`}
      ${!parent && html`<button type="button" class="small" aria-expanded=${details} onClick=${() => setDetails(!details)}>Details</button>`}</div></header>
    ${details && html`<${Details} id=${id} info=${info} />`}
    <${Problem} error=${s?.problem || info.error} />
    <${Virtual} label="Conversation" items=${items} said=${box.at(-1)?.id} onTop=${s?.ready ? () => void s.older() : undefined}
      row=${(/** @type {any} */ i) => html`<${Row} item=${i} id=${id} version=${i.kind === 'tool' ? `${i.result ? 1 : 0}${i.progress?.progress ?? ''}` : ''} />`}
      empty=${html`<p class="empty">${s?.ready ? 'Nothing was said yet.' : link.state === 'open' ? 'Loading …' : 'Connecting …'}</p>`} />
    ${grouped(mine).map(([key, g]) => html`<${Question} key=${key} asks=${g} session=${g[0].session_id !== id} among=${around(mine)} />`)}
    ${s && s.queue.length > 0 && html`<section class="queue" aria-label="Queue"><h2>Waits for the turn to end</h2><ol>${s.queue.map((q) => html`<li key=${q.id}><${Name} text=${q.text} max=${120} /> <${Do} kind="small" label="Take it back" run=${() => api('PUT', `/v1/sessions/${seg(id)}/queue`, { message_ids: s.queue.map((x) => x.id).filter((x) => x !== q.id) })}>✕<//></li>`)}</ol></section>`}
    ${!parent && may('sessions:write') && html`<${Composer} id=${id} running=${Boolean(s?.running)} retry=${['failed', 'canceled'].includes(info.data?.status) && info.data?.last_turn_id} closed=${info.data?.status === 'completed'} draw=${() => draw(0)} />`}
  </div>`;
}

/** @param {{id: string, info: any}} p */
function Details({ id, info }) {
  const d = info.data ?? {};
  return html`<section class="details" aria-label="Details"><dl>
    <dt>Id</dt><dd><code>${plain(id)}</code></dd><dt>Folder</dt><dd><code>${plain(d.workspace_path)}</code></dd>
    <dt>Strategy</dt><dd>${plain(d.strategy || 'default')}</dd><dt>Begun</dt><dd><${Time} at=${d.created_at} /></dd>
    ${d.parent_id && html`<dt>From</dt><dd><a href=${href('chat', d.parent_id)}>${plain(d.parent_id)}</a></dd>`}
    ${d.usage && html`<dt>Used</dt><dd>${d.usage.input_tokens ?? d.usage.input ?? 0} tokens in, ${d.usage.output_tokens ?? d.usage.output ?? 0} out</dd>`}</dl>
    ${may('sessions:write') && html`<div class="buttons">
      <${Do} kind="small" run=${async () => { const f = await api('POST', `/v1/sessions/${seg(id)}/fork`); go('chat', f.id); }}>Fork<//>
      <${Confirm} kind="small" yes="Begin anew" ask="The conversation begins anew; what was said is kept in the archive." run=${() => api('POST', `/v1/sessions/${seg(id)}/reset`)}>Begin anew<//>
      <${Confirm} kind="small" yes="Close" ask="The session takes no more messages; it can be forked." run=${() => api('POST', `/v1/sessions/${seg(id)}/close`)}>Close<//>
      <${Do} kind="small" run=${() => download(`/v1/sessions/${seg(id)}/export`, `${id}.jsonl`)}>Export<//></div>`}
  </section>`;
}

/** Saves what a request answers as a file. @param {string} path @param {string} name */
async function download(path, name) {
  const url = URL.createObjectURL(await (await request('GET', path)).blob());
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const LONG = 64 * 1024; // of a message that is shown cut

/** @param {{item: any, id: string, version: string}} p */
function Row({ item, id }) {
  switch (item.kind) {
    case 'user': return html`<article class="msg user" aria-label="You"><header>You <${Time} at=${item.ts} /></header><div class="said">${item.text.length > LONG ? html`<${Pre} text=${prose(item.text)} />` : prose(item.text)}</div>
      ${(item.attachments ?? []).map((/** @type {any} */ a) => html`<${Do} kind="link" run=${() => download(`/v1/sessions/${seg(id)}/${a.ref.split('/').map(seg).join('/')}`, plain(a.name || a.ref))}>📎 <${Name} text=${a.name || a.ref} /><//>`)}
      ${item.refused ? html`<${Problem} error=${item.refused} />` : item.pending && html`<p class="muted" role="status">${item.pending}</p>`}
      ${item.refused && html`<div class="buttons"><button type="button" class="small" onClick=${item.discard}>Discard</button><button type="button" class="small" onClick=${item.again}>Send again</button></div>`}</article>`;
    case 'assistant': return html`<article class="msg assistant ${item.live ? 'live' : ''}" aria-label="yaya"><header>yaya <${Time} at=${item.ts} /></header><${Markdown} text=${item.text} /></article>`;
    case 'tool': return html`<${Tool} item=${item} id=${id} />`;
    default: return html`<p class="note ${item.tone}">${prose(item.text)} <${Time} at=${item.ts} /></p>`;
  }
}

/** @param {{item: any, id: string}} p */
function Tool({ item, id }) {
  const r = item.result;
  const env = r?.envelope;
  const state = !r ? 'running' : r.ok ? 'ok' : 'failed';
  const brief = env?.brief || r?.error || (item.progress ? `${item.progress.message ?? ''} ${item.progress.progress}${item.progress.total ? ` of ${item.progress.total}` : ''}` : '');
  return html`<details class="tool"><summary><${Badge} state=${state} /> <code><${Name} text=${item.call.name} max=${64} /></code> <span class="muted"><${Name} text=${brief} max=${100} /></span></summary>
    <h3>Arguments</h3><${Pre} text=${pretty(item.call.args)} label="Arguments" />
    ${r && html`<h3>Result</h3>${env ? html`<${Blocks} envelope=${env} />` : html`<${Pre} text=${prose(r.error ?? (r.ok ? 'done' : 'failed'))} label="Result" />`}`}
    ${(env?.artifacts ?? []).map((/** @type {any} */ a) => html`<${Artifact} id=${id} artifact=${a} />`)}</details>`;
}

/** The blocks of a tool's result (Y-122): somebody else's text, shown as text.
 * @param {{envelope: any}} p */
export function Blocks({ envelope }) {
  return html`${(envelope.display ?? []).map((/** @type {any} */ b) => (b.kind === 'markdown' ? html`<${Markdown} text=${String(b.markdown ?? '')} />` : b.kind === 'json' ? html`<${Pre} text=${pretty(b.data)} label="Result" />` : html`<${Pre} text=${prose(b.text)} label="Result" diff=${/^(diff --git|--- |\+\+\+ |@@ )/m.test(String(b.text ?? '').slice(0, 2000))} />`))}
    ${envelope.detail && html`<${Pre} text=${pretty(envelope.detail)} label="Details" />`}`;
}

/** @param {{id: string, artifact: any}} p */
function Artifact({ id, artifact }) {
  const [text, setText] = useState('');
  const path = `/v1/sessions/${seg(id)}/artifacts/${seg(artifact.id)}`;
  const readable = /^text\/|json|xml|diff|patch/.test(artifact.mime_type ?? '') && artifact.size <= 4 << 20;
  return html`<p class="artifact">📄 <${Name} text=${artifact.id} max=${40} /> <span class="muted"><${Name} text=${artifact.mime_type} max=${40} />, ${size(artifact.size)}</span>
    ${readable && !text && html` <${Do} kind="small" run=${async () => setText(prose(await (await request('GET', path)).text()))}>Show<//>`}
    <${Do} kind="small" run=${() => download(path, plain(artifact.id))}>Save<//></p>
    ${text && html`<${Pre} text=${text} label="Artifact" diff=${/diff|patch/.test(artifact.mime_type) || /^(diff --git|--- )/m.test(text.slice(0, 2000))} />`}`;
}

/** @param {{id: string, running: boolean, retry: string | false, closed: boolean, draw: () => void}} p */
function Composer({ id, running, retry, closed, draw }) {
  const [text, setText] = useState('');
  const [files, setFiles] = useState(/** @type {any[]} */ ([]));
  const [error, setError] = useState(/** @type {any} */ (null));
  const input = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const file = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => input.current?.focus(), []);
  if (closed) return html`<p class="empty">The session is closed. Fork it to go on.</p>`;
  /** @param {string} delivery */
  const send = (delivery) => {
    if (!text.trim() && !files.length) return;
    const box = outbox.get(id) ?? [];
    outbox.set(id, box);
    box.push({ id: newID(), parts: [...(text.trim() ? [{ type: 'text', text }] : []), ...files.map((f) => ({ type: f.mime_type.startsWith('image/') ? 'image' : 'file', ref: f.ref, mime_type: f.mime_type, name: f.name }))], delivery, refused: null, note: '' });
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
  return html`<form class="composer" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); send('queue'); }}>
    ${files.map((f) => html`<span class="chip">📎 <${Name} text=${f.name || f.ref} max=${40} /> <button type="button" class="icon" aria-label="Take it off" onClick=${() => setFiles(files.filter((x) => x !== f))}>✕</button></span>`)}
    <${Problem} error=${error} />
    <textarea ref=${input} aria-label="Message" rows="3" value=${text} maxlength="900000" placeholder=${running ? 'Enter queues, Ctrl+Enter steers, Esc stops' : 'Enter sends, Shift+Enter breaks the line'}
      onInput=${(/** @type {any} */ e) => setText(e.target.value)} onPaste=${(/** @type {ClipboardEvent} */ e) => { if (e.clipboardData?.files.length) { e.preventDefault(); void attach(e.clipboardData.files); } }}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => {
        if (e.isComposing) return;
        if (e.key === 'Enter' && !e.shiftKey) { e.preventDefault(); send(running && (e.ctrlKey || e.metaKey) ? 'steer' : 'queue'); }
        if (e.key === 'Escape' && running) { e.preventDefault(); void stop(); }
      }}></textarea>
    <div class="buttons">
      <input ref=${file} type="file" multiple hidden onChange=${(/** @type {any} */ e) => { void attach(e.target.files); }} />
      <button type="button" onClick=${() => file.current?.click()}>Attach</button>
      ${retry && !running && html`<${Do} run=${() => api('POST', `/v1/sessions/${seg(id)}/turns/${seg(retry)}/retry`)}>Run it again<//>`}
      ${running && html`<button type="button" onClick=${() => send('steer')}>Steer</button>`}
      <button class="primary" type="submit">${running ? 'Queue' : 'Send'}</button></div>
  </form>`;
}
