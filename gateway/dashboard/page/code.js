// Code with its words marked: a few rules for many languages, as spans with text in them.
// @ts-check
import { html } from './html.js';
import { style } from './style.js';

style('code');

const LONG = 32 * 1024; // longer code is shown without marks

/** How a family of languages writes comments and strings. @type {Record<string, string>} */
const FAMILY = {
  c: String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`,
  hash: String.raw`(?<![\w$&])#[^\n]*`,
  dash: String.raw`--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`,
  tags: String.raw`<!--[\s\S]*?(?:-->|$)`,
  none: String.raw`(?!)`,
};

/** The family of a language, by its name or the extension of its files. */
const LANGUAGES = new Map([
  ...'go js mjs cjs ts tsx jsx javascript typescript java c h cc cpp c++ hpp cs rust rs css scss swift kt kotlin php proto dart scala zig jsonc json5'
    .split(' ')
    .map((l) => /** @type {[string, string]} */ ([l, 'c'])),
  ...'py python rb ruby sh bash zsh fish shell console yaml yml toml ini conf make makefile dockerfile perl pl r elixir ex tf mod'
    .split(' ')
    .map((l) => /** @type {[string, string]} */ ([l, 'hash'])),
  ...'sql lua hs haskell'.split(' ').map((l) => /** @type {[string, string]} */ ([l, 'dash'])),
  ...'html xml svg vue'.split(' ').map((l) => /** @type {[string, string]} */ ([l, 'tags'])),
  ['json', 'none'],
]);

const WORDS =
  'abstract alias and as assert async await begin break case catch chan class const continue def default defer del do elif else elsif end ensure enum except export extends extern fallthrough false final finally fn for from func function global go goto if impl implements import in instanceof interface is lambda let loop map match mod module mut new nil none null not of or package pass private protected public pub raise range readonly ref require rescue return select self static struct super switch then this throw trait true try type typeof undefined union unless until use using var void when where while with yield bool byte char double error float int int32 int64 long number rune short str string uint uint32 uint64 usize create table insert update delete into values set join left right inner outer on group by order having limit distinct drop alter index primary key echo export fi done esac';
const KEY = new Set(WORDS.split(' '));

/** @type {Map<string, RegExp>} */
const rules = new Map();

/** @param {string} family */
function rule(family) {
  let r = rules.get(family);
  if (!r) {
    r = new RegExp(
      `(?<rem>${FAMILY[family]})` +
        String.raw`|(?<str>"(?:[^"\\\n]|\\.){0,2000}"?|'(?:[^'\\\n]|\\.){0,400}'|` +
        '`[^`]*`?)' +
        String.raw`|(?<num>\b(?:0x[\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)` +
        String.raw`|(?<word>[A-Za-z_$][\w$]*)(?<call>\s*\()?`,
      'g',
    );
    rules.set(family, r);
  }
  return r;
}

/** The language of a file, by its name; '' if it has none of these. @param {string} name */
export const languageOf = (name) => {
  const last = (name.split('/').pop() ?? '').toLowerCase();
  const end = last.split('.').pop() ?? '';
  return LANGUAGES.has(end) ? end : '';
};

/** A text in pieces, each with its kind: k for keywords, s strings, d numbers, fn calls, r
 * remarks, '' the rest. The pieces together are the text.
 * @param {string} text @param {string} [language] @returns {[string, string][]} */
export function pieces(text, language = '') {
  const family = LANGUAGES.get(language.toLowerCase());
  if (!family || text.length > LONG) return [['', text]];
  /** @type {[string, string][]} */
  const out = [];
  let at = 0;
  const put = (/** @type {string} */ kind, /** @type {number} */ from, /** @type {string} */ s) => {
    if (from > at) out.push(['', text.slice(at, from)]);
    out.push([kind, s]);
    at = from + s.length;
  };
  for (const m of text.matchAll(rule(family))) {
    const g = /** @type {Record<string, string | undefined>} */ (m.groups);
    if (g.rem) put('r', m.index, g.rem);
    else if (g.str)
      put(
        family === 'none' && /^\s*:/.test(text.slice(m.index + g.str.length)) ? 'k' : 's',
        m.index,
        g.str,
      );
    else if (g.num) put('d', m.index, g.num);
    else if (g.word && KEY.has(family === 'dash' ? g.word.toLowerCase() : g.word))
      put('k', m.index, g.word);
    else if (g.word && g.call) put('fn', m.index, g.word);
  }
  if (at < text.length) out.push(['', text.slice(at)]);
  return out;
}

/** @param {string} text @param {string} [language] */
export const marked = (text, language) =>
  pieces(text, language).map(([kind, s]) => (kind ? html`<span class=${kind}>${s}</span>` : s));

/** The words of a command as its user typed it. @param {string} text @returns {Children[]} */
export function command(text) {
  if (text.length > LONG) return [text];
  let first = true; // of a command: what follows is what it is given
  return text.split(/("(?:[^"\\]|\\.){0,2000}"|'[^']*'|(?:&&|\|\||[|;])|\s+)/).map((w) => {
    if (!w || /^\s+$/.test(w)) {
      if (w?.includes('\n')) first = true;
      return w;
    }
    if (/^(&&|\|\||[|;])$/.test(w)) {
      first = true;
      return w;
    }
    const kind = /^["']/.test(w)
      ? 's'
      : first && !/^\w+=/.test(w)
        ? 'fn'
        : w.startsWith('-')
          ? 'd'
          : '';
    if (kind === 'fn') first = false;
    return kind ? html`<span class=${kind}>${w}</span>` : w;
  });
}
