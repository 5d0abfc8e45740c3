// The offered tools, and a form to try one (form.js).
// @ts-check
import { useMemo, useState } from './vendor/hooks.js';
import { api, request, seg } from './api.js';
import { argumentsOf, formOf, Input } from './form.js';
import { Markdown } from './markdown.js';
import { Blocks } from './result.js';
import { href, may, useLoaded } from './state.js';
import { ms, plain, pretty } from './text.js';
import { Badge, Do, Field, html, Name, Of, Pre, Table, typed, View } from './ui.js';
import { count, rich, t } from './words.js';

/** @param {{rest: string[]}} p */
export default function Tools({ rest: [name, server] }) {
  const tools = useLoaded('/api/tools', ['tools']);
  const [filter, setFilter] = useState('');
  if (name) {
    const tool = tools.data?.find((x) => x.name === name);
    if (tools.data && !tool)
      return html`<${View} title=${name}>
        <p class="empty">
          ${t('This tool is not offered now.')} <a href=${href('tools')}>${t('All tools')}</a>
        </p>
      <//>`;
    return html`<${Of} of=${tools}>${() => html`<${One} key=${name} tool=${tool} />`}<//>`;
  }
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = (tools.data ?? []).filter(
    (x) =>
      (!server || x.provider === server) &&
      words.every((w) => `${x.name} ${x.title ?? ''} ${x.description}`.toLowerCase().includes(w)),
  );
  return html`<${View} title=${server ? t('Tools of {server}', { server }) : t('Tools')}>
    <${Field} label=${t('Find')}>
      ${(/** @type {string} */ id) =>
        html`<input id=${id} type="search" value=${filter} onInput=${typed(setFilter)} />`}
    <//>
    <${Of} of=${tools}>
      ${() =>
        html`
          <p class="muted" role="status">${count(shown.length, '{n} tool', '{n} tools')}</p>
          <${Table}
            label=${t('Tools')}
            head=${[t('Tool'), t('Server'), t('Description'), t('Kind')]}
            rows=${shown.slice(0, 500)}
            empty=${t('No tools match.')}
            row=${(/** @type {Admin<'Tool'>} */ x) => html`<tr key=${x.name}>
              <td>
                <a href=${href('tools', x.name)}>
                  <code><${Name} text=${x.name} max=${64} /></code>
                </a>
              </td>
              <td>
                ${x.provider
                  ? html`<a href=${href('servers', x.provider)}>
                      <${Name} text=${x.provider} max=${32} />
                    </a>`
                  : html`<span class="muted">yaya</span>`}
              </td>
              <td><${Name} text=${x.title || x.description} max=${140} /></td>
              <td><span class="badge">${plain(x.kind)}</span></td>
            </tr>`} />
        `}
    <//>
  <//>`;
}

/** @param {{tool: Admin<'Tool'>}} p */
function One({ tool }) {
  const fields = useMemo(() => formOf(tool.input_schema), [tool]);
  const [values, setValues] = useState(/** @type {Map<string, string | boolean>} */ (new Map()));
  const [raw, setRaw] = useState(fields === null);
  const [text, setText] = useState('{}');
  const [result, setResult] = useState(/** @type {Admin<'Called'> | null} */ (null));
  const set = (/** @type {string} */ name, /** @type {string | boolean} */ v) =>
    setValues(new Map(values).set(name, v));
  const toRaw = () => {
    try {
      setText(JSON.stringify(JSON.parse(argumentsOf(fields ?? [], values)), null, 2));
    } catch {
      // the JSON is incomplete
    }
    setRaw(true);
  };
  const call = async () => {
    setResult(null);
    const json = raw ? text : argumentsOf(fields ?? [], values);
    JSON.parse(json);
    // As text, so that the page sends exactly the input: numbers keep their digits.
    const r = await request('POST', `/api/tools/${seg(tool.name)}/call`, {
      text: `{"arguments":${json}}`,
    });
    setResult(await r.json());
  };
  const allowed = may('tools:call') && may('approvals:answer') && !tool.for_agents;
  return html`<${View} title=${tool.name}>
    <p>
      ${tool.provider
        ? rich('Of {server}, where it is called {tool}.', {
            server: html`<a href=${href('servers', tool.provider)}>
              <${Name} text=${tool.provider} />
            </a>`,
            tool: html`<code><${Name} text=${tool.tool} /></code>`,
          })
        : t('One of yaya’s own tools.')} <span class="badge">${plain(tool.kind)}</span>
      ${tool.requires_approval && html` <span class="badge">${t('asks first')}</span>`}
    </p>
    ${tool.title && html`<p><b><${Name} text=${tool.title} /></b></p>`}
    <div class="quoted"><${Markdown} text=${tool.description} /></div>
    <details>
      <summary>${t('Schema')}</summary>
      <${Pre} text=${pretty(tool.input_schema)} label=${t('Schema of its arguments')} />
    </details>
    <h2>${t('Try it')}</h2>
    ${tool.for_agents
      ? html`<p class="empty">${t('It works only in a conversation.')}</p>`
      : !allowed
        ? html`<p class="empty">
            ${t('This device cannot call tools: it needs tools:call and approvals:answer.')}
          </p>`
        : html`<form class="narrow" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
            ${raw
              ? html`<${Field} label=${t('Arguments (JSON)')}>
                  ${(/** @type {string} */ id) =>
                    html`<textarea
                      id=${id}
                      class="code"
                      rows="8"
                      spellcheck="false"
                      value=${text}
                      onInput=${typed(setText)}></textarea>`}
                <//>`
              : fields?.length === 0
                ? html`<p class="muted">${t('It takes no arguments.')}</p>`
                : fields?.map(
                    (f) =>
                      html`<${Input}
                        key=${f.name}
                        field=${f}
                        value=${values.get(f.name)}
                        set=${(/** @type {string | boolean} */ v) => set(f.name, v)} />`,
                  )}
            <div class="buttons">
              ${fields &&
              html`<button type="button" onClick=${() => (raw ? setRaw(false) : toRaw())}>
                ${raw ? t('As a form') : t('As JSON')}
              </button>`}
              <${Do} kind="primary" run=${call}>${t('Call it')}<//>
            </div>
          </form>`}
    ${result &&
    html`<section aria-label=${t('Result')}>
      <h2>${t('Result')}</h2>
      <p>
        <${Badge} state=${result.ok ? 'ok' : 'failed'} /> ${result.kind &&
        html`<span class="badge">${plain(result.kind)}</span>`} ${!result.ok &&
        html`<${Name} text=${result.brief} max=${300} /> `}
        <span class="muted">${ms(result.took_ms)}</span>
      </p>
      <${Blocks} envelope=${result} />
      ${result.structured &&
      html`
        <h3>${t('Structured')}</h3>
        <${Pre} text=${pretty(result.structured)} label=${t('Structured result')} />
      `}
      ${(result.artifacts ?? []).map((a) => html`<${Rest} artifact=${a} />`)}
    </section>`}
  <//>`;
}

/** The part of a result that did not fit into the answer. @param {{artifact: Admin<'Artifact'>}} p */
function Rest({ artifact }) {
  const [text, setText] = useState('');
  const more = async () => {
    const r = await api('GET', `/api/tools/artifacts/${seg(artifact.id)}`);
    setText(new TextDecoder().decode(Uint8Array.from(atob(r.data), (c) => c.charCodeAt(0))));
  };
  return html`
    <p class="artifact">
      📄 <code>${plain(artifact.id)}</code> <${Do} kind="small" run=${more}>
        ${t('Show its beginning')}
      <//>
    </p>
    ${text && html`<${Pre} text=${plain(text, true)} label=${t('Artifact')} />`}
  `;
}
