// The facts about a session, beside its conversation: tokens and cost, the files that
// patches have changed, where it runs, and what can be done with it.
// @ts-check
import { api, seg } from './api.js';
import { Confirm } from './dialog.js';
import { Changed, Plan } from './railchanges.js';
import { download } from './result.js';
import { go, href, may, useLoaded } from './state.js';
import { SessionMode } from './sessionmode.js';
import { SessionModel } from './sessionmodel.js';
import { Do, html, Icon, Name, Time } from './ui.js';
import { locale, rich, t } from './words.js';

/** A number of tokens: 812, 12.3k, 1.2M. @param {number} n */
export const tokens = (n) =>
  n < 1000
    ? String(n)
    : n < 1e6
      ? `${(n / 1000).toFixed(n < 1e5 ? 1 : 0)}k`
      : `${(n / 1e6).toFixed(1)}M`;

/** A cost in US dollars; '' without prices. @param {number} usd */
export const dollars = (usd) =>
  usd > 0
    ? new Intl.NumberFormat(locale(), {
        style: 'currency',
        currency: 'USD',
        maximumFractionDigits: usd < 0.01 ? 4 : 2,
      }).format(usd)
    : '';

/** Goes on with a copy of a session. @param {string} id */
export async function fork(id) {
  const f = await api('POST', `/v1/sessions/${seg(id)}/fork`);
  go('chat', f.id);
}

/** @param {Children} name @param {Children} value */
const row = (name, value) => html`<dt>${name}</dt><dd class="num">${value}</dd>`;

/** @param {{id: string, info: import('./state.js').Loaded<V1<'State'>>, open: boolean,
 * session: import('./session.js').Session | null}} p */
export function Rail({ id, info, open, session }) {
  const d = info.data;
  const turns = useLoaded(`/v1/sessions/${seg(id)}/turns?limit=1`, ['sessions']).data?.turns;
  const turn = turns?.at(-1);
  const u = d?.usage;
  const last = session?.items.usage;
  const window = d?.answering_model?.context_window ?? 0;
  const cached = u && u.input > 0 ? Math.round((100 * u.input_cache_read) / u.input) : 0;
  return html`<aside class=${open ? 'rail open' : 'rail'} aria-label=${t('About this session')}>
    ${d?.restricted &&
    html`<p class="notice">
      ${t('Nobody has trusted its folder: the agent can only read and search there.')}
    </p>`}
    ${d &&
    html`<section>
      <h2>${t('Model')}</h2>
      <${SessionModel} id=${id} state=${d} reload=${info.reload} />
    </section>`}
    ${d &&
    html`<section>
      <h2>${t('Mode')}</h2>
      <${SessionMode} id=${id} state=${d} reload=${info.reload} />
    </section>`}
    ${last &&
    html`<section>
      <h2>${t('Context')}</h2>
      <p>
        ${window > 0
          ? rich('{n} of {window} tokens in the last request', {
              n: html`<b>${tokens(last.input)}</b>`,
              window: tokens(window),
            })
          : rich('{n} tokens in the last request', { n: html`<b>${tokens(last.input)}</b>` })}
      </p>
    </section>`}
    ${u &&
    html`<section>
      <h2>${u.cost_usd > 0 ? t('Cost') : t('Tokens')}</h2>
      <dl class="kv">
        ${u.cost_usd > 0 && row(t('This session'), dollars(u.cost_usd))}
        ${row(t('Read'), tokens(u.input))} ${row(t('Written'), tokens(u.output))}
        ${turn?.usage &&
        row(
          t('Last turn'),
          [tokens(turn.usage.total), dollars(turn.cost_usd ?? 0)].filter(Boolean).join(' · '),
        )}
        ${cached > 0 && row(t('Read from the cache'), `${cached} %`)}
        ${row(t('Calls of the model'), u.steps)}
      </dl>
    </section>`}
    ${session && html`<${Plan} items=${session.items.list} />`}
    ${session &&
    html`<${Changed}
      id=${id}
      items=${session.items.list}
      whole=${session.first <= 1}
      running=${session.running} />`}
    <section>
      <h2>${t('Runs in')}</h2>
      <dl class="kv">
        <dt>${t('Folder')}</dt>
        <dd class="mono small"><${Name} text=${d?.workspace_path} max=${300} /></dd>
        ${turn?.model &&
        html`
          <dt>${t('Model of the last turn')}</dt>
          <dd><${Name} text=${turn.model} max=${100} /></dd>
        `}
        <dt>${t('Strategy')}</dt>
        <dd><${Name} text=${d?.strategy || t('default')} max=${60} /></dd>
        <dt>${t('Started')}</dt>
        <dd><${Time} at=${d?.created_at} /></dd>
        ${d?.parent_id &&
        html`
          <dt>${t('Forked from')}</dt>
          <dd>
            <a href=${href('chat', d.parent_id)}><${Name} text=${d.parent_id} max=${40} /></a>
          </dd>
        `}
        <dt>${t('Id')}</dt>
        <dd class="mono small"><${Name} text=${id} max=${200} /></dd>
      </dl>
    </section>
    <section class="buttons">
      <${Do} kind="small" run=${() => download(`/v1/sessions/${seg(id)}/export`, `${id}.jsonl`)}>
        <${Icon} of="download" />
        ${t('Export')}
      <//>
      ${may('sessions:write') &&
      html`
        <span class="phone">
          <${Do} kind="small" run=${() => fork(id)}><${Icon} of="fork" />${t('Fork')}<//>
        </span>
        <${Confirm}
          kind="small"
          yes=${t('Start over')}
          ask=${t(
            'The session starts over with an empty conversation. The old one moves to the archive.',
          )}
          run=${() => api('POST', `/v1/sessions/${seg(id)}/reset`)}>
          ${t('Start over')}
        <//>
        <${Confirm}
          kind="small"
          yes=${t('Close the session')}
          ask=${t('The session accepts no more messages. You can still fork it.')}
          run=${() => api('POST', `/v1/sessions/${seg(id)}/close`)}>
          ${t('Close')}
        <//>
        <${Confirm}
          kind="small"
          yes=${t('Archive')}
          ask=${t(
            'The session moves to the archive: it is no longer listed, but its tape is kept.',
          )}
          run=${async () => {
            await api('POST', `/v1/sessions/${seg(id)}/archive`);
            go('chat');
          }}>
          ${t('Archive')}
        <//>
      `}
    </section>
  </aside>`;
}
