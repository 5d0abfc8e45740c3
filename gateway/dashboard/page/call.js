// One call: arguments, result, who made it, and the same call again.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { request, seg } from './api.js';
import { exactly, outcomeOf, toneOf } from './calllist.js';
import { Copy } from './copy.js';
import { Dialog } from './dialog.js';
import { href, may, useLoaded } from './state.js';
import { exact, ms, plain, pretty, size } from './text.js';
import { toast } from './toast.js';
import { Do, Empty, html, Icon, Name, Of, Pre } from './ui.js';
import { rich, t } from './words.js';

/** @typedef {Admin<'Record'>} Call */

/** A recorded text: indented if it is JSON. @param {string} text */
function shown(text) {
  try {
    return pretty(JSON.parse(text));
  } catch {
    return plain(text, true);
  }
}

/** Why a call cannot be made again, '' if it can.
 * @param {Call} c @param {Admin<'Tool'> | undefined} tool */
function obstacle(c, tool) {
  if (c.method !== 'tools/call') return t('Only calls of tools can be made again.');
  if (!tool) return t('The tool is not offered now.');
  if (tool.for_agents) return t('The tool works only in a conversation.');
  if (!may('tools:call') || !may('approvals:answer'))
    return t('This device cannot call tools: it needs tools:call and approvals:answer.');
  if (c.arguments_bytes > 0 && !c.arguments) return t('The arguments were not recorded.');
  if (c.arguments?.includes('****'))
    return t('The arguments hold a secret, which is not recorded.');
  if (new TextEncoder().encode(c.arguments ?? '').length < c.arguments_bytes)
    return t('The arguments were too long to be recorded whole.');
  return '';
}

/** Asks with the whole call before it is made again.
 * @param {{c: Call, tool: Admin<'Tool'>, done: () => void}} p */
function Replay({ c, tool, done }) {
  return html`<${Dialog} wide title=${t('Call it again')} onClose=${done}>
    <p>
      ${rich('{tool} runs with exactly these arguments. The call counts as approved by you.', {
        tool: html`<code><${Name} text=${tool.name} max=${128} /></code>`,
      })}
    </p>
    <${Pre} all text=${shown(c.arguments || '{}')} label=${t('Arguments, all of them')} />
    <div class="buttons">
      <button type="button" onClick=${done}>${t('Cancel')}</button>
      <${Do}
        arm
        kind="primary"
        run=${async () => {
          // As text, so that numbers keep their digits.
          const r = await request('POST', `/api/tools/${seg(tool.name)}/call`, {
            text: `{"arguments":${c.arguments || '{}'}}`,
          });
          /** @type {Admin<'Called'>} */
          const out = await r.json();
          done();
          toast(
            out.ok
              ? t('The call took {time}.', { time: ms(out.took_ms) })
              : t('The call failed: {error}', { error: plain(out.brief).slice(0, 200) }),
            out.ok ? 'check' : 'error',
          );
        }}>
        ${t('Call it again')}
      <//>
    </div>
  <//>`;
}

/** @param {{id: string, close: () => void}} p */
export function Detail({ id, close }) {
  const call = useLoaded(/^\d{1,15}$/.test(id) ? `/api/traffic/${id}` : null, []);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    box.current?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return html`<section
    class="drawer"
    aria-label=${t('Call')}
    ref=${box}
    tabindex="-1"
    onKeyDown=${(/** @type {KeyboardEvent} */ e) => {
      if (e.key !== 'Escape' || document.querySelector('dialog[open]')) return;
      e.stopPropagation();
      close();
    }}>
    <button type="button" class="icon shut" aria-label=${t('Close the call')} onClick=${close}>
      <${Icon} of="close" />
    </button>
    ${/^\d{1,15}$/.test(id)
      ? html`<${Of} of=${call}>${(/** @type {Call} */ c) => html`<${Parts} c=${c} />`}<//>`
      : html`<${Empty}>${t('Call not found.')}<//>`}
  </section>`;
}

/** @param {{c: Call}} p */
function Parts({ c }) {
  const tools = useLoaded(may('config:read') ? '/api/tools' : null, ['tools']).data;
  const [again, setAgain] = useState(false);
  const tool = tools?.find((x) => x.provider === (c.server ?? '') && (x.tool || x.name) === c.tool);
  const why = obstacle(c, tool);
  return html`
    <header>
      <h2>
        <span class="faint"><${Name} text=${c.server || 'yaya'} max=${64} /></span> ${' '}
        <${Name} text=${c.tool} max=${200} />
      </h2>
      <p class="flex">
        <span class=${'state ' + toneOf(c)}>
          <span class=${'dot ' + toneOf(c)}></span>
          <span class="cap">${outcomeOf(c)}</span>
        </span>
        <span class="faint" title=${exact(c.time)}>${exactly(c.time)}</span>
        <span class="faint">${ms(c.took_ms)}</span>
      </p>
    </header>
    ${c.error && html`<p class="problem"><${Name} text=${c.error} max=${1000} /></p>`}
    <h3 class="flex">
      ${t('Arguments')} <span class="faint end">${size(c.arguments_bytes)}</span>
      ${c.arguments && html`<${Copy} text=${plain(c.arguments, true)} />`}
    </h3>
    ${c.arguments
      ? html`<${Pre} text=${shown(c.arguments)} label=${t('Arguments of the call')} />`
      : html`<p class="faint">${c.arguments_bytes ? t('They were not recorded.') : t('None.')}</p>`}
    <h3 class="flex">
      ${t('Result')} <span class="faint end">
        ${c.cut ? t('{size}, cut', { size: size(c.result_bytes) }) : size(c.result_bytes)}
      </span>
      ${c.result && html`<${Copy} text=${plain(c.result, true)} />`}
    </h3>
    ${c.result
      ? html`<${Pre} text=${shown(c.result)} label=${t('Result of the call')} />`
      : html`<p class="faint">
          ${c.busy
            ? t('There was too much traffic to record it.')
            : c.result_bytes
              ? t('It was not recorded.')
              : t('None.')}
        </p>`}
    <h3>${t('Who')}</h3>
    <dl>
      <dt>${t('Client')}</dt>
      <dd>
        ${c.client
          ? html`<${Name} text=${`${c.client} ${c.client_version ?? ''}`} max=${120} />`
          : plain(c.origin)}
      </dd>
      <dt>${t('Caller')}</dt>
      <dd><${Name} text=${c.principal || '–'} max=${120} /></dd>
      ${c.session &&
      html`
        <dt>${t('Session')}</dt>
        <dd>
          ${c.origin === 'loop'
            ? html`<a href=${href('chat', c.session)}><${Name} text=${c.session} max=${80} /></a>`
            : c.origin === 'api' && c.session.startsWith('_bridge:')
              ? t('the page')
              : html`<${Name} text=${c.session} max=${80} />`}
        </dd>
      `}
      <dt>${t('Approval')}</dt>
      <dd>
        ${c.approval
          ? t('A person approved this very call')
          : c.origin === 'api'
            ? t('The call counts as approved by its caller')
            : t('No person has approved this very call')}
      </dd>
      ${c.trace &&
      html`<dt>${t('Trace')}</dt><dd><code><${Name} text=${c.trace} max=${64} /></code></dd>`}
      <dt>${t('Number')}</dt>
      <dd>${c.id}</dd>
    </dl>
    <div class="buttons">
      <button
        type="button"
        class="primary"
        disabled=${Boolean(why)}
        onClick=${() => setAgain(true)}>
        <${Icon} of="replay" />
        ${t('Replay …')}
      </button>
      ${tool && html`<a class="button" href=${href('tools', tool.name)}>${t('Open the tool')}</a>`}
      <${Copy} text=${plain(JSON.stringify(c, null, 2), true)} label=${t('Copy all')} />
    </div>
    ${why && html`<p class="faint">${why}</p>`}
    ${again && tool && html`<${Replay} c=${c} tool=${tool} done=${() => setAgain(false)} />`}
  `;
}
