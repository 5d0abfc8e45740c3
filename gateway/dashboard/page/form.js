// Builds a form from a JSON schema, and JSON from the filled form.
// @ts-check
import { oneLine, plain } from './text.js';
import { Field, html, Name, typed } from './ui.js';
import { t } from './words.js';

/** @typedef {'text' | 'long' | 'number' | 'integer' | 'boolean' | 'enum' | 'json'} Kind */
/** A field of a form.
 * @typedef {{name: string, schema: Schema, required: boolean, kind: Kind}} FormField */

/** Returns the fields of a schema; null if a form cannot express the schema.
 * @param {unknown} of @returns {FormField[] | null} */
export function formOf(of) {
  const schema = /** @type {Schema | null | undefined} */ (of); // what it has is checked
  if (!schema || typeof schema !== 'object' || schema.type !== 'object') return null;
  for (const k of ['oneOf', 'anyOf', 'allOf', '$ref', 'if', 'patternProperties'])
    if (Object.hasOwn(schema, k)) return null;
  const props = schema.properties ?? {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.keys(props).map((name) => {
    const s = props[name] ?? {};
    /** @type {Kind} */
    let kind = 'json';
    if (
      Array.isArray(s.enum) &&
      s.enum.every((v) => ['string', 'number', 'boolean'].includes(typeof v))
    )
      kind = 'enum';
    else if (s.type === 'string')
      kind =
        (s.maxLength ?? 0) > 200 || /content|text|body|prompt|patch/i.test(name) ? 'long' : 'text';
    else if (s.type === 'number' || s.type === 'integer' || s.type === 'boolean') kind = s.type;
    return { name, schema: s, required: required.includes(name), kind };
  });
}

/** Returns the filled form as JSON. It writes members one by one, so that a member stays a plain
 * member whatever its name (UI-11).
 * @param {FormField[]} fields @param {Map<string, string | boolean>} values @returns {string} */
export function argumentsOf(fields, values) {
  const out = [];
  for (const f of fields) {
    const v = values.get(f.name);
    if (v === undefined || v === '') {
      if (f.required && f.kind === 'boolean') out.push(`${JSON.stringify(f.name)}:false`);
      else if (f.required && (f.kind === 'text' || f.kind === 'long'))
        out.push(`${JSON.stringify(f.name)}:""`);
      else if (f.required) throw new Error(t('{name} is needed', { name: f.name }));
      continue;
    }
    let json;
    switch (f.kind) {
      case 'boolean':
        json = String(Boolean(v));
        break;
      case 'number':
      case 'integer':
        if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(String(v).trim()))
          throw new Error(t('{name} is not a number', { name: f.name }));
        json = String(v).trim();
        break;
      case 'enum':
        json = JSON.stringify(f.schema.enum?.[Number(v)]);
        break;
      case 'json':
        try {
          JSON.parse(String(v));
        } catch {
          throw new Error(t('{name} is not JSON', { name: f.name }));
        }
        json = String(v);
        break;
      default:
        json = JSON.stringify(String(v));
    }
    out.push(`${JSON.stringify(f.name)}:${json}`);
  }
  return `{${out.join(',')}}`;
}

/** @param {{field: FormField, value: string | boolean | undefined,
 * set: (v: string | boolean) => void}} p */
export function Input({ field: f, value, set }) {
  const label = html`
    <${Name} text=${f.schema.title || f.name} max=${80} />
    ${f.required ? html` <span aria-label=${t('needed')}>*</span>` : ''}
  `;
  const hint = html`<${Name} text=${oneLine(f.schema.description)} max=${300} />`;
  const on = typed(set);
  return html`<${Field} label=${label} hint=${f.schema.description && hint}>
    ${(/** @type {string} */ id) => {
      switch (f.kind) {
        case 'boolean':
          return html`<input
            id=${id}
            type="checkbox"
            checked=${Boolean(value)}
            onChange=${(/** @type {Event & {target: HTMLInputElement}} */ e) =>
              set(e.target.checked)} />`;
        case 'enum':
          return html`<select id=${id} value=${value ?? ''} onChange=${on}>
            <option value="">–</option>
            ${f.schema.enum?.map((v, i) => html`<option value=${String(i)}>${plain(v)}</option>`)}
          </select>`;
        case 'long':
          return html`<textarea id=${id} rows="4" value=${value ?? ''} onInput=${on}></textarea>`;
        case 'json':
          return html`<textarea
            id=${id}
            class="code"
            rows="3"
            placeholder="JSON"
            spellcheck="false"
            value=${value ?? ''}
            onInput=${on}></textarea>`;
        default:
          return html`<input
            id=${id}
            inputmode=${f.kind === 'text' ? undefined : 'decimal'}
            value=${value ?? ''}
            placeholder=${f.schema.default === undefined
              ? ''
              : plain(JSON.stringify(f.schema.default))}
            onInput=${on} />`;
      }
    }}
  <//>`;
}
