// The callers of a server that is added, as rules of approval.rules.
// @ts-check
import { api, seg } from './api.js';
import { Field, html, typed } from './ui.js';
import { t } from './words.js';

const RULES = 'approval.rules';

/** The callers that may, and whether yaya asks about each call of an MCP client.
 * @typedef {{mcp: boolean, loop: boolean, ask: boolean}} Allowed */

/** The state without a rule. @type {Allowed} */
export const everybody = { mcp: true, loop: true, ask: false };

/** @type {['mcp' | 'loop', string, string][]} */
const ORIGINS = [
  ['mcp', t('MCP clients'), t('MCP clients may not call its tools: yaya refuses their calls.')],
  [
    'loop',
    t('yaya’s own agents'),
    t('yaya’s own agents may not call its tools: yaya refuses their calls.'),
  ],
];

/** @param {{now: Allowed, set: (a: Allowed) => void}} p */
export const Callers = ({ now, set }) => html`
  <fieldset class="texts">
    <legend>${t('Offer to')}</legend>
    ${ORIGINS.map(
      ([at, title]) =>
        html`<label class="flex" key=${at}>
          <input
            type="checkbox"
            checked=${now[at]}
            onChange=${() => set({ ...now, [at]: !now[at] })} />
          ${title}
        </label>`,
    )}
  </fieldset>
  ${now.mcp &&
  html`<${Field}
    label=${t('Calls of MCP clients')}
    hint=${t('yaya asks you about the calls of its own agents anyway.')}>
    ${(/** @type {string} */ id) =>
      html`<select
        id=${id}
        value=${now.ask ? 'ask' : ''}
        onChange=${typed((v) => set({ ...now, ask: v === 'ask' }))}>
        <option value="">${t('The users of the clients approve them')}</option>
        <option value="ask">${t('yaya asks you about each')}</option>
      </select>`}
  <//>`}
`;

/** @param {Allowed} a */
const asks = (a) => a.mcp && a.ask;

/** The rules in words, for the question. @param {Allowed} a */
export const ruled = (a) => [
  ...ORIGINS.filter(([at]) => !a[at]).map(([, , refused]) => refused),
  ...(asks(a) ? [t('yaya asks you about each call of an MCP client.')] : []),
];

/** A rule for comparison: yaya may order its members otherwise. @param {unknown} r */
const same = (r) => JSON.stringify(Object.entries(r ?? {}).sort());

/** Changes the list of rules. @param {(all: unknown[]) => unknown[]} to */
async function change(to) {
  const now = (await api('GET', '/api/settings')).find((s) => s.key === RULES)?.value ?? [];
  if (!Array.isArray(now)) throw new Error(t('The setting {name} is not a list.', { name: RULES }));
  await api('PATCH', `/api/config/${seg(RULES)}`, { value: to(now) });
}

/** Adds the rules about a server, which is not there yet, so that none of its calls is before
 * them. Returns the reverse. @param {string} server @param {Allowed} a
 * @returns {Promise<() => Promise<unknown>>} */
export async function allow(server, a) {
  const rules = [
    ...ORIGINS.filter(([at]) => !a[at]).map(([origin]) => ({
      provider: server,
      origin,
      decision: 'deny',
    })),
    ...(asks(a) ? [{ provider: server, origin: 'mcp', decision: 'ask' }] : []),
  ];
  /** @type {Set<string>} */
  const added = new Set();
  if (rules.length)
    await change((all) => {
      const there = new Set(all.map(same));
      const more = rules.filter((r) => !there.has(same(r)));
      for (const r of more) added.add(same(r));
      return [...all, ...more];
    });
  return async () => added.size > 0 && change((all) => all.filter((r) => !added.has(same(r))));
}
