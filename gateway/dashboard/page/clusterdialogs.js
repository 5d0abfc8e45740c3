// How nodes join and leave: the page shows the commands, and yaya takes them on its machine.
// @ts-check
import { useState } from './vendor/hooks.js';
import { Command } from './copy.js';
import { Dialog } from './dialog.js';
import { plain } from './text.js';
import { Field, html, Name, typed } from './ui.js';
import { rich, t } from './words.js';

/** @typedef {Admin<'Cluster'>} State */

/** The address of a yaya as a word of a command line; "" if it cannot be one.
 * @param {string} text */
function address(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  const at = url ? (url.origin + url.pathname).replace(/\/$/, '') : '';
  if (!/^https?:\/\/[A-Za-z0-9.:[\]_~/-]+$/.test(at)) return '';
  return at.includes('[') ? `'${at}'` : at;
}

const LOOPBACK = /^'?https?:\/\/(localhost|127\.|\[::1\])/;

/** Invitations hand out the identity of the cluster: yaya takes the command over its socket only,
 * from the user that runs it, so the page shows it.
 * @param {{c: State, done: () => void}} p */
export function Invite({ c, done }) {
  const [at, setAt] = useState(location.origin);
  const [before] = useState(new Set(c.members?.map((m) => m.name)));
  const url = address(at);
  const come = c.members?.filter((m) => !before.has(m.name)) ?? [];
  return html`<${Dialog} title=${t('Invite a node')} onClose=${done}>
    <${Field}
      label=${t('Address of this yaya for the new node')}
      hint=${LOOPBACK.test(url)
        ? t('Other machines do not reach this address: enter the one at which they do.')
        : t('http://… or https://… as the new node reaches it.')}>
      ${(/** @type {string} */ id) =>
        html`<input
          id=${id}
          value=${at}
          maxlength="1024"
          spellcheck="false"
          onInput=${typed(setAt)} />`}
    <//>
    ${url
      ? html`
          <p>
            ${rich('Run on the machine of {name}:', {
              name: html`<b><${Name} text=${c.node} max=${63} /></b>`,
            })}
          </p>
          <${Command}
            text=${`yaya cluster invite --url ${url}`}
            label=${t('The command that invites')} />
        `
      : html`<p class="problem" role="alert">
          ${t('This is not the address of a yaya, such as https://gate.example:8787.')}
        </p>`}
    <p>
      ${t('It prints the command for the other machine, where yaya has to be stopped.')}
      ${' '}
      ${c.members?.some((m) => m.route) &&
      rich('Replace {place} in it with the address at which the other nodes reach that machine.', {
        place: html`<code>HOST:PORT</code>`,
      })}
    </p>
    <p>
      ${t(
        'The invitation works once, and expires half an hour after you run the command. With it, a machine can become a node, which has all rights: pass it on as you would a password.',
      )}
    </p>
    ${come.map(
      (m) =>
        html`<p key=${m.name} class="boxed" role="status">
          ${rich('{name} has joined.', { name: html`<b><${Name} text=${m.name} max=${63} /></b>` })}
        </p>`,
    )}
    <div class="buttons">
      <button type="button" class="primary" onClick=${done}>${t('Done')}</button>
    </div>
  <//>`;
}

/** @param {{c: State, name: string, done: () => void}} p */
export function Remove({ c, name, done }) {
  const all = c.members ?? [];
  const gone = !all.some((m) => m.name === name);
  const own = all.some((m) => m.route);
  if (gone)
    return html`<${Dialog} title=${t('Remove {name}', { name: plain(name) })} onClose=${done}>
      <p role="status">
        ${rich('{name} is no longer a node.', {
          name: html`<b><${Name} text=${name} max=${63} /></b>`,
        })}
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick=${done}>${t('Done')}</button>
      </div>
    <//>`;
  return html`<${Dialog} title=${t('Remove {name}', { name: plain(name) })} onClose=${done}>
    <p>
      ${rich(
        '{name} stops when it hears of its removal, and cannot start again as a node. Its sessions, servers and settings stay on its machine, and no other node reaches them.',
        { name: html`<b><${Name} text=${name} max=${63} /></b>` },
      )}
      ${' '}
      ${name === c.node && t('This page is served by that node, and ends with it.')}
    </p>
    ${own &&
    all.length === 2 &&
    html`<p class="notice">${t('Of two nodes, both have to run for a removal.')}</p>`}
    ${own &&
    all.length === 3 &&
    html`<p class="notice">
      ${t('Two nodes remain. Without either of them, no changes can be made.')}
    </p>`}
    <p>
      ${own
        ? rich(
            'It has had the identity key of the cluster. If you no longer trust it, run {command} afterwards, and close the port of the nodes to its machine.',
            { command: html`<code>yaya device rotate-keys --drop-earlier</code>` },
          )
        : rich(
            'It has had the identity key of the cluster. If you no longer trust it, run {command} afterwards, and change the credentials of the NATS servers.',
            { command: html`<code>yaya device rotate-keys --drop-earlier</code>` },
          )}
    </p>
    ${/^[a-z0-9][a-z0-9-]{0,62}$/.test(name) &&
    html`
      <p>${t('To remove it, run on the machine of a node that stays:')}</p>
      <${Command}
        text=${`yaya cluster remove ${name}`}
        label=${t('The command that removes the node')} />
    `}
    <div class="buttons"><button type="button" onClick=${done}>${t('Cancel')}</button></div>
  <//>`;
}
