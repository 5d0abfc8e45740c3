// The audit: what was changed, by whom.
// @ts-check
import { useState } from './vendor/hooks.js';
import { useLoaded } from './state.js';
import { Field, html, Name, Of, Table, Time, View } from './ui.js';

export default function Audit() {
  const [q, setQ] = useState({ event: '', actor: '', target: '', limit: 100 });
  const [typed, setTyped] = useState({ event: '', actor: '', target: '' });
  const params = new URLSearchParams({ limit: String(q.limit) });
  if (q.event) params.set('event', q.event);
  if (q.actor) params.set('actor', q.actor);
  if (q.target) params.set('target', q.target);
  const rows = useLoaded('/api/audit?' + params, ['audit']);
  const input = (/** @type {'event' | 'actor' | 'target'} */ k, /** @type {string} */ label, /** @type {string} */ hint) => html`<${Field} label=${label} hint=${hint}>${(/** @type {string} */ id) => html`<input id=${id} value=${typed[k]} spellcheck="false" onInput=${(/** @type {any} */ e) => setTyped({ ...typed, [k]: e.target.value })} />`}<//>`;
  return html`<${View} title="Audit" lead="Every change, in the order in which it was made. Entries are chained: one cannot be taken out or altered unseen.">
    <form class="filters" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); setQ({ ...typed, limit: 100 }); }}>${input('event', 'What', 'as in device_*')}${input('actor', 'Who', '')}${input('target', 'To what', '')}<button type="submit">Find</button></form>
    <${Of} of=${rows}>${(/** @type {any[]} */ d) => html`<${Table} label="Audit" head=${['#', 'When', 'Who', 'What', 'To what', 'Details']} rows=${[...d].reverse()} empty="Nothing is like that." row=${(/** @type {any} */ r) => html`<tr key=${r.raft_log_index}>
      <td>${r.raft_log_index}</td><td><${Time} at=${r.ts} /></td><td><${Name} text=${r.actor} max=${40} /></td><td><code><${Name} text=${r.event} max=${40} /></code></td><td><${Name} text=${r.target} max=${60} /></td><td><small><${Name} text=${JSON.stringify(r.payload ?? {})} max=${200} /></small></td></tr>`} />
      ${d.length >= q.limit && q.limit < 10000 && html`<button type="button" onClick=${() => setQ({ ...q, limit: Math.min(q.limit * 4, 10000) })}>More</button>`}`}<//><//>`;
}
