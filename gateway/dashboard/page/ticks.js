// The states of a server over the last day, as one mark for each part of it. The height says the
// same as the colour.
// @ts-check
import { html } from './ui.js';
import { stateWord } from './text.js';
import { t } from './words.js';

const DAY = 86_400_000;

/** How bad a state is. */
const RANK = /** @type {Record<string, number>} */ ({
  disabled: 0,
  stopped: 0,
  declared: 0,
  ready: 1,
  draining: 2,
  starting: 2,
  installing: 2,
  degraded: 3,
  waiting: 3,
  failed: 4,
  invalid: 4,
});
const FAILED = RANK.failed;
const MARKS = [
  { tone: 'soff', y: 8, h: 3 },
  { tone: 'sok', y: 3, h: 12 },
  { tone: 'swarn', y: 6, h: 9 },
  { tone: 'swarn', y: 6, h: 9 },
  { tone: 'se', y: 0, h: 18 },
];

/** The state of each part of the last day, -1 where yaya knows none: failed if it ever failed,
 * otherwise the state that it had for longest.
 * @param {Admin<'ServerState'>[]} history @param {number} n @param {number} now */
export function partsOf(history, n, now) {
  const all = history.map((h) => ({ at: Date.parse(h.since), rank: RANK[h.state] ?? 0 }));
  return Array.from({ length: n }, (_, i) => {
    const from = now - DAY + (i * DAY) / n;
    const to = Math.min(now, from + DAY / n);
    let rank = -1;
    let longest = 0;
    all.forEach((h, k) => {
      const took = Math.min(all[k + 1]?.at ?? now, to) - Math.max(h.at, from);
      if (took < 0 || rank === FAILED) return;
      if (h.rank === FAILED || took >= longest) {
        rank = h.rank;
        longest = took;
      }
    });
    return rank;
  });
}

/** @param {{s: Admin<'Server'>, n?: number}} p */
export function Ticks({ s, n = 40 }) {
  const history = s.history ?? [];
  const parts = partsOf(history, n, Date.now());
  const failed = history.filter((h) => h.state === 'failed').length;
  const label = history.length
    ? t('{state} now, failed {n} times in the last 24 hours, as far as yaya has run', {
        state: stateWord(s.state),
        n: failed,
      })
    : t('no states known');
  return html`<svg
    class="ticks"
    viewBox=${`0 0 ${n * 5} 18`}
    preserveAspectRatio="none"
    role="img"
    aria-label=${label}>
    ${parts.map((rank, i) => {
      const m = MARKS[rank] ?? { tone: 'sgap', y: 8.5, h: 1 };
      return html`<rect
        class=${'f ' + m.tone}
        x=${i * 5 + 0.6}
        y=${m.y}
        width="3.6"
        height=${m.h} />`;
    })}
  </svg>`;
}
