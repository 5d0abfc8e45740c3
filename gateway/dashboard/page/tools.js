// The tools that are offered, and a form to try one, made from its schema.
// @ts-check
import { useMemo, useState } from './vendor/hooks.js';
import { api, request, seg } from './api.js';
import { Markdown } from './markdown.js';
import { Blocks } from './sessions.js';
import { href, may, useLoaded } from './state.js';
import { Badge, Do, Field, html, ms, Name, Of, plain, Pre, pretty, Table, View } from './ui.js';

/** @param {{rest: string[]}} p */
export default function Tools({ rest: [name, server] }) {
  const tools = useLoaded('/api/tools', ['tools']);
  const [filter, setFilter] = useState('');
  if (name) {
    const t = tools.data?.find((/** @type {any} */ x) => x.name === name);
    if (tools.data && !t) return html`<${View} title=${name}><p class="empty">There is no such tool now. <a href=${href('tools')}>All tools</a></p><//>`;
    return html`<${Of} of=${tools}>${() => html`<${One} key=${name} tool=${t} />`}<//>`;
  }
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (tools.data ?? []).filter((/** @type {any} */ t) => (!server || t.provider === server) && words.every((w) => `${t.name} ${t.title ?? ''} ${t.description}`.toLowerCase().includes(w)));
  return html`<${View} title=${server ? `Tools of ${server}` : 'Tools'}>
    <${Field} label="Find">${(/** @type {string} */ id) => html`<input id=${id} type="search" value=${filter} onInput=${(/** @type {any} */ e) => setFilter(e.target.value)} />`}<//>
    <${Of} of=${tools}>${() => html`<p class="muted" role="status">${shown.length} tools</p><${Table} label="Tools" head=${['Tool', 'Server', 'What it says of itself', 'Kind']} rows=${shown.slice(0, 500)} empty="No tool is like that." row=${(/** @type {any} */ t) => html`<tr key=${t.name}>
      <td><a href=${href('tools', t.name)}><code><${Name} text=${t.name} max=${64} /></code></a></td><td>${t.provider ? html`<a href=${href('servers', t.provider)}><${Name} text=${t.provider} max=${32} /></a>` : html`<span class="muted">yaya</span>`}</td>
      <td><${Name} text=${t.title || t.description} max=${140} /></td><td><span class="badge">${plain(t.kind)}</span></td></tr>`} />`}<//><//>`;
}

/** A field of a form. @typedef {{name: string, schema: any, required: boolean, kind: 'text' | 'long' | 'number' | 'integer' | 'boolean' | 'enum' | 'json'}} FormField */

/** The fields of a schema; null if it is of a kind that a form cannot say.
 * @param {any} schema @returns {FormField[] | null} */
export function formOf(schema) {
  if (!schema || typeof schema !== 'object' || schema.type !== 'object') return null;
  for (const k of ['oneOf', 'anyOf', 'allOf', '$ref', 'if', 'patternProperties']) if (Object.hasOwn(schema, k)) return null;
  const props = schema.properties ?? {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.keys(props).map((name) => {
    const s = props[name] ?? {};
    /** @type {FormField['kind']} */
    let kind = 'json';
    if (Array.isArray(s.enum) && s.enum.every((/** @type {any} */ v) => ['string', 'number', 'boolean'].includes(typeof v))) kind = 'enum';
    else if (s.type === 'string') kind = s.maxLength > 200 || /content|text|body|prompt|patch/i.test(name) ? 'long' : 'text';
    else if (s.type === 'number' || s.type === 'integer' || s.type === 'boolean') kind = s.type;
    return { name, schema: s, required: required.includes(name), kind };
  });
}

/** What was filled in as JSON. Members are written one by one, so that none of them,
 * whatever its name, is anything but a member (UI-11).
 * @param {FormField[]} fields @param {Map<string, string | boolean>} values @returns {string} */
export function argumentsOf(fields, values) {
  const out = [];
  for (const f of fields) {
    const v = values.get(f.name);
    if (v === undefined || v === '') {
      if (f.required && f.kind === 'boolean') out.push(`${JSON.stringify(f.name)}:false`);
      else if (f.required && (f.kind === 'text' || f.kind === 'long')) out.push(`${JSON.stringify(f.name)}:""`);
      else if (f.required) throw new Error(`${f.name} is needed`);
      continue;
    }
    let json;
    switch (f.kind) {
      case 'boolean': json = String(Boolean(v)); break;
      case 'number': case 'integer':
        if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(String(v).trim())) throw new Error(`${f.name} is no number`);
        json = String(v).trim();
        break;
      case 'enum': json = JSON.stringify(f.schema.enum[Number(v)]); break;
      case 'json':
        try {
          JSON.parse(String(v));
        } catch {
          throw new Error(`${f.name} is no JSON`);
        }
        json = String(v);
        break;
      default: json = JSON.stringify(String(v));
    }
    out.push(`${JSON.stringify(f.name)}:${json}`);
  }
  return `{${out.join(',')}}`;
}

/** @param {{tool: any}} p */
function One({ tool: t }) {
  const fields = useMemo(() => formOf(t.input_schema), [t]);
  const [values, setValues] = useState(/** @type {Map<string, string | boolean>} */ (new Map()));
  const [raw, setRaw] = useState(fields === null);
  const [text, setText] = useState('{}');
  const [result, setResult] = useState(/** @type {any} */ (null));
  const set = (/** @type {string} */ name, /** @type {string | boolean} */ v) => setValues(new Map(values).set(name, v));
  const toRaw = () => {
    try {
      setText(JSON.stringify(JSON.parse(argumentsOf(fields ?? [], values)), null, 2));
    } catch {
      // it is not whole yet
    }
    setRaw(true);
  };
  const call = async () => {
    setResult(null);
    const json = raw ? text : argumentsOf(fields ?? [], values);
    JSON.parse(json);
    // As text, so that what was filled in is what is sent: numbers keep their digits.
    const r = await request('POST', `/api/tools/${seg(t.name)}/call`, { text: `{"arguments":${json}}` });
    setResult(await r.json());
  };
  const allowed = may('tools:call') && may('approvals:answer') && !t.for_agents;
  return html`<${View} title=${t.name}>
    <p>${t.provider ? html`Of <a href=${href('servers', t.provider)}><${Name} text=${t.provider} /></a>, where it is called <code><${Name} text=${t.tool} /></code>.` : 'A tool of yaya’s own.'} <span class="badge">${plain(t.kind)}</span>${t.requires_approval && html` <span class="badge">asks first</span>`}</p>
    ${t.title && html`<p><b><${Name} text=${t.title} /></b></p>`}
    <div class="quoted"><${Markdown} text=${t.description} /></div>
    <details><summary>Schema</summary><${Pre} text=${pretty(t.input_schema)} label="Schema of its arguments" /></details>
    <h2>Try it</h2>
    ${t.for_agents ? html`<p class="empty">It works in a conversation alone.</p>` : !allowed ? html`<p class="empty">This device may not call tools: it needs tools:call and approvals:answer.</p>` : html`
    <form class="narrow" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
      ${raw ? html`<${Field} label="Arguments (JSON)">${(/** @type {string} */ id) => html`<textarea id=${id} class="code" rows="8" spellcheck="false" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)}></textarea>`}<//>`
        : fields?.length === 0 ? html`<p class="muted">It takes no arguments.</p>` : fields?.map((f) => html`<${Input} key=${f.name} field=${f} value=${values.get(f.name)} set=${(/** @type {any} */ v) => set(f.name, v)} />`)}
      <div class="buttons">${fields && html`<button type="button" onClick=${() => (raw ? setRaw(false) : toRaw())}>${raw ? 'As a form' : 'As JSON'}</button>`}<${Do} kind="primary" run=${call}>Call it<//></div>
    </form>`}
    ${result && html`<section aria-label="Result"><h2>Result</h2><p><${Badge} state=${result.ok ? 'ok' : 'failed'} /> ${result.kind && html`<span class="badge">${plain(result.kind)}</span>`} ${!result.ok && html`<${Name} text=${result.brief} max=${300} /> `}<span class="muted">${ms(result.took_ms)}</span></p>
      <${Blocks} envelope=${result} />${result.structured && html`<h3>Structured</h3><${Pre} text=${pretty(result.structured)} label="Structured result" />`}
      ${(result.artifacts ?? []).map((/** @type {any} */ a) => html`<${Rest} artifact=${a} />`)}</section>`}<//>`;
}

/** What did not fit into an answer. @param {{artifact: any}} p */
function Rest({ artifact }) {
  const [text, setText] = useState('');
  const more = async () => {
    const r = await api('GET', `/api/tools/artifacts/${seg(artifact.id)}`);
    setText(new TextDecoder().decode(Uint8Array.from(atob(r.data), (c) => c.charCodeAt(0))));
  };
  return html`<p class="artifact">📄 <code>${plain(artifact.id)}</code> <${Do} kind="small" run=${more}>Show its beginning<//></p>${text && html`<${Pre} text=${plain(text, true)} label="Artifact" />`}`;
}

/** @param {{field: FormField, value: any, set: (v: any) => void}} p */
function Input({ field: f, value, set }) {
  const label = html`<${Name} text=${f.schema.title || f.name} max=${80} />${f.required ? html` <span aria-label="needed">*</span>` : ''}`;
  const hint = html`<${Name} text=${f.schema.description ?? ''} max=${300} />`;
  const on = (/** @type {any} */ e) => set(e.target.value);
  return html`<${Field} label=${label} hint=${f.schema.description && hint}>${(/** @type {string} */ id) => {
    switch (f.kind) {
      case 'boolean': return html`<input id=${id} type="checkbox" checked=${Boolean(value)} onChange=${(/** @type {any} */ e) => set(e.target.checked)} />`;
      case 'enum': return html`<select id=${id} value=${value ?? ''} onChange=${on}><option value="">–</option>${f.schema.enum.map((/** @type {any} */ v, /** @type {number} */ i) => html`<option value=${String(i)}>${plain(v)}</option>`)}</select>`;
      case 'long': return html`<textarea id=${id} rows="4" value=${value ?? ''} onInput=${on}></textarea>`;
      case 'json': return html`<textarea id=${id} class="code" rows="3" placeholder="JSON" spellcheck="false" value=${value ?? ''} onInput=${on}></textarea>`;
      default: return html`<input id=${id} inputmode=${f.kind === 'text' ? undefined : 'decimal'} value=${value ?? ''} placeholder=${f.schema.default === undefined ? '' : plain(JSON.stringify(f.schema.default))} onInput=${on} />`;
    }
  }}<//>`;
}
