// The state that the views share: the current place, the user, and loaded data, which is loaded
// again when yaya reports a change. The page does not poll.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { ApiError, request } from './api.js';

/** @template T @typedef {{data: T | undefined, error: unknown, reload: () => void}} Loaded */

/** A value that views subscribe to. @template T */
export class Signal {
  /** @param {T} value */
  constructor(value) {
    this.value = value;
    /** @type {Set<() => void>} */
    this.subs = new Set();
  }

  /** @param {T} value */
  set(value) {
    if (value === this.value) return;
    this.value = value;
    for (const f of [...this.subs]) f();
  }

  /** @returns {T} */
  use() {
    const [, tick] = useState(0);
    useEffect(() => {
      const f = () => tick((n) => n + 1);
      this.subs.add(f);
      f();
      return () => void this.subs.delete(f);
    }, [this]);
    return this.value;
  }
}

/** The state that all views share. over names the layer over the page, '' for none.
 * @type {{me: Signal<Admin<'Identity'> | null>, link: Signal<{state: string, why: string}>,
 * title: Signal<string>, over: Signal<'' | 'palette' | 'keys'>,
 * live: import('./live.js').Live | null}} */
export const page = {
  me: new Signal(/** @type {Admin<'Identity'> | null} */ (null)),
  link: new Signal({ state: 'connecting', why: '' }),
  title: new Signal(''),
  over: new Signal(/** @type {'' | 'palette' | 'keys'} */ ('')),
  live: null,
};

/** @param {string} scope */
export const may = (scope) => page.me.value?.scopes.includes(scope) ?? false;

/** Returns the current place: the parts after #/ .
 * @returns {string[]} */
const parts = () =>
  location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .map((s) => {
      try {
        return decodeURIComponent(s);
      } catch {
        return s; // no view has such a name
      }
    });
export const route = new Signal(parts());
export const locate = () => route.set(parts());
addEventListener('hashchange', locate);

/** @param {...string} to */
export const href = (...to) => '#/' + to.map(encodeURIComponent).join('/');
/** @param {...string} to */
export const go = (...to) => void (location.hash = href(...to));

/** Loaded data. Its path determines its type.
 * @typedef {{data: any, error: unknown, parts: string[], subs: Set<() => void>, busy: boolean,
 * again: boolean}} Entry */

/** @type {Map<string, Entry>} */
const entries = new Map();

/** @param {string} path @param {Entry} e */
async function fetchInto(path, e) {
  if (e.busy) {
    e.again = true;
    return;
  }
  e.busy = true;
  do {
    e.again = false;
    try {
      e.data = await (await request('GET', path)).json();
      e.error = null;
    } catch (err) {
      // The old data is still the best available while yaya cannot be reached.
      if (!(err instanceof ApiError && err.status === 0) || e.data === undefined) e.error = err;
    }
    for (const f of [...e.subs]) f();
  } while (e.again);
  e.busy = false;
}

/** Data from yaya, kept up to date while a view shows it.
 * @template {string} const P
 * @param {(P & Known<'GET', P>) | null} path null for nothing
 * @param {string[]} parts of yaya that it depends on
 * @returns {Loaded<AnswerOf<'GET', P>>} */
export function useLoaded(path, parts) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!path) return undefined;
    let e = entries.get(path);
    if (!e) {
      if (entries.size > 100) for (const [k, v] of entries) if (!v.subs.size) entries.delete(k);
      e = { data: undefined, error: null, parts, subs: new Set(), busy: false, again: false };
      entries.set(path, e);
    }
    const f = () => tick((n) => n + 1);
    e.subs.add(f);
    void fetchInto(path, e);
    return () => void e.subs.delete(f);
  }, [path]);
  const e = path ? entries.get(path) : undefined;
  return { data: e?.data, error: e?.error, reload: () => void (path && e && fetchInto(path, e)) };
}

/** Reloads the shown data that depends on the given parts of yaya; all of it without parts.
 * @param {string[]} [changed] */
export function changed(changed) {
  for (const [path, e] of entries) {
    if (changed && !e.parts.some((p) => changed.includes(p))) continue;
    if (e.subs.size) void fetchInto(path, e);
  }
}
