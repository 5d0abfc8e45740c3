// The output of a server, followed: standard error, log messages, changes of its state.
// @ts-check
import { useEffect, useRef, useState } from './vendor/hooks.js';
import { seg } from './api.js';
import { Copy } from './copy.js';
import { follow } from './events.js';
import { plain } from './text.js';
import { Empty, html, Problem } from './ui.js';
import { t } from './words.js';

const MOST = 2000; // lines that are kept
const SHOWN = 500; // lines in the document
const DRAW = 200; // ms between drawings

/** @typedef {Admin<'Line'>} Line */

const LEVELS = [t('All'), t('Warnings'), t('Errors')]; // by the weight of their lines

/** How serious a line is: 0 for most, 1 for warnings, 2 for errors.
 * @param {Line} l */
function weight(l) {
  const level = l.level || (/\b(error|fatal|panic)\b/i.exec(l.text) ? 'error' : '');
  if (['error', 'critical', 'alert', 'emergency'].includes(level)) return 2;
  return level === 'warning' || level === 'warn' || /\bwarn(ing)?\b/i.test(l.text) ? 1 : 0;
}

/** @param {Line} l */
const time = (l) => {
  const d = new Date(l.time);
  return `${d.toLocaleTimeString('en-GB')}.${String(d.getMilliseconds()).padStart(3, '0')}`;
};

/** @param {{name: string}} p */
export function Logs({ name }) {
  const [lines, setLines] = useState(/** @type {Line[]} */ ([]));
  const [level, setLevel] = useState(0);
  const [paused, setPaused] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const end = useRef(true); // the reader is at the end, and stays there
  useEffect(() => {
    if (paused) return undefined;
    /** @type {Line[]} */
    let all = lines;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const stop = follow(
      () => `/api/mcp/servers/${seg(name)}/logs/events?after=${all.at(-1)?.id ?? 0}&limit=${MOST}`,
      (e) => {
        const l = /** @type {Line} */ (e.data);
        if (e.name !== 'line' || l.id <= (all.at(-1)?.id ?? 0)) return;
        all = [...all.slice(1 - MOST), l];
        timer ??= setTimeout(() => {
          timer = undefined;
          setLines(all);
        }, DRAW);
      },
      setError,
    );
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [name, paused]);
  useEffect(() => {
    const b = box.current;
    if (b && end.current) b.scrollTop = b.scrollHeight;
  });
  const shown = lines.filter((l) => weight(l) >= level).slice(-SHOWN);
  return html`<section class="box" aria-label=${t('Logs')}>
    <header>
      <h2>${t('Logs')}</h2>
      <span class="state faint">
        <span class=${paused ? 'dot off' : 'dot good'}></span>
        ${paused ? t('paused') : t('following')}
      </span>
      <span class="flex end">
        <span class="seg" role="group" aria-label=${t('Show')}>
          ${LEVELS.map(
            (word, i) =>
              html`<button type="button" aria-pressed=${i === level} onClick=${() => setLevel(i)}>
                ${word}
              </button>`,
          )}
        </span>
        <button type="button" class="small" onClick=${() => setPaused(!paused)}>
          ${paused ? t('Follow') : t('Pause')}
        </button>
        <${Copy} text=${shown
          .map((l) => `${l.time} ${l.stream} ${l.level ?? ''} ${plain(l.text)}`)
          .join('\n')} />
      </span>
    </header>
    <${Problem} error=${error} />
    ${shown.length
      ? html`<div
          class="logs"
          role="log"
          aria-label=${t('Output of the server')}
          tabindex="0"
          ref=${box}
          onScroll=${(/** @type {Event & {currentTarget: HTMLElement}} */ e) => {
            const b = e.currentTarget;
            end.current = b.scrollHeight - b.clientHeight - b.scrollTop < 40;
          }}>
          ${shown.map(
            (l) =>
              html`<div key=${l.id} class=${['', 'w', 'e'][weight(l)]}>
                <span class="faint">${time(l)}</span>
                <span class="faint">${plain(l.level || l.stream)}</span>
                <span>${plain(l.text)}</span>
              </div>`,
          )}
        </div>`
      : html`<${Empty} icon="logs">
          ${lines.length
            ? t('No lines of that level.')
            : t('The server has not said anything yet.')}
        <//>`}
  </section>`;
}
