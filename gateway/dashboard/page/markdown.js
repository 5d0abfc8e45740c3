// Renders Markdown as elements: marked splits the text into tokens, and each token becomes an
// element from a short list, with its text as text. Strings never become markup: HTML in the
// text is shown as source, pictures are links, and links lead only to http, https and mailto.
// @ts-check
import { useMemo } from './vendor/hooks.js';
import { Lexer } from './vendor/marked.js';
import { marked as coloured } from './code.js';
import { Diff, isPatch } from './diff.js';
import { prose } from './text.js';
import { style } from './style.js';
import { html, Pre } from './ui.js';
import { t } from './words.js';

style('talk');

const DEEP = 24; // of nesting; what is deeper is shown as text
const LONG = 64 * 1024; // longer text is not taken apart

/** @param {string} to @returns {string} "" if it leads where none may */
export function safe(to) {
  try {
    const u = new URL(to, 'about:blank');
    return ['http:', 'https:', 'mailto:'].includes(u.protocol) ? u.href : '';
  } catch {
    return '';
  }
}

/** @param {string | undefined} s entities are what they stand for; the rest stays */
const text = (s) =>
  prose(
    String(s ?? '').replace(
      /&(amp|lt|gt|quot|#39);/g,
      (_, n) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" })[/** @type {'amp'} */ (n)],
    ),
  );

/** @typedef {import('./vendor/marked.js').Token} Token */
/** @typedef {import('./vendor/marked.js').Tokens.Generic} Any a token of any kind */

/** @param {Any} k @param {Children} inner */
function link(k, inner) {
  const to = safe(k.href);
  if (!to) return html`${inner} (${text(k.href)})`;
  return html`<a href=${to} target="_blank" rel="noopener noreferrer" title=${to}>${inner}</a>`;
}

/** @param {Token[] | undefined} tokens @param {number} depth @returns {Children} */
function many(tokens, depth) {
  return (tokens ?? []).map((k) => one(k, depth));
}

/** A block of code. @param {string} source @param {string} language */
function code(source, language) {
  if (language === 'diff' || language === 'patch')
    return isPatch(source)
      ? html`<${Diff} all text=${source} />`
      : html`<${Pre} diff text=${source} />`;
  if (source.length > LONG / 4) return html`<${Pre} text=${source} />`;
  return html`<pre tabindex="0">${coloured(source, language)}</pre>`;
}

/** @param {Any} k @param {number} depth @returns {Children} */
function one(k, depth) {
  if (depth > DEEP) return prose(k.raw);
  const inner = () => (k.tokens ? many(k.tokens, depth + 1) : text(k.text));
  switch (k.type) {
    case 'space':
    case 'def':
      return null;
    case 'paragraph':
      return html`<p>${inner()}</p>`;
    case 'heading':
      return html`<p class=${'h h' + k.depth} role="heading" aria-level=${Math.min(k.depth + 1, 6)}>
        ${inner()}
      </p>`;
    case 'code':
      return code(prose(k.text), String(k.lang ?? '').split(/\s/)[0]);
    case 'blockquote':
      return html`<blockquote>${inner()}</blockquote>`;
    case 'list': {
      const items = k.items.map(
        (/** @type {Any} */ i) =>
          html`<li>
            ${i.task &&
            html`<span aria-label=${i.checked ? t('done') : t('not done')}>
              ${i.checked ? '☑ ' : '☐ '}
            </span>`}
            ${many(i.tokens, depth + 1)}
          </li>`,
      );
      return k.ordered
        ? html`<ol start=${Number(k.start) || 1}>${items}</ol>`
        : html`<ul>${items}</ul>`;
    }
    case 'table':
      return html`<div class="scroll" tabindex="0" role="region" aria-label=${t('Table')}>
        <table>
          <thead>
            <tr>
              ${k.header.map(
                (/** @type {Any} */ c) => html`<th scope="col">${many(c.tokens, depth + 1)}</th>`,
              )}
            </tr>
          </thead>
          <tbody>
            ${k.rows.map(
              (/** @type {Any[]} */ r) =>
                html`<tr>${r.map((c) => html`<td>${many(c.tokens, depth + 1)}</td>`)}</tr>`,
            )}
          </tbody>
        </table>
      </div>`;
    case 'hr':
      return html`<hr />`;
    case 'br':
      return html`<br />`;
    case 'strong':
      return html`<strong>${inner()}</strong>`;
    case 'em':
      return html`<em>${inner()}</em>`;
    case 'del':
      return html`<del>${inner()}</del>`;
    case 'codespan':
      return html`<code>${text(k.text)}</code>`;
    case 'link':
      return link(k, inner());
    case 'image':
      return link(k, html`🖼 ${text(k.text) || t('picture')}`);
    case 'text':
    case 'escape':
      return k.tokens ? many(k.tokens, depth + 1) : text(k.text);
    default:
      return prose(k.raw); // HTML, and whatever there may be some day
  }
}

/** @param {{text: string}} p */
export function Markdown({ text: source }) {
  const tree = useMemo(() => {
    if (source.length > LONG) return html`<${Pre} text=${prose(source)} />`;
    try {
      return many(new Lexer({ gfm: true, breaks: true }).lex(source), 0);
    } catch {
      // marked expects friendly input, and this text is untrusted
      return html`<${Pre} text=${prose(source)} />`;
    }
  }, [source]);
  return html`<div class="markdown">${tree}</div>`;
}
