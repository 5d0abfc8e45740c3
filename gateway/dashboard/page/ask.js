// A question of yaya's: what would run, what it may touch, why it is asked, and the answers. The
// frame is drawn here alone; only the text in its boxes comes from somebody else.
// @ts-check
import { useEffect, useLayoutEffect, useRef, useState } from './vendor/hooks.js';
import { api, ApiError, seg } from './api.js';
import { Content, wordsOf } from './asked.js';
import { Facts } from './facts.js';
import { single } from './keys.js';
import { Whole } from './run.js';
import { changed, may } from './state.js';
import { style } from './style.js';
import { words } from './text.js';
import { ARMING, Field, html, Icon, Problem, typed } from './ui.js';
import { rich, t } from './words.js';

style('code');
style('approvals');

/** @typedef {Admin<'Ask'>} Ask */
/** @typedef {Admin<'Answer'>['response']} Response */

/** Time that is left, as minutes and seconds. @param {string} deadline @param {number} now */
export function left(deadline, now) {
  const s = Math.max(0, Math.ceil((Date.parse(deadline) - now) / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

/** The time, each second. */
export function useNow() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const i = setInterval(() => document.hidden || setNow(Date.now()), 1000);
    return () => clearInterval(i);
  }, []);
  return now;
}

/** How urgent the end of a question is. @param {string} deadline @param {number} now */
export const urgency = (deadline, now) => (Date.parse(deadline) - now < 60_000 ? 'bad' : 'warn');

/** The ids of the questions, as one string. @param {Ask[]} asks */
export const around = (asks) => asks.map((a) => a.id).join(' ');

/** Asks by what they ask. @param {Ask[]} asks @returns {[string, Ask[]][]} */
export function grouped(asks) {
  /** @type {Map<string, Ask[]>} */
  const by = new Map();
  for (const a of asks) {
    const key = JSON.stringify([a.digest ?? a.id, a.session_id]);
    by.set(key, [...(by.get(key) ?? []), a]);
  }
  return [...by.entries()];
}

/** Answers all of the same questions. Somebody else may have answered some already; it fails only
 * if all have failed. @param {Ask[]} asks @param {Response} response @param {string} feedback */
async function answer(asks, response, feedback) {
  const all = await Promise.allSettled(
    asks.map((x) =>
      api('POST', `/api/approvals/${seg(x.id)}`, {
        response,
        ...(response === 'reject' && feedback && { feedback }),
      }),
    ),
  );
  const failed = all.filter((r) => r.status === 'rejected');
  changed(['approvals']);
  if (failed.length === all.length) throw /** @type {PromiseRejectedResult} */ (failed[0]).reason;
}

/** A question with the exact content that would run, and three answers.
 * @param {{asks: Ask[], where?: Children, among: string, only?: boolean, large?: boolean,
 * done?: () => void}} p among changes when anything around it changes; only: its keys work
 * wherever the focus is; large: it is the view */
export function Question({ asks, where, among, only, large, done }) {
  const a = asks[0];
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [why, setWhy] = useState('');
  const [asked, setAsked] = useState(false); // for the reason
  const [armed, setArmed] = useState(false);
  const [busy, setBusy] = useState('');
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const there = useRef(true);
  const now = useNow();
  const allowed = may('approvals:answer');
  useEffect(() => {
    there.current = true;
    return () => void (there.current = false);
  }, []);
  // When its surroundings change, a button may have moved under the user's finger.
  useEffect(() => {
    setArmed(false);
    const timer = setTimeout(() => setArmed(true), ARMING);
    return () => clearTimeout(timer);
  }, [among]);
  const send = async (/** @type {Response} */ response) => {
    if (!armed || busy) return;
    setBusy(response);
    setError(null);
    try {
      await answer(asks, response, why);
      if (there.current) done?.();
    } catch (e) {
      if (!there.current) return;
      setBusy(''); // the card goes when yaya says that the question is gone
      setError(e);
    }
  };
  const over = Date.parse(a.deadline) <= now;
  const reject = () => {
    if (armed && !busy) setAsked(true);
  };
  // Before the next key: who has pressed n and writes a reason does not answer with a y in it.
  useLayoutEffect(() => {
    if (asked) box.current?.querySelector('input')?.focus();
  }, [asked]);
  useEffect(() => {
    const key = (/** @type {KeyboardEvent} */ e) => {
      if (!single.value || !allowed || over || asked) return;
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || e.repeat) return;
      const at = e.target;
      if (at instanceof HTMLElement && ['INPUT', 'TEXTAREA', 'SELECT'].includes(at.tagName)) return;
      if (document.querySelector('dialog[open]')) return;
      if (!only && !(at instanceof Node && box.current?.contains(at))) return;
      const run = { y: () => send('approve'), s: () => send('approve_for_session'), n: reject }[
        e.key
      ];
      if (!run) return;
      e.preventDefault();
      void run();
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  });
  const { head, once, always, no } = wordsOf(a);
  const off = !armed || Boolean(busy) || over;
  const button = (
    /** @type {string} */ kind,
    /** @type {string} */ text,
    /** @type {string} */ key,
    /** @type {Response | ''} */ response,
  ) =>
    html`<button
      type="button"
      class=${kind}
      disabled=${off}
      aria-keyshortcuts=${key}
      onClick=${response ? () => void send(response) : reject}>
      ${response === 'approve' && html`<${Icon} of="check" />`}
      ${busy && busy === response ? t('Sending …') : text} ${single.value &&
      html`<kbd aria-hidden="true">${key}</kbd>`}
    </button>`;
  return html`<section
    class=${large ? 'ask large' : 'ask'}
    ref=${box}
    aria-label=${t('yaya asks: {question}', { question: head })}>
    <header>
      <span class="seal"><${Icon} of="shield" />${t('yaya asks')}</span>
      <h2 tabindex="-1">${head}</h2>
      <span class=${'flex end left ' + urgency(a.deadline, now)}>
        <${Icon} of="clock" />
        <span>
          ${over
            ? t('Refused: nobody answered in time')
            : large
              ? rich('Refused in {time} if nobody answers', {
                  time: html`<b>${left(a.deadline, now)}</b>`,
                })
              : t('Refused in {time}', { time: left(a.deadline, now) })}
        </span>
      </span>
    </header>
    <div class="body">
      ${where && html`<p class="chain">${where}</p>`}
      <${Content} a=${a} />
      <${Facts} a=${a} times=${asks.length} large=${large} />
      <${Whole} of=${a.params} />
    </div>
    <footer>
      ${error instanceof ApiError && error.status === 409
        ? html`<p class="notice" role="alert">${words(error)}</p>`
        : html`<${Problem} error=${error} />`}
      ${!allowed
        ? html`<p class="muted">
            ${t(
              'This device can watch but not answer. To change that, use Rights under Devices on the machine that yaya runs on.',
            )}
          </p>`
        : asked
          ? html`<form
              class="flex why"
              onKeyDown=${(/** @type {KeyboardEvent} */ e) => {
                if (e.key !== 'Escape') return;
                e.stopPropagation();
                setAsked(false);
                box.current?.querySelector('h2')?.focus();
              }}
              onSubmit=${(/** @type {Event} */ e) => {
                e.preventDefault();
                void send('reject');
              }}>
              <${Field} label=${t('Reason')} hint=${t('The model sees it. It may stay empty.')}>
                ${(/** @type {string} */ id) =>
                  html`<input id=${id} value=${why} maxlength="16384" onInput=${typed(setWhy)} />`}
              <//>
              <button type="button" onClick=${() => setAsked(false)}>${t('Cancel')}</button>
              <button type="submit" class="danger" disabled=${off}>
                ${busy ? t('Sending …') : t('Reject')}
              </button>
            </form>`
          : html`
              ${button('primary', once, 'y', 'approve')}
              ${button('', always, 's', 'approve_for_session')}
              ${button('danger', no, 'n', '')}
            `}
    </footer>
  </section>`;
}
