// The facts about a question besides its content: what the call may reach, why it is asked,
// and how the same question was answered before.
// @ts-check
import { reachOf } from './asked.js';
import { href, useLoaded } from './state.js';
import { html, Icon, Name } from './ui.js';
import { count, rich, t } from './words.js';

/** @typedef {Admin<'Ask'>} Ask */

/** The classes of badges, by tone. */
const MARKS = new Map([
  ['good', 'good'],
  ['warn', 'busy'],
  ['bad', 'bad'],
]);

/** The facts about a question besides its content: two lists, or a line of marks in a
 * conversation. @param {{a: Ask, times: number, large?: boolean}} p */
export function Facts({ a, times, large }) {
  const past = useLoaded('/api/approvals/answered', ['approvals']).data ?? [];
  const same = past.filter((x) => x.digest === a.digest);
  const yes = same.filter((x) => x.response?.startsWith('approve')).length;
  const no = same.filter((x) => x.response === 'reject').length;
  const reach = reachOf(a);
  if (!large) {
    const weak = reach.filter((r) => r.weak).length;
    const claimed = reach.some((r) => r.claim);
    return html`<p class="marks small">
      ${reach
        .filter((r) => !r.weak)
        .map(
          (r) =>
            html`<span class=${'badge ' + (MARKS.get(r.tone) ?? '')}>
              <${Icon} of=${r.icon} />
              ${r.text}
            </span>`,
        )}
      ${weak > 0 &&
      html`<a class="badge busy" href=${href('sandbox')}>
        <${Icon} of="warning" />
        ${count(weak, '{n} limit is not enforced', '{n} limits are not enforced')}
      </a>`}
      ${claimed && html`<span class="faint">${t('as the server says')}</span>`}
      ${times > 1 &&
      html`<span class="badge">
        ${t('Asked {n} times: one answer counts for all', { n: times })}
      </span>`}
      <span class="faint">
        ${a.why
          ? rich('Rule: {reason}', { reason: html`<${Name} text=${a.why} max=${160} />` })
          : a.server
            ? rich('From the server {server}', {
                server: html`<${Name} text=${a.server} max=${64} />`,
              })
            : t('Built into yaya')}
      </span>
    </p>`;
  }
  return html`<div class="cols c11 facts">
    ${reach.length > 0 &&
    html`<div>
      <h3>${t('What it may reach')}</h3>
      <ul class="mini">
        ${reach.map(
          (r) =>
            html`<li>
              <span class=${r.tone || 'muted'}><${Icon} of=${r.icon} /></span>
              <span>${r.text}</span>
            </li>`,
        )}
      </ul>
      ${reach.some((r) => r.claim) &&
      html`<p class="faint small">
        ${t('This is what the server says of itself. Nobody has checked it.')}
      </p>`}
    </div>`}
    <div>
      <h3>${t('Why you are asked')}</h3>
      <ul class="mini">
        <li>
          <span class="muted"><${Icon} of="pin" /></span>
          <span>
            ${a.why
              ? rich('Rule: {reason}', {
                  reason: html`<b><${Name} text=${a.why} max=${300} /></b>`,
                })
              : a.server
                ? t('Tools of servers ask, unless a rule allows them')
                : a.kind === 'write'
                  ? t('Changes ask, unless a rule allows them')
                  : a.kind === 'exec'
                    ? t('Commands ask, unless a rule allows them')
                    : t('It always asks')}
          </span>
        </li>
        <li>
          ${a.server
            ? html`
                <span class="muted"><${Icon} of="server" /></span>
                <span>
                  ${rich('From the server {server}', {
                    server: html`<a href=${href('servers', a.server)}>
                      <${Name} text=${a.server} max=${64} />
                    </a>`,
                  })}
                </span>
              `
            : html`
                <span class="good"><${Icon} of="check" /></span>
                <span>${t('Built into yaya, not from a server')}</span>
              `}
        </li>
        ${times > 1 &&
        html`<li>
          <span class="muted"><${Icon} of="queue" /></span>
          <span>${t('Asked {n} times: one answer counts for all', { n: times })}</span>
        </li>`}
        ${(yes > 0 || no > 0) &&
        html`<li>
          <span class="muted"><${Icon} of="clock" /></span>
          <span>${t('The same call before: approved {yes}, rejected {no}', { yes, no })}</span>
        </li>`}
      </ul>
    </div>
  </div>`;
}
