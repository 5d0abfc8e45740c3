// The entries of the audit as sentences. One that the page does not know is shown by its name.
// @ts-check
import { t } from './words.js';

/** A sentence for each event, with blanks for the actor and the target.
 * @type {ReadonlyMap<string, string>} */
const SENTENCES = new Map([
  ['client_changed', t('{actor} changed the file of the client {target}', blanks())],
  ['config_changed', t('{actor} set {target}', blanks())],
  ['config_removed', t('{actor} unset {target}', blanks())],
  ['models_refreshed', t('{actor} got a newer list of models', blanks())],
  ['plugin_installing', t('{actor} installed the plugin {target}', blanks())],
  ['plugin_proposed', t('{actor} proposed to install the plugin {target}', blanks())],
  ['plugin_reloaded', t('{actor} reloaded the plugin {target}', blanks())],
  ['plugin_removed', t('{actor} removed the plugin {target}', blanks())],
  ['plugin_switched', t('{actor} switched the plugin {target}', blanks())],
  ['provider_activated', t('{actor} chose the model {target}', blanks())],
  ['provider_changed', t('{actor} changed the provider {target}', blanks())],
  ['provider_created', t('{actor} added the provider {target}', blanks())],
  ['provider_deleted', t('{actor} deleted the provider {target}', blanks())],
  ['secret_removed', t('{actor} deleted the secret {target}', blanks())],
  ['secret_set', t('{actor} set the secret {target}', blanks())],
  ['secrets_shown', t('{actor} looked at the secrets of {target}', blanks())],
  ['server_change_proposed', t('{actor} proposed a change of the server {target}', blanks())],
  ['server_changed', t('{actor} changed the server {target}', blanks())],
  ['server_removed', t('{actor} removed the server {target}', blanks())],
  ['server_restarted', t('{actor} restarted the server {target}', blanks())],
  ['server_switched', t('{actor} switched the server {target}', blanks())],
  ['server_tool_switched', t('{actor} switched the tool {target}', blanks())],
  ['tool_called', t('{actor} called the tool {target}', blanks())],
  ['tools_approved', t('{actor} approved tools of {target}', blanks())],
  ['agent_killed', t('{actor} ended the agent {target}', blanks())],
  ['agent_registered', t('{actor} registered the agent {target}', blanks())],
  ['approval_granted', t('{actor} approved the call {target}', blanks())],
  ['approval_denied', t('{actor} rejected the call {target}', blanks())],
  ['approval_requested', t('{actor} asked for approval of {target}', blanks())],
  ['device_approved', t('{actor} approved the device {target}', blanks())],
  ['device_enrolled', t('{actor} enrolled the device {target}', blanks())],
  ['device_invited', t('{actor} created a code for a device', blanks())],
  ['device_invite_withdrawn', t('{actor} withdrew a code for a device', blanks())],
  ['device_revoked', t('{actor} revoked the device {target}', blanks())],
  ['device_scopes_changed', t('{actor} changed the rights of the device {target}', blanks())],
  ['device_token_issued', t('The device {target} got a token', blanks())],
  ['folder_trusted', t('{actor} trusted the folder {target}', blanks())],
  ['folder_revoked', t('{actor} no longer trusts the folder {target}', blanks())],
  ['leader_elected', t('{target} leads the log', blanks())],
  ['node_invited', t('{actor} invited the node {target}', blanks())],
  ['node_joined', t('The node {target} joined the cluster', blanks())],
  ['node_removed', t('{actor} removed the node {target}', blanks())],
  ['node_drained', t('{actor} drained the node {target}', blanks())],
  ['node_started', t('The node {target} started', blanks())],
  ['token_created', t('{actor} created the token {target}', blanks())],
  ['token_revoked', t('{actor} revoked the token {target}', blanks())],
  ['signing_key_added', t('{actor} signs tokens with a new key', blanks())],
]);

/** The values stay blanks: the view fills them with elements.
 * @returns {{actor: string, target: string}} */
function blanks() {
  return { actor: '{actor}', target: '{target}' };
}

/** The sentence in pieces, with elements for its blanks. @param {string} event
 * @param {{actor: Children, target: Children}} values @returns {Children[] | null} */
export function sentence(event, values) {
  const text = SENTENCES.get(event);
  if (!text) return null;
  return text
    .split(/(\{actor\}|\{target\})/)
    .map((p) => (p === '{actor}' ? values.actor : p === '{target}' ? values.target : p));
}
