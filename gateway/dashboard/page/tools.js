// The offered tools, found by what they do, and a form to try one (form.js).
// @ts-check
import { useEffect, useMemo, useState } from './vendor/hooks.js';
import { api, request, seg } from './api.js';
import { argumentsOf, formOf, Input } from './form.js';
import { Markdown } from './markdown.js';
import { Blocks } from './result.js';
import { go, href, may, useLoaded } from './state.js';
import { style } from './style.js';
import { ms, oneLine, plain, pretty } from './text.js';
import { Tile } from './tile.js';
import { Do, Empty, Field, html, Name, Of, Pre, Problem, State, typed, View } from './ui.js';
import { count, rich, t } from './words.js';

style('servers');

const TYPING = 150; // ms without a key until yaya is asked

const NONE = /** @type {Admin<'Tool'>[]} */ ([]);

/** The tools that fit a text: those that yaya finds by what they do, best first, and then those
 * that have all its words. @param {Admin<'Tool'>[]} all @param {string} text
 * @returns {{list: Admin<'Tool'>[], error: unknown}} */
function useFound(all, text) {
  const [hits, setHits] = useState(/** @type {string[]} */ ([]));
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const q = text.trim();
  useEffect(() => {
    setHits([]);
    setError(null);
    if (!q) return undefined;
    let gone = false;
    const timer = setTimeout(() => {
      api('GET', `/api/tools/search?q=${encodeURIComponent(q)}&limit=200`).then(
        (names) => gone || setHits(names),
        (e) => gone || setError(e),
      );
    }, TYPING);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [q, all]);
  const rank = new Map(hits.map((name, i) => [name, i]));
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (/** @type {Admin<'Tool'>} */ x) =>
    words.every((w) => `${x.name} ${x.title ?? ''} ${x.description}`.toLowerCase().includes(w));
  return {
    list: all
      .filter((x) => rank.has(x.name) || has(x))
      .sort((a, b) => (rank.get(a.name) ?? hits.length) - (rank.get(b.name) ?? hits.length)),
    error,
  };
}

/** @param {{rest: string[]}} p */
export default function Tools({ rest: [name, server = ''] }) {
  const tools = useLoaded('/api/tools', ['tools']);
  const tool = tools.data?.find((x) => x.name === name);
  if (!name) return html`<${List} of=${tools} server=${server} />`;
  if (tools.data && !tool)
    return html`<${View} title=${name} crumb=${html`<a href=${href('tools')}>${t('Tools')}</a>`}>
      <${Empty} icon="tool">
        ${t('This tool is not offered now.')} <a href=${href('tools')}>${t('All tools')}</a>
      <//>
    <//>`;
  return tool
    ? html`<${One} key=${name} tool=${tool} />`
    : html`<${View} title=${name}><${Of} of=${tools}>${() => null}<//><//>`;
}

/** @param {{of: import('./state.js').Loaded<Admin<'Tool'>[]>, server: string}} p */
function List({ of, server }) {
  const [text, setText] = useState('');
  const { list, error } = useFound(of.data ?? NONE, text);
  const shown = list.filter((x) => !server || x.provider === server);
  const servers = [...new Set((of.data ?? []).map((x) => x.provider))].filter(Boolean).sort();
  return html`<${View} title=${server ? t('Tools of {server}', { server }) : t('Tools')}>
    <${Of} of=${of}>
      ${() => html`
        <div class="filters">
          <input
            type="search"
            class="narrow"
            aria-label=${t('Find tools')}
            placeholder=${t('What you want to do')}
            maxlength="200"
            spellcheck="false"
            value=${text}
            onInput=${typed(setText)} />
          <select
            aria-label=${t('Server')}
            value=${server}
            onChange=${typed((s) => (s ? go('tools', '', s) : go('tools')))}>
            <option value="">${t('All servers')}</option>
            ${servers.map((s) => html`<option value=${s}>${plain(s).slice(0, 60)}</option>`)}
          </select>
          <span class="faint end" role="status">
            ${count(shown.length, '{n} tool', '{n} tools')}
          </span>
        </div>
        <${Problem} error=${error} />
        ${shown.length
          ? html`<section class="box" aria-label=${t('Tools')}>
              <div class="rows">
                ${shown.slice(0, 500).map((x) => html`<${Row} key=${x.name} x=${x} />`)}
              </div>
            </section>`
          : html`<${Empty} icon="tool">
              ${of.data?.length
                ? t('No tools match.')
                : html`
                    ${t('No tools are offered.')}
                    ${' '}
                    <a href=${href('servers')}>${t('Servers')}</a>
                  `}
            <//>`}
      `}
    <//>
  <//>`;
}

/** The hints of a tool about itself, and the kind that rules see. @param {{x: Admin<'Tool'>}} p */
function Marks({ x }) {
  const hints = /** @type {{readOnlyHint?: boolean, destructiveHint?: boolean} | undefined} */ (
    x.annotations
  );
  return html`
    ${hints?.destructiveHint === true &&
    hints.readOnlyHint !== true &&
    html`<span class="badge bad" title=${t('By the server’s own account')}>
      ${t('destructive')}
    </span>`}
    <span class="badge" title=${t('The kind that rules see')}><bdi>${plain(x.kind)}</bdi></span>
    ${x.requires_approval && html`<span class="badge busy">${t('asks first')}</span>`}
  `;
}

/** @param {{x: Admin<'Tool'>}} p */
const Row = ({ x }) =>
  html`<a href=${href('tools', x.name)}>
    <${Tile} name=${x.provider || 'yaya'} />
    <span class="two">
      <span class="cut mono"><${Name} text=${x.name} max=${128} /></span>
      <small class="cut"><${Name} text=${oneLine(x.title || x.description)} max=${200} /></small>
    </span>
    <span class="flex nophone"><${Marks} x=${x} /></span>
  </a>`;

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
  return html`<${View} title=${tool.name} crumb=${html`<a href=${href('tools')}>${t('Tools')}</a>`}>
    <div class="head">
      <${Tile} name=${tool.provider || 'yaya'} large />
      <div class="two">
        <p>
          ${tool.title && html`<b><${Name} text=${tool.title} /></b>${' '}`} <${Marks} x=${tool} />
        </p>
        <small class="faint">
          ${tool.provider
            ? rich('Of {server}, where it is called {tool}.', {
                server: html`<a href=${href('servers', tool.provider)}>
                  <${Name} text=${tool.provider} />
                </a>`,
                tool: html`<code><${Name} text=${tool.tool} /></code>`,
              })
            : t('One of yaya’s own tools.')}
        </small>
      </div>
    </div>
    <section class="box" aria-label=${t('Description')}>
      <header><h2>${t('Description')}</h2></header>
      <div class="body">
        <div class="quoted"><${Markdown} text=${tool.description} /></div>
        <details>
          <summary>${t('Schema')}</summary>
          <${Pre} text=${pretty(tool.input_schema)} label=${t('Schema of its arguments')} />
        </details>
      </div>
    </section>
    <section class="box form" aria-label=${t('Try it')}>
      <header>
        <h2>${t('Try it')}</h2>
        ${allowed &&
        fields &&
        html`<span class="seg end" role="group" aria-label=${t('Edit as')}>
          <button type="button" aria-pressed=${!raw} onClick=${() => setRaw(false)}>
            ${t('Form')}
          </button>
          <button type="button" aria-pressed=${raw} onClick=${() => raw || toRaw()}>JSON</button>
        </span>`}
      </header>
      ${tool.for_agents
        ? html`<${Empty}>${t('It works only in a conversation.')}<//>`
        : !allowed
          ? html`<${Empty} icon="lock">
              ${t('This device cannot call tools: it needs tools:call and approvals:answer.')}
            <//>`
          : html`<form class="body" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()}>
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
                  ? html`<p class="faint">${t('It takes no arguments.')}</p>`
                  : fields?.map(
                      (f) =>
                        html`<${Input}
                          key=${f.name}
                          field=${f}
                          value=${values.get(f.name)}
                          set=${(/** @type {string | boolean} */ v) => set(f.name, v)} />`,
                    )}
              <div class="buttons"><${Do} kind="primary" run=${call}>${t('Call it')}<//></div>
            </form>`}
    </section>
    ${result &&
    html`<section class="box" aria-label=${t('Result')}>
      <header>
        <h2>${t('Result')}</h2>
        <${State} state=${result.ok ? 'ok' : 'failed'} />
        ${result.kind && html`<span class="badge">${plain(result.kind)}</span>`}
        <span class="faint end">${ms(result.took_ms)}</span>
      </header>
      <div class="body">
        ${!result.ok && html`<p class="problem"><${Name} text=${result.brief} max=${300} /></p>`}
        <${Blocks} envelope=${result} />
        ${result.structured &&
        html`
          <h3>${t('Structured')}</h3>
          <${Pre} text=${pretty(result.structured)} label=${t('Structured result')} />
        `}
        ${(result.artifacts ?? []).map((a) => html`<${Rest} artifact=${a} />`)}
      </div>
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
