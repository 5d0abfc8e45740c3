// The content of a question: its words, what would run, what it may touch. Only yaya's own tools
// have words of their own; everything else is shown as a tool with its arguments.
// @ts-check
import { headOf, Host, hostOf, urlOf } from './askedhost.js';
import { Diff, files } from './diff.js';
import { wholePatchOf } from './edited.js';
import { Arguments, Run, Typed } from './run.js';
import { href } from './state.js';
import { listed, plain } from './text.js';
import { html, Name, Pre } from './ui.js';
import { count, rich, t } from './words.js';

/** @typedef {Admin<'Ask'>} Ask */

/** yaya's own tools that run commands: the sandbox in their questions comes from yaya itself, and
 * a server's tool cannot imitate it. */
const COMMANDS = ['shell', 'verify', 'diagram'];
const MOST = 10; // limits that are named; the arguments have all of them

/** The parameters of a command of yaya's own tool; null for other tools. @param {Ask} a */
function ofCommand(a) {
  const q = /** @type {Asked} */ (a.params ?? {});
  return !a.server && COMMANDS.includes(a.tool_name) && typeof q.sandbox === 'string' ? q : null;
}

/** Whether a command runs in a sandbox that enforces something. @param {Asked} q */
const inside = (q) => q.sandbox?.startsWith('profile ') ?? false;

/** The patch of yaya's own tool, '' for other tools. @param {Ask} a */
const changeOf = (a) => (a.server ? '' : wholePatchOf(a.tool_name, a.params));

/** The plan of yaya's own tool, '' for other tools. @param {Ask} a */
const planOf = (a) => {
  const q = /** @type {Record<string, unknown>} */ (a.params ?? {});
  return !a.server && a.tool_name === 'propose_plan' && typeof q.plan === 'string' ? q.plan : '';
};

/** @param {Ask} a */
const isFolder = (a) =>
  a.tool_name === 'folder_trust' && Boolean(/** @type {Asked} */ (a.params)?.folder);

/** The name of a question's tool, without that of its server. @param {{tool_name: string, server?: string}} a */
export const toolOf = (a) =>
  a.server && a.tool_name.startsWith(a.server + '__')
    ? a.tool_name.slice(a.server.length + 2)
    : a.tool_name;

/** The words of a question and its answers. @param {Ask} a */
export function wordsOf(a) {
  const usual = {
    once: t('Approve once'),
    always: t('Approve in this session'),
    no: t('Reject …'),
  };
  if (isFolder(a))
    return {
      head: t('Do you trust this folder?'),
      once: t('Trust'),
      always: t('Trust for this session'),
      no: t('Do not trust …'),
    };
  if (hostOf(a))
    return {
      head: headOf(a),
      once: t('Allow'),
      always: t('Allow in this session'),
      no: t('Refuse …'),
    };
  const q = ofCommand(a);
  if (q && !inside(q)) return { ...usual, head: t('Run this command outside the sandbox?') };
  if (q && a.tool_name === 'shell') return { ...usual, head: t('Run this command?') };
  if (q && a.tool_name === 'verify') return { ...usual, head: t('Run these checks?') };
  if (changeOf(a)) return { ...usual, head: t('Change these files?') };
  if (!a.server && a.tool_name === 'agent') return { ...usual, head: t('Start a sub-agent?') };
  if (planOf(a)) return { ...usual, head: t('Begin the work with this plan?') };
  return { ...usual, head: t('Run {tool}?', { tool: plain(toolOf(a)).slice(0, 160) }) };
}

/** A question in one line, for lists. @param {Ask} a */
export function lineOf(a) {
  const q = /** @type {Asked & Record<string, unknown>} */ (a.params ?? {});
  const patch = changeOf(a);
  if (patch) {
    const all = files(plain(patch, true));
    const added = all.reduce((n, f) => n + f.added, 0);
    const removed = all.reduce((n, f) => n + f.removed, 0);
    return `${count(all.length, '{n} file', '{n} files')}, +${added} −${removed}`;
  }
  if (isFolder(a)) return plain(q.folder);
  if (hostOf(a)) return plain(urlOf(a) || hostOf(a));
  if (Array.isArray(q.commands)) return plain(q.commands.join(' && '));
  if (typeof q.command === 'string') return plain(q.command);
  if (typeof q.goal === 'string' && !a.server) return plain(q.goal);
  const first = Object.entries(q)
    .slice(0, 4)
    .map(([k, v]) => `${k}: ${typeof v === 'string' ? v : JSON.stringify(v)}`);
  return plain(first.join(', ')).slice(0, 300);
}

/** One item of a folder as a line. @param {Admin<'Item'>} i */
const brings = (i) =>
  plain(`${[i.kind, i.name].filter(Boolean).join(' ')}${i.runs ? ': ' + i.runs : ''}`);

/** The consequences of trusting a folder. @param {{q: Asked}} p */
function Folder({ q }) {
  const other = (q.added?.length ?? 0) + (q.removed?.length ?? 0) > 0;
  const all = (q.items ?? []).map(brings).join('\n');
  return html`
    <p class="mono"><${Name} text=${q.folder} max=${4096} /></p>
    ${other &&
    html`
      <p>${t('You trusted this folder earlier, but its content has changed.')}</p>
      <${Pre}
        all
        diff
        text=${[
          ...(q.removed ?? []).map((/** @type {Admin<'Item'>} */ i) => '- ' + brings(i)),
          ...(q.added ?? []).map((/** @type {Admin<'Item'>} */ i) => '+ ' + brings(i)),
        ].join('\n')}
        label=${t('What has changed')} />
    `}
    ${all
      ? html`
          <p>
            ${t(
              'If you trust it, the following is used, with your rights unless a sandbox is named:',
            )}
          </p>
          <${Pre} all text=${all} label=${t('What the folder brings, all of it')} />
        `
      : html`<p>${t('Nothing in it runs by itself.')}</p>`}
    ${(q.allowed?.length ?? 0) > 0 &&
    html`
      <p>${t('You gave its servers more access, which they will have again:')}</p>
      <${Pre}
        all
        text=${(q.allowed ?? []).map(brings).join('\n')}
        label=${t('What you have allowed its servers, all of it')} />
    `}
    <p class="muted">
      ${t(
        'You are still asked about changes and commands of the agent, and before it starts another agent. If you trust the folder for one session only, its servers do not start. Without your trust, the agent can only read and search the folder.',
      )}
    </p>
  `;
}

/** Shows what would run, whole. @param {{a: Ask}} p */
export function Content({ a }) {
  const q = /** @type {Asked} */ (a.params ?? {});
  if (isFolder(a)) return html`<${Folder} q=${q} />`;
  const at = (/** @type {string | undefined} */ dir) =>
    rich('Runs in {folder}', {
      folder: html`<span class="mono"><${Name} text=${dir || '.'} max=${4096} /></span>`,
    });
  if (hostOf(a)) return html`<${Host} a=${a} at=${at} />`;
  const c = ofCommand(a);
  if (c) {
    const text = plain(
      typeof c.command === 'string' ? c.command : (c.commands ?? [c.source ?? '']).join('\n'),
      true,
    );
    const changed = (c.changed_unreviewed ?? []).map((f) => plain(f.path)).join('\n');
    return html`
      <${Run} head=${at(c.cwd)} copied=${text}>
        <${Typed} text=${text} label=${t('The command, all of it')} />
      <//>
      ${(changed || c.changed_unknown) &&
      html`
        <p class="notice">
          ${t('It may run files that calls have changed which nobody approved:')} ${' '}
          ${plain(c.changed_unknown)}
        </p>
        ${changed && html`<${Pre} all text=${changed} label=${t('Changed files')} />`}
      `}
      ${c.outside &&
      c.reason &&
      html`<p class="quoted">
        ${rich("The agent's reason: {reason}", {
          reason: html`<${Name} text=${c.reason} max=${1024} />`,
        })}
      </p>`}
    `;
  }
  const patch = changeOf(a);
  if (patch)
    return html`<${Run} icon="edit" head=${t('Would change')} copied=${plain(patch, true)}>
      <${Diff} all text=${patch} />
    <//>`;
  const plan = planOf(a);
  if (plan) return html`<${Pre} all text=${plain(plan, true)} label=${t('The plan, all of it')} />`;
  const name = html`<b><${Name} text=${a.tool_name} /></b>`;
  return html`<${Run}
    icon="tool"
    head=${a.server
      ? rich('Would call {tool} of the server {server}', {
          tool: name,
          server: html`<b><${Name} text=${a.server} max=${64} /></b>`,
        })
      : rich('Would call {tool}, which is built into yaya', { tool: name })}>
    <${Arguments} of=${a.params} />
  <//>`;
}

/** The things that a call may reach, as lines with an icon and a tone. claim: the server says so itself;
 * weak: a limit that is not enforced.
 * @param {Ask} a @returns {{icon: string, tone: string, text: Children, claim?: boolean,
 * weak?: boolean}[]} */
export function reachOf(a) {
  const q = ofCommand(a);
  if (q) {
    const box = html`<span lang="en">${plain(q.sandbox)}</span>`;
    if (!inside(q)) {
      const rights = t('Runs a program outside the sandbox, with all rights of your user');
      const off = { icon: 'lock', tone: 'bad', text: rich('Sandbox: {box}', { box }) };
      return [{ icon: 'terminal', tone: 'bad', text: rights }, ...(q.outside ? [] : [off])];
    }
    /** @type {ReturnType<typeof reachOf>} */
    const out = [{ icon: 'lock', tone: 'good', text: rich('In the sandbox: {box}', { box }) }];
    if (q.hosts?.length)
      out.push({
        icon: 'globe',
        tone: 'warn',
        text: t('Network: {hosts}', { hosts: listed(q.hosts) }),
      });
    if (q.write?.length)
      out.push({
        icon: 'folder',
        tone: '',
        text: t('Writes in: {folders}', { folders: listed(q.write) }),
      });
    for (const what of (q.weaker ?? []).slice(0, MOST))
      out.push({
        icon: 'warning',
        tone: 'warn',
        weak: true,
        text: html`<a href=${href('sandbox')}>
          ${rich('Not enforced: {what}', { what: html`<span lang="en">${plain(what)}</span>` })}
        </a>`,
      });
    return out;
  }
  if (isFolder(a) || hostOf(a)) return [];
  if (changeOf(a))
    return [{ icon: 'folder', tone: '', text: t('Files of the folder of the session') }];
  if (!a.server)
    return a.tool_name === 'agent'
      ? [{ icon: 'agent', tone: '', text: t('Another agent, which asks about its own calls') }]
      : [];
  const c = a.claims;
  /** @type {ReturnType<typeof reachOf>} */
  const out = [];
  if (c?.read_only) out.push({ icon: 'search', tone: '', text: t('Only reads'), claim: true });
  if (c?.destructive && !c.read_only)
    out.push({ icon: 'trash', tone: 'bad', text: t('May delete or overwrite'), claim: true });
  if (c?.destructive === false && !c.read_only)
    out.push({ icon: 'edit', tone: '', text: t('Only adds, and overwrites nothing'), claim: true });
  if (c?.open_world)
    out.push({
      icon: 'globe',
      tone: 'warn',
      text: t('Reaches things outside the server'),
      claim: true,
    });
  if (c?.open_world === false)
    out.push({ icon: 'server', tone: '', text: t('Stays within the server'), claim: true });
  if (!out.length)
    out.push({ icon: 'warning', tone: 'warn', text: t('The server does not say what it touches') });
  return out;
}
