// The dialog that adds a server of the catalogue: which way to use it, what it asks for.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { Agree } from './agree.js';
import { api, seg } from './api.js';
import { Dialog } from './dialog.js';
import { allow, Callers, everybody, ruled } from './callers.js';
import { go } from './state.js';
import { plain } from './text.js';
import { Do, Field, html, Name, Problem, typed } from './ui.js';
import { t } from './words.js';

/** @typedef {Admin<'CatalogServer'>} Server */
/** @typedef {Admin<'CatalogInput'>} Input */

/** @param {{entry: Admin<'CatalogEntry'>, close: () => void}} p */
export function Install({ entry, close }) {
  const [s, setServer] = useState(/** @type {Server | null} */ (null));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [option, setOption] = useState('');
  const [name, setName] = useState('');
  const [profile, setProfile] = useState('');
  const [hosts, setHosts] = useState('');
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [callers, setCallers] = useState(everybody);
  const [change, setChange] = useState(/** @type {Admin<'Change'> | null} */ (null));
  const load = async (/** @type {string} */ id) => {
    const query = new URLSearchParams({
      registry: entry.registry,
      version: entry.version,
    });
    if (id) query.set('option', id);
    return /** @type {Promise<Server>} */ (
      api('GET', `/api/catalogue/${seg(entry.name)}?${query.toString()}`)
    );
  };
  useEffect(() => {
    let gone = false;
    load('').then(
      (x) => {
        if (gone) return;
        setServer(x);
        setOption(x.chosen ?? '');
        setName(x.short_name);
      },
      (e) => gone || setError(e),
    );
    return () => void (gone = true);
  }, []);
  const o = s?.options.find((x) => x.id === option);
  const set = (/** @type {string} */ key) => (/** @type {string} */ v) =>
    setValues({ ...values, [key]: v });
  const review = async () => {
    if (!s || !o) return;
    const inputs = (o.inputs ?? []).flatMap((i) =>
      (i.repeated ? (values[i.name] ?? '').split('\n') : [values[i.name] ?? ''])
        .map((v) => v.trim())
        .filter(Boolean)
        .map((value) => ({ name: i.name, value })),
    );
    const more = hosts.split(/[\s,]+/).filter(Boolean);
    setChange(
      await api('POST', `/api/catalogue/${seg(s.name)}/install`, {
        registry: s.registry,
        version: s.version,
        digest: s.digest,
        option: o.id,
        as: name.trim(),
        ...(inputs.length && { inputs }),
        ...(profile && { profile }),
        ...(more.length && { hosts: more }),
      }),
    );
  };
  const lacks = (o?.inputs ?? []).some((i) => i.required && !i.default && !values[i.name]?.trim());
  if (change)
    return html`<${Agree}
      changes=${[change]}
      added=${ruled(callers)}
      first=${() => allow(name.trim(), callers)}
      cancel=${() => setChange(null)}
      done=${() => {
        close();
        go('servers', name.trim());
      }} />`;
  return html`<${Dialog}
    wide
    title=${t('Add {name}', { name: plain(entry.title || entry.name) })}
    onClose=${close}>
    <${Problem} error=${error} />
    <p class="muted">
      <${Name} text=${entry.name} max=${200} /> ${entry.version} · ${entry.registry}
    </p>
    ${s?.stale &&
    html`<${Problem} error=${t('The registry gave no usable answer: this may be old.')} />`}
    ${entry.deprecated &&
    html`<p class="bad">
      ${t('Its publisher no longer maintains it.')}
      <${Name} text=${entry.message ?? ''} max=${300} />
    </p>`}
    ${s?.refused && html`<${Problem} error=${plain(s.refused)} />`}
    ${s && s.options.length > 1 && html`<${Ways} s=${s} option=${option} choose=${setOption} />`}
    ${o?.needs &&
    html`<p class="warn">
      ${t('{runner} is not on this machine. It comes with {needs}: {install}', {
        runner: o.runner ?? '',
        needs: o.needs,
        install: o.install ?? '',
      })}
    </p>`}
    ${o?.fetch &&
    html`
      <p>${t('Its bundle says what it asks for.')}</p>
      <${Do} run=${async () => setServer(await load(o.id))}>${t('Download the bundle')}<//
        >
    `}
    ${o &&
    !o.fetch &&
    html`
      <${Field} label=${t('Name')} hint=${t('Its tools are called name__tool.')}>
        ${(/** @type {string} */ id) =>
          html`<input
            id=${id}
            value=${name}
            spellcheck="false"
            maxlength="128"
            onInput=${typed(setName)} />`}
      <//>
      ${(o.inputs ?? []).map(
        (i) =>
          html`<${Value}
            key=${`${o.id} ${i.name}`}
            i=${i}
            value=${values[i.name] ?? ''}
            set=${set(i.name)} />`,
      )}
      ${o.kind !== 'remote' &&
      o.kind !== 'oci' &&
      html`
        <${Field}
          label=${t('Sandbox')}
          hint=${t('Bounded: it reaches and reads what the next step shows, and no more.')}>
          ${(/** @type {string} */ id) =>
            html`<select id=${id} value=${profile} onChange=${typed(setProfile)}>
              <option value="">${t('Bounded')}</option>
              <option value="guarded">${t('All of your files and hosts')}</option>
            </select>`}
        <//>
        ${!profile &&
        html`<${Field}
          label=${t('Hosts')}
          hint=${t('Further hosts that it needs, such as api.example.com')}>
          ${(/** @type {string} */ id) =>
            html`<input id=${id} value=${hosts} spellcheck="false" onInput=${typed(setHosts)} />`}
        <//>`}
      `}
      <${Callers} now=${callers} set=${setCallers} />
    `}
    <div class="buttons">
      <button type="button" onClick=${close}>${t('Cancel')}</button>
      <${Do}
        kind="primary"
        disabled=${!o || o.fetch || Boolean(o.refused) || lacks || !name.trim()}
        run=${review}>
        ${t('Review')}
      <//>
    </div>
  <//>`;
}

/** The ways to use a server. @param {{s: Server, option: string, choose: (id: string) => void}} p */
const Ways = ({ s, option, choose }) =>
  html`<fieldset class="texts">
    <legend>${t('Use')}</legend>
    ${s.options.map(
      (o) =>
        html`<label class="flex" key=${o.id}>
          <input
            type="radio"
            name="way"
            checked=${o.id === option}
            disabled=${Boolean(o.refused)}
            onChange=${() => choose(o.id)} />
          <span class="two">
            <span>
              ${o.id} <code><${Name} text=${o.identifier} max=${120} /></code
            >
            </span>
            ${o.refused &&
            html`<small class="faint"><${Name} text=${o.refused} max=${300} /></small>`}
          </span>
        </label>`,
    )}
  </fieldset>`;

/** A field of an input. A secret is not shown, and goes to the store of secrets.
 * @param {{i: Input, value: string, set: (v: string) => void}} p */
function Value({ i, value, set }) {
  const about = plain(i.description ?? '');
  const hint = [
    about && !/[.!?。]$/.test(about) ? `${about}.` : about,
    i.secret ? t('Secret: kept in the store of secrets.') : '',
    i.repeated ? t('One a line.') : '',
  ]
    .filter(Boolean)
    .join(' ');
  const label = i.required ? plain(i.name) : t('{name} (optional)', { name: plain(i.name) });
  const shown = plain(i.default || i.placeholder || '');
  return html`<${Field} label=${label} hint=${hint}>
    ${(/** @type {string} */ id) =>
      i.choices?.length
        ? html`<select id=${id} value=${value} onChange=${typed(set)}>
            <option value="">${shown}</option>
            ${i.choices.map((c) => html`<option key=${c} value=${c}>${plain(c)}</option>`)}
          </select>`
        : i.repeated
          ? html`<textarea
              id=${id}
              rows="3"
              class="code"
              spellcheck="false"
              value=${value}
              onInput=${typed(set)}></textarea>`
          : html`<input
              id=${id}
              type=${i.secret ? 'password' : 'text'}
              autocomplete="off"
              spellcheck="false"
              placeholder=${shown}
              value=${value}
              onInput=${typed(set)} />`}
  <//>`;
}
