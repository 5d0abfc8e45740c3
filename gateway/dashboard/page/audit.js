// The audit log: who changed what.
// @ts-check
import { useState } from './vendor/hooks.js';
import { useLoaded } from './state.js';
import { Field, html, Name, Of, Table, Time, typed, View } from './ui.js';

export default function Audit() {
  const [q, setQ] = useState({ event: '', actor: '', target: '', limit: 100 });
  const [fields, setFields] = useState({ event: '', actor: '', target: '' });
  const params = new URLSearchParams({ limit: String(q.limit) });
  if (q.event) params.set('event', q.event);
  if (q.actor) params.set('actor', q.actor);
  if (q.target) params.set('target', q.target);
  const rows = useLoaded(`/api/audit?${params.toString()}`, ['audit']);
  const input = (
    /** @type {'event' | 'actor' | 'target'} */ k,
    /** @type {string} */ label,
    /** @type {string} */ hint,
  ) =>
    html`<${Field} label=${label} hint=${hint}>
      ${(/** @type {string} */ id) =>
        html`<input
          id=${id}
          value=${fields[k]}
          spellcheck="false"
          onInput=${typed((v) => setFields({ ...fields, [k]: v }))} />`}
    <//>`;
  return html`<${View}
    title="Audit"
    lead="Every change, in order. The entries form a hash chain: nobody can remove or alter one unnoticed.">
    <form
      class="filters"
      onSubmit=${(/** @type {Event} */ e) => {
        e.preventDefault();
        setQ({ ...fields, limit: 100 });
      }}>
      ${input('event', 'What', 'as in device_*')}
      ${input('actor', 'Who', '')}
      ${input('target', 'To what', '')}
      <button type="submit">Find</button>
    </form>
    <${Of} of=${rows}>
      ${(/** @type {Admin<'Audit'>[]} */ d) => html`
        <${Table}
          label="Audit"
          head=${['#', 'When', 'Who', 'What', 'To what', 'Details']}
          rows=${[...d].reverse()}
          empty="No entries match."
          row=${(/** @type {Admin<'Audit'>} */ r) => html`<tr key=${r.raft_log_index}>
            <td>${r.raft_log_index}</td>
            <td><${Time} at=${r.ts} /></td>
            <td><${Name} text=${r.actor} max=${40} /></td>
            <td><code><${Name} text=${r.event} max=${40} /></code></td>
            <td><${Name} text=${r.target} max=${60} /></td>
            <td><small><${Name} text=${JSON.stringify(r.payload ?? {})} max=${200} /></small></td>
          </tr>`} />
        ${d.length >= q.limit &&
        q.limit < 10000 &&
        html`<button
          type="button"
          onClick=${() => setQ({ ...q, limit: Math.min(q.limit * 4, 10000) })}>
          More
        </button>`}
      `}
    <//>
  <//>`;
}
