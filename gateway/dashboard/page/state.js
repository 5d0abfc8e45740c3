// What the views share: where the page is, who its user is, and what has been loaded,
// which is loaded anew when yaya says that it has changed. Nothing is polled.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { api } from './api.js';

/** @template T @typedef {{data: T | undefined, error: any, reload: () => void}} Loaded */

/** A value that views follow. @template T */
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

/** @type {{me: Signal<{kind: string, id: string, scopes: string[]} | null>, link: Signal<{state: string, why: string}>, live: import('./live.js').Live | null}} */
export const page = { me: new Signal(/** @type {any} */ (null)), link: new Signal({ state: 'connecting', why: '' }), live: null };

/** @param {string} scope */
export const may = (scope) => page.me.value?.scopes.includes(scope) ?? false;

/** Where the page is: the parts behind #/ .
 * @returns {string[]} */
const parts = () => location.hash.replace(/^#\/?/, '').split('/').map((s) => {
  try {
    return decodeURIComponent(s);
  } catch {
    return '';
  }
});
export const route = new Signal(parts());
export const locate = () => route.set(parts());
addEventListener('hashchange', locate);

/** @param {...string} to */
export const href = (...to) => '#/' + to.map(encodeURIComponent).join('/');
/** @param {...string} to */
export const go = (...to) => void (location.hash = href(...to));

/** Something that was loaded. @typedef {{data: any, error: any, parts: string[], subs: Set<() => void>, busy: boolean, again: boolean}} Entry */

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
      e.data = await api('GET', path);
      e.error = null;
    } catch (err) {
      // What was there is still the best there is while yaya is away.
      if (/** @type {any} */ (err).status !== 0 || e.data === undefined) e.error = err;
    }
    for (const f of [...e.subs]) f();
  } while (e.again);
  e.busy = false;
}

/** Something that yaya has, kept up to date while a view shows it.
 * @param {string | null} path null for nothing @param {string[]} parts of yaya that it depends on @returns {Loaded<any>} */
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

/** Loads anew what is shown and depends on parts of yaya; all of it without parts.
 * @param {string[]} [changed] */
export function changed(changed) {
  for (const [path, e] of entries) {
    if (changed && !e.parts.some((p) => changed.includes(p))) continue;
    if (e.subs.size) void fetchInto(path, e);
  }
}
