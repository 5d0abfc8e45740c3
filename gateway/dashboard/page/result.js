// The result of a tool, and its artifacts.
// @ts-check
import { useState } from './vendor/hooks.js';
import { request, seg } from './api.js';
import { marked } from './code.js';
import { Diff, isPatch } from './diff.js';
import { Markdown } from './markdown.js';
import { plain, pretty, prose, size } from './text.js';
import { Do, html, Icon, Name, Pre } from './ui.js';
import { t } from './words.js';

/** Saves what a request answers as a file. @param {string} path @param {string} name */
export async function download(path, name) {
  const url = URL.createObjectURL(await (await request('GET', path)).blob());
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The blocks of a tool's result (Y-122): untrusted text, shown as text.
 * @param {{envelope: Envelope}} p */
export function Blocks({ envelope }) {
  return html`
    ${(envelope.display ?? []).map((b) =>
      b.kind === 'markdown'
        ? html`<${Markdown} text=${String(b.markdown ?? '')} />`
        : b.kind === 'json'
          ? html`<${Json} of=${b.data} label=${t('Result')} />`
          : isPatch(String(b.text ?? ''))
            ? html`<${Diff} text=${String(b.text)} />`
            : html`<${Pre} text=${prose(b.text)} label=${t('Result')} />`,
    )}
    ${envelope.detail && html`<${Json} of=${envelope.detail} label=${t('Details')} />`}
  `;
}

/** A value as JSON; a long one without marks, and truncated until the user expands it.
 * @param {{of: unknown, label: string}} p */
function Json({ of, label }) {
  const text = pretty(of);
  return text.length > 16 * 1024
    ? html`<${Pre} text=${text} label=${label} />`
    : html`<pre tabindex="0" role="group" aria-label=${label}>${marked(text, 'json')}</pre>`;
}

/** @param {{id: string, artifact: Admin<'Artifact'>}} p */
export function Artifact({ id, artifact }) {
  const [text, setText] = useState('');
  const path = `/v1/sessions/${seg(id)}/artifacts/${seg(artifact.id)}`;
  const readable =
    /^text\/|json|xml|diff|patch/.test(artifact.mime_type ?? '') && artifact.size <= 4 << 20;
  return html`
    <p class="artifact flex">
      <${Icon} of="file" />
      <span class="cut"><${Name} text=${artifact.id} max=${40} /></span>
      <span class="faint nw">
        <${Name} text=${artifact.mime_type} max=${40} />
        , ${size(artifact.size)}
      </span>
      <span class="end flex">
        ${readable &&
        !text &&
        html`<${Do}
          kind="small"
          run=${async () => setText(prose(await (await request('GET', path)).text()))}>
          ${t('Show')}
        <//>`}
        <${Do} kind="small" run=${() => download(path, plain(artifact.id))}>${t('Save')}<//>
      </span>
    </p>
    ${text &&
    (/diff|patch/.test(artifact.mime_type) || isPatch(text)
      ? html`<${Diff} text=${text} />`
      : html`<${Pre} text=${text} label=${t('Artifact')} />`)}
  `;
}
