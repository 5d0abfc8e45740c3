// The result of a provider's test, in words.
// @ts-check
import { ms } from './text.js';
import { html, Icon, Name } from './ui.js';
import { locale, t } from './words.js';

/** @param {{of: Admin<'Tested'>}} p */
export function Result({ of }) {
  if (!of.ok)
    return html`<span class="state bad wrap" role="status">
      <span class="dot bad"></span>
      <${Name} text=${of.error} max=${300} />
    </span>`;
  const speed = of.tokens_per_second?.toLocaleString(locale(), { maximumFractionDigits: 0 });
  return html`<span class="flex results" role="status">
    <span class="state good">
      <span class="dot good"></span>
      ${t('answers in {time}', { time: ms(of.first_ms ?? of.latency_ms) })}
    </span>
    ${speed && html`<span class="faint nw">${t('{speed} tokens/s', { speed })}</span>`}
    ${of.tools === 'yes' &&
    html`<span class="good nw"><${Icon} of="check" /> ${t('calls tools')}</span>`}
    ${of.tools === 'no' &&
    html`<span class="warn nw"><${Icon} of="warning" /> ${t('does not call tools')}</span>`}
    ${of.tools === 'failed' &&
    html`<span class="warn">
      <${Icon} of="warning" /> ${t('fails with tools:')} <${Name}
        text=${of.tool_error}
        max=${200} />
    </span>`}
  </span>`;
}
