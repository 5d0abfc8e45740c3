// The calls of a window by server, tool or client, each with the way to its calls in Traffic.
// @ts-check
import { href } from './state.js';
import { ms, size } from './text.js';
import { worded } from './traffic.js';
import { Empty, html, Name } from './ui.js';
import { locale, t } from './words.js';

/** The groupings. @type {readonly {at: string, title: string, name: string}[]} */
const BY = [
  { at: 'server', title: t('By server'), name: t('Server') },
  { at: 'tool', title: t('By tool'), name: t('Tool') },
  { at: 'client', title: t('By client'), name: t('Client') },
];

const MOST = 50;

/** @param {{of: Admin<'Series'>, by: string, set: (by: string) => void,
 * w: import('./readings.js').Window, server: string}} p */
export function Groups({ of, by, set, w, server }) {
  const kind = BY.find((b) => b.at === by) ?? BY[0];
  const most = of.groups[0]?.calls ?? 0;
  const to = (/** @type {string} */ name, /** @type {boolean} */ errors) =>
    href(
      'traffic',
      worded({ ...(server && { server }), ...(name && { [by]: name }), errors, span: w.minutes }),
    );
  const percent = (/** @type {number} */ n, /** @type {number} */ all) =>
    `${((n / Math.max(1, all)) * 100).toLocaleString(locale(), { maximumFractionDigits: 1 })} %`;
  return html`<section class="box" aria-label=${kind.title}>
    <header>
      <h2>${kind.title}</h2>
      <div class="seg end" role="group" aria-label=${t('Group calls')}>
        ${BY.filter((b) => !server || b.at !== 'server').map(
          (b) =>
            html`<button type="button" aria-pressed=${b === kind} onClick=${() => set(b.at)}>
              ${b.name}
            </button>`,
        )}
      </div>
    </header>
    ${of.groups.length
      ? html`<table class="list" role="table" aria-label=${kind.title}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${kind.name}</th>
              <th role="columnheader" class="num">${t('Calls')}</th>
              <th role="columnheader" class="wide">${t('Share')}</th>
              <th role="columnheader" class="num">p50</th>
              <th role="columnheader" class="num">p95</th>
              <th role="columnheader" class="num">p99</th>
              <th role="columnheader" class="num" title=${t('Size of the arguments')}>
                ${t('In')}
              </th>
              <th role="columnheader" class="num" title=${t('Size of the results')}>${t('Out')}</th>
              <th role="columnheader" class="num">${t('Failed')}</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${of.groups
              .slice(0, MOST)
              .map(
                (g) =>
                  html`<tr role="row" key=${g.name}>
                    <td role="cell" class="p1">
                      <a class="strong" href=${to(g.name, false)}>
                        <${Name} text=${g.name || t('yaya itself')} max=${64} />
                      </a>
                    </td>
                    <td role="cell" class="num p2">${g.calls.toLocaleString(locale())}</td>
                    <td role="cell" class="wide">
                      <span class="flex share">
                        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                          <rect
                            class="f s1"
                            width=${((g.calls / most) * 100).toFixed(1)}
                            height="4" />
                        </svg>
                        <span class="faint">${percent(g.calls, of.total.calls)}</span>
                      </span>
                    </td>
                    <td role="cell" class="num">${ms(g.p50_ms)}</td>
                    <td role="cell" class="num">${ms(g.p95_ms)}</td>
                    <td role="cell" class="num">${ms(g.p99_ms)}</td>
                    <td role="cell" class="num">${size(g.arguments_bytes)}</td>
                    <td role="cell" class="num">${size(g.result_bytes)}</td>
                    <td role="cell" class="num">
                      ${g.errors
                        ? html`<a class="bad" href=${to(g.name, true)}>
                            ${percent(g.errors, g.calls)}
                          </a>`
                        : '0 %'}
                    </td>
                  </tr>`,
              )}
          </tbody>
        </table>`
      : html`<${Empty}>${t('There were no calls in this time.')}<//>`}
  </section>`;
}
