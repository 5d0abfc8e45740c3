// A plugin for prettier that formats html`…` as htm reads it. Prettier's own formatter
// takes these templates for HTML, in which a line break is a space: in htm a line break
// at the edge of a text, with the spaces around it, is nothing. So a line may break
// between tags and values, and between two words of one text, but never at a space
// that separates a text from its neighbour: that space would be lost.
import * as estree from 'prettier/plugins/estree';
import { doc } from 'prettier';

const { fill, group, indent, join, line, lineSuffixBoundary, softline } = doc.builders;
const printer = estree.printers.estree;

/** Elements that stand in a line with the text around them; all others get their own. */
const INLINE = new Set(['a', 'b', 'bdi', 'br', 'code', 'em', 'i', 'small', 'span', 'strong', 'time']);

/**
 * Takes a template apart. A number in the input is the place of an expression.
 * @param {(string | number)[]} s single characters and expressions
 */
function parse(s) {
  let at = 0;
  const space = (c) => typeof c === 'string' && /\s/.test(c);
  const text = (word) => [...word].every((c, i) => s[at + i] === c);
  const fail = () => {
    throw new Error(`not htm at: ${s.slice(at, at + 40).join('')}`);
  };

  function children() {
    const out = [];
    while (at < s.length && !text('</')) {
      if (typeof s[at] === 'number') out.push({ type: 'value', value: s[at++] });
      else if (s[at] === '<') out.push(element());
      else {
        let t = '';
        while (at < s.length && typeof s[at] === 'string' && s[at] !== '<') t += s[at++];
        t = t.replace(/^\s*\n\s*|\s*\n\s*$/g, ''); // as htm does
        if (t) out.push({ type: 'text', text: t });
      }
    }
    return out;
  }

  function attribute() {
    const parts = [];
    for (let quote = ''; at < s.length; at++) {
      const c = s[at];
      if (quote === '' && (space(c) || c === '>' || text('/>'))) break;
      if (quote === '' && (c === '"' || c === "'")) quote = c;
      else if (c === quote) quote = '';
      parts.push(c);
    }
    return parts;
  }

  function element() {
    at++; // <
    const e = { type: 'element', name: [], attributes: [], self: false, children: [], end: '' };
    e.name = attribute();
    if (e.name.length === 0) fail();
    while (at < s.length) {
      if (space(s[at])) at++;
      else if (text('/>')) {
        at += 2;
        e.self = true;
        return e;
      } else if (s[at] === '>') {
        at++;
        break;
      } else e.attributes.push(attribute());
    }
    e.children = children();
    if (!text('</')) fail();
    while (at < s.length && s[at] !== '>') {
      if (typeof s[at] === 'number') fail();
      e.end += s[at++];
    }
    e.end += '>';
    at++;
    return e;
  }

  const all = children();
  if (at < s.length) fail();
  return all;
}

/** @param {any} path @param {any} print */
function template(path, print) {
  const { quasis, expressions } = path.node.quasi;
  const values = path.map(print, 'quasi', 'expressions');
  const tree = parse(quasis.flatMap((q, i) => [...q.value.raw, ...(q.tail ? [] : [i])]));

  const value = (i) => ['${', values[i], lineSuffixBoundary, '}'];
  const words = (parts) => {
    const out = [];
    for (const p of parts) {
      if (typeof p === 'number') out.push(value(p));
      else if (typeof out.at(-1) === 'string') out[out.length - 1] += p;
      else out.push(p);
    }
    return out.map((p) => (typeof p === 'string' ? join(doc.builders.literalline, p.split('\n')) : p));
  };

  /** Whether something is part of a line rather than a block of its own. */
  const inline = (n) =>
    n.type === 'text' ||
    (n.type === 'value' && !/^(Logical|Conditional|Arrow|Call|TaggedTemplate)/.test(expressions[n.value].type)) ||
    (n.type === 'element' && typeof n.name[0] === 'string' && INLINE.has(n.name.join('')) && n.children.every(inline));

  function element(n) {
    const attributes = n.attributes.map(words);
    const one = n.attributes.length === 1; // it breaks inside itself
    const open = group([
      '<',
      words(n.name),
      one ? [' ', attributes[0]] : indent(attributes.map((a) => [line, a])),
      n.self ? ' />' : '>',
    ]);
    if (n.self) return open;
    if (n.children.length === 0) return [open, n.end];
    return group([open, ...broken(n.children), n.end]);
  }

  /** Breaks around what is inside, but where a space is at its edge. */
  function broken(nodes) {
    const [first, last] = [nodes[0], nodes.at(-1)];
    return [
      indent([first.type === 'text' && /^\s/.test(first.text) ? '' : softline, content(nodes)]),
      last.type === 'text' && /\s$/.test(last.text) ? '' : softline,
    ];
  }

  /** The content: blocks on separate lines, and the rest filled into lines. */
  function content(nodes) {
    const rows = []; // of what is joined by breaks that are taken together
    let run = []; // of a fill: content, separator, content, …
    let glued = false; // the last text ended with a space
    const add = (d, separator) => {
      if (run.length === 0) run.push(d);
      else if (separator === '') run.push([run.pop(), d]);
      else run.push(separator, d);
    };
    nodes.forEach((n, i) => {
      if (n.type === 'text') {
        const leading = /^\s/.test(n.text);
        const parts = n.text.trim().split(/\s+/).filter(Boolean);
        if (leading) add(' ', '');
        parts.forEach((w, j) => add(w, j > 0 ? line : leading ? '' : softline));
        glued = parts.length > 0 && /\s$/.test(n.text);
        if (glued) add(' ', '');
        glued ||= parts.length === 0;
        return;
      }
      const d = n.type === 'value' ? value(n.value) : element(n);
      const next = nodes[i + 1];
      const before = glued;
      const after = next?.type === 'text' && /^\s/.test(next.text);
      glued = false;
      if (!inline(n) && !before && run.length > 0) {
        rows.push(fill(run));
        run = [];
      }
      add(d, before ? '' : softline);
      if (!inline(n) && !after) {
        rows.push(fill(run));
        run = [];
      }
    });
    if (run.length > 0) rows.push(fill(run));
    return join(softline, rows);
  }

  if (tree.length === 0) return 'html``';
  if (tree.length === 1 && tree[0].type === 'element') return ['html`', element(tree[0]), '`'];
  return group(['html`', ...broken(tree), '`']);
}

export const printers = {
  estree: {
    ...printer,
    embed(path, options) {
      const { node } = path;
      if (node.type === 'TaggedTemplateExpression' && node.tag.name === 'html') {
        return (_, print) => template(path, print);
      }
      return printer.embed?.(path, options);
    },
  },
};
