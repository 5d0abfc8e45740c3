// The result of a tool, and its artifacts.
// @ts-check
import { useState } from './vendor/hooks.js';
import { request, seg } from './api.js';
import { Markdown } from './markdown.js';
import { plain, pretty, prose, size } from './text.js';
import { Do, html, Name, Pre } from './ui.js';
import { rich, t } from './words.js';

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
          ? html`<${Pre} text=${pretty(b.data)} label=${t('Result')} />`
          : html`<${Pre}
              text=${prose(b.text)}
              label=${t('Result')}
              diff=${/^(diff --git|--- |\+\+\+ |@@ )/m.test(
                String(b.text ?? '').slice(0, 2000),
              )} />`,
    )}
    ${envelope.detail && html`<${Pre} text=${pretty(envelope.detail)} label=${t('Details')} />`}
  `;
}

/** @param {{id: string, artifact: Admin<'Artifact'>}} p */
export function Artifact({ id, artifact }) {
  const [text, setText] = useState('');
  const path = `/v1/sessions/${seg(id)}/artifacts/${seg(artifact.id)}`;
  const readable =
    /^text\/|json|xml|diff|patch/.test(artifact.mime_type ?? '') && artifact.size <= 4 << 20;
  return html`
    <p class="artifact">
      📄 <${Name} text=${artifact.id} max=${40} /> <span class="muted">
        ${rich('{type}, {size}', {
          type: html`<${Name} text=${artifact.mime_type} max=${40} />`,
          size: size(artifact.size),
        })}
      </span>
      ${readable &&
      !text &&
      html` <${Do}
          kind="small"
          run=${async () => setText(prose(await (await request('GET', path)).text()))}>
          ${t('Show')}
        <//>
      `}
      <${Do} kind="small" run=${() => download(path, plain(artifact.id))}>${t('Save')}<//>
    </p>
    ${text &&
    html`<${Pre}
      text=${text}
      label=${t('Artifact')}
      diff=${/diff|patch/.test(artifact.mime_type) ||
      /^(diff --git|--- )/m.test(text.slice(0, 2000))} />`}
  `;
}
