// Makes untrusted text safe to show, and formats figures with their units.
// @ts-check
import { language, locale, t } from './words.js';

// Characters that a reader does not see, or that change how others appear: of control and format,
// fillers, blanks, variation selectors, tags. Go has the same rule in internal/invisible.
const HIDDEN =
  '[\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029\\u2800\\u{1d159}]';
// The selector that an emoji consists of.
const SELECTOR = '(?<=[0-9#*])\\ufe0f(?=\\u20e3)|(?<=(?![0-9#*])\\p{Emoji})\\ufe0f';
// Joiners between emoji, and in scripts whose letters they shape.
const SHAPED = '(?![\\p{sc=Latin}\\p{sc=Greek}\\p{sc=Cyrillic}\\p{sc=Han}])[\\p{L}\\p{M}]';
const JOINED =
  '(?<=\\p{Emoji}\\ufe0f?)(?<![0-9#*])\\u200d(?=\\p{Extended_Pictographic})' +
  `|(?<=${SHAPED})[\\u200c\\u200d](?=${SHAPED})`;

// Both take milliseconds to make, and most texts are without such characters.
const NAME = once(() => new RegExp(`${SELECTOR}|(${HIDDEN})`, 'gu'));
const PROSE = once(() => new RegExp(`${SELECTOR}|${JOINED}|(${HIDDEN})`, 'gu'));
const ASCII = /^[\x20-\x7e]*$/;

/** @template T @param {() => T} make @returns {() => T} */
function once(make) {
  /** @type {T | undefined} */
  let made;
  return () => (made ??= make());
}

/** @param {string} c */
const escaped = (c) => '\\u{' + (c.codePointAt(0) ?? 0).toString(16) + '}';

/** Makes invisible characters, and those that change how others appear, visible: control
 * characters, directional marks, tags, joiners.
 * @param {unknown} s @param {boolean} [lines] keeps line breaks and tabs
 * @returns {string} */
export function plain(s, lines) {
  const text = String(s ?? '');
  if (ASCII.test(text)) return text;
  return text.replace(NAME(), (c, hidden) =>
    !hidden || (lines && (c === '\n' || c === '\t')) ? c : escaped(c),
  );
}

/** The same for prose, which may contain joiners where emoji and scripts need them.
 * @param {unknown} s @returns {string} */
export const prose = (s) =>
  String(s ?? '').replace(PROSE(), (c, hidden) =>
    !hidden || c === '\n' || c === '\t' ? c : c === '\r' ? '' : escaped(c),
  );

/** A description on one line: its line breaks are spaces, and no escapes. @param {unknown} s */
export const oneLine = (s) => String(s ?? '').replace(/[\t\n\r ]+/g, ' ');

/** @param {unknown} v @returns {string} */
export function pretty(v) {
  try {
    return plain(JSON.stringify(v, null, 2) ?? '', true);
  } catch {
    return '';
  }
}

/** @param {number} n @returns {string} */
export function size(n) {
  if (!(n >= 1024)) return `${n ?? 0} B`;
  const i = Math.min(Math.floor(Math.log2(n) / 10), 4);
  return `${(n / 2 ** (10 * i)).toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][i]}`;
}

/** @param {number} n @returns {string} */
export const ms = (n) =>
  n >= 1000
    ? `${(n / 1000).toFixed(1)} s`
    : n >= 10
      ? `${Math.round(n)} ms`
      : `${(n ?? 0).toFixed(1)} ms`;

/** Names in a sentence: a, b and c. @param {string[]} names @returns {string} */
export const listed = (names) =>
  new Intl.ListFormat(language() === 'en' ? 'en-GB' : locale()).format(names.map((n) => plain(n)));

/** The message of an error. @param {unknown} e */
export const words = (e) => plain(e instanceof Error ? e.message : e);

// Of all times: the lists have 24 hours, whatever the locale has.
export const HOURS = /** @type {const} */ ({ hourCycle: 'h23' });

/** A moment, whole. @param {Date | string} at */
export const exact = (at) => new Date(at).toLocaleString(locale(), HOURS);

/** A time in words: relative if it was in the last day, the time of day if it comes within one.
 * @param {Date} d @param {number} now */
export function when(d, now) {
  const s = (now - d.getTime()) / 1000;
  if (s < -45)
    return s > -86_400
      ? d.toLocaleTimeString(locale(), { timeStyle: 'short', ...HOURS })
      : d.toLocaleDateString(locale());
  if (s < 45) return t('now');
  if (s < 3600) return t('{n} min ago', { n: Math.max(1, Math.round(s / 60)) });
  if (s < 86_400) return t('{n} h ago', { n: Math.round(s / 3600) });
  return d.toLocaleDateString(locale());
}

const STATES = new Map(
  Object.entries({
    ready: t('ready'),
    active: t('active'),
    loaded: t('loaded'),
    ok: t('ok'),
    connected: t('connected'),
    healthy: t('healthy'),
    completed: t('completed'),
    starting: t('starting'),
    installing: t('installing'),
    draining: t('draining'),
    running: t('running'),
    pending: t('pending'),
    waiting: t('waiting'),
    declared: t('declared'),
    waiting_approval: t('waiting approval'),
    requires_action: t('requires action'),
    unloading: t('unloading'),
    degraded: t('degraded'),
    stale: t('stale'),
    failed: t('failed'),
    invalid: t('invalid'),
    revoked: t('revoked'),
    error: t('error'),
    no_quorum: t('no quorum'),
    canceled: t('canceled'),
    disconnected: t('disconnected'),
    disabled: t('disabled'),
    stopped: t('stopped'),
    idle: t('idle'),
    denied: t('denied'),
    queued: t('queued'),
    interrupted: t('interrupted'),
    archived: t('archived'),
    closed: t('closed'),
    unknown: t('unknown'),
    timeout: t('timeout'),
    tool: t('tool error'),
  }),
);

/** A state or outcome, as a word; one that the page does not know as yaya calls it.
 * @param {unknown} state @returns {string} */
export const stateWord = (state) =>
  STATES.get(String(state)) ?? plain(state).slice(0, 40).replaceAll('_', ' ');
