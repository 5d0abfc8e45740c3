// The language of the page. A text is its own key: English needs no table, each other language
// has one (zh.json), and a text that a table lacks stays English.
// @ts-check

/** @typedef {'en' | 'zh'} Language */

/** @type {{at: Language, name: string}[]} */
export const LANGUAGES = [
  { at: 'en', name: 'English' },
  { at: 'zh', name: '中文' },
];

const KEY = 'yaya.language';

/** @type {ReadonlyMap<string, string>} */
let table = new Map();
/** @type {Language} */
let current = 'en';

/** The language of the texts. */
export const language = () => current;

/** The locale of dates and numbers: the browser's own, if it is one of this language. */
export const locale = () => navigator.languages.find((l) => l.split('-')[0] === current) ?? current;

/** The language that was chosen in this browser, else the first of the browser's that there is.
 * @returns {Language} */
function wanted() {
  let chosen = null;
  try {
    chosen = localStorage.getItem(KEY);
  } catch {
    // Storage may be off: the browser's language is used.
  }
  for (const l of [chosen, ...navigator.languages]) {
    const known = LANGUAGES.find((x) => x.at === l?.split('-')[0]);
    if (known) return known.at;
  }
  return 'en';
}

/** Loads the table of the language, before any other module has a text. */
export async function translate() {
  const l = wanted();
  if (l !== 'en') {
    const r = await fetch(`/ui/${l}.json`); // as the server has the browser load it before, or it is loaded twice
    if (!r.ok) return; // English
    table = new Map(Object.entries(await r.json()));
    current = l;
  }
  document.documentElement.lang = current;
}

/** Keeps the choice and loads the page again: texts are made at many moments.
 * @param {Language} l */
export function speak(l) {
  try {
    localStorage.setItem(KEY, l);
  } catch {
    return; // nowhere to keep it
  }
  location.reload();
}

/** The names in a text that stand for values.
 * @template {string} T
 * @typedef {T extends `${string}{${infer N}}${infer R}` ? N | Blanks<R> : never} Blanks */

/** @template {string} T @template V
 * @typedef {[Blanks<T>] extends [never] ? [] : [Record<Blanks<T>, V>]} Values */

/** A text in the user's language. {name} in it stands for a value.
 * @template {string} T @param {T} text @param {Values<T, string | number>} values
 * @returns {string} */
export function t(text, ...values) {
  return fill(text, values[0])
    .map((x) => String(x))
    .join('');
}

/** The same with values that may be elements.
 * @template {string} T @param {T} text @param {Values<T, Children>} values
 * @returns {Children[]} */
export const rich = (text, ...values) => fill(text, values[0]);

/** A number with its noun. The text of many is the key: of(3, '{n} call', '{n} calls').
 * @param {number} n @param {string} one @param {string} many */
export const count = (n, one, many) =>
  fill(n === 1 && current === 'en' ? one : many, { n })
    .map((x) => String(x))
    .join('');

/** Looks up a key that is not a text of the page. @param {string} key */
export const known = (key) => table.get(key);

/** @param {string} text @param {Record<string, unknown> | undefined} values
 * @returns {Children[]} */
function fill(text, values) {
  const s = table.get(text) ?? text;
  if (!values) return [s];
  return s
    .split(/(\{\w+\})/)
    .map((part) =>
      /^\{\w+\}$/.test(part) && Object.hasOwn(values, part.slice(1, -1))
        ? /** @type {Children} */ (values[part.slice(1, -1)])
        : part,
    );
}
