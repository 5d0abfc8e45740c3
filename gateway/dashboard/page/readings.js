// The windows of the metrics, and readings by time. A time without a reading is a gap.
// @ts-check
import { t } from './words.js';

/** A time that the metrics show: slots of so many ms, and the query for calls in the same time.
 * @typedef {{at: string, title: string, minutes: number, step: number, n: number,
 * series: Record<string, string>}} Window */

/** @type {Window[]} */
export const WINDOWS = [
  {
    at: '30m',
    title: t('30 min'),
    minutes: 30,
    step: 20_000,
    n: 90,
    series: { step: '30', slices: '60' },
  },
  {
    at: '24h',
    title: t('24 h'),
    minutes: 1440,
    step: 720_000,
    n: 120,
    series: { step: '1440', slices: '60' },
  },
  {
    at: '7d',
    title: t('7 d'),
    minutes: 10_080,
    step: 5_040_000,
    n: 120,
    series: { step: '10800', slices: '56' },
  },
  {
    at: '30d',
    title: t('30 d'),
    minutes: 43_200,
    step: 21_600_000,
    n: 120,
    series: { days: '30' },
  },
];

/** @typedef {(Admin<'Reading'> | null)[]} Slots */

/** The last reading of each slot of a window that ends now.
 * @param {Admin<'Reading'>[]} all @param {Window} w @param {number} now
 * @returns {{times: number[], slots: Slots}} */
export function byTime(all, w, now) {
  const end = Math.floor(now / w.step);
  const first = end - w.n + 1;
  /** @type {Slots} */
  const slots = Array(w.n).fill(null);
  for (const r of all) {
    const i = Math.floor(Date.parse(r.ts) / w.step) - first;
    if (i >= 0 && i < w.n) slots[i] = r;
  }
  return { times: slots.map((_, i) => (first + i) * w.step), slots };
}

/** @param {Slots} slots @param {(r: Admin<'Reading'>) => number} of */
export const levels = (slots, of) => slots.map((r) => r && of(r));

/** The growth of a counter in a second, between two readings. One that is smaller than before
 * began again. @param {Slots} slots @param {(r: Admin<'Reading'>) => number} of */
export function rates(slots, of) {
  /** @type {Admin<'Reading'> | null} */
  let before = null;
  return slots.map((r) => {
    const was = before;
    before = r ?? before;
    if (!r || !was) return null;
    const took = (Date.parse(r.ts) - Date.parse(was.ts)) / 1000;
    const grew = of(r) - of(was);
    return took > 0 && grew >= 0 ? grew / took : null;
  });
}
