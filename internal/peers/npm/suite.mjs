// A server that the conformance suites need, on the TypeScript SDK v2: over stdio, or
// over HTTP at the port that the command line names. The names, texts and questions are
// the suites' own.
import { McpServer, MissingRequiredClientCapabilityError, ResourceTemplate, acceptedContent, fromJsonSchema, inputRequired } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { serve } from './serve.mjs';
import { asking, choices, defaults, image, sound, schema2020 } from './suitedata.mjs';

const text = (s) => ({ content: [{ type: 'text', text: s }] });
const said = (s) => ({ messages: [{ role: 'user', content: { type: 'text', text: s } }] });
const soon = () => new Promise((resolve) => setTimeout(resolve, 50));

let changes = 0; // of the lists, in all sessions
const changed = serve(({ era, changed: tell }) => {
  const s = new McpServer({ name: 'suite', version: '1' }, {
    requestState: { verify: (state) => { if (state.endsWith('-TAMPERED')) throw new Error('not as this server gave it'); } },
    capabilities: { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {}, completions: {} },
  });
  const tool = (name, f, inputSchema = z.object({})) => s.registerTool(name, { description: `Shows ${name}`, inputSchema }, f);

  tool('test_simple_text', async () => text('This is a simple text response for testing.'));
  const picture = { type: 'image', data: image, mimeType: 'image/png' };
  tool('test_image_content', async () => ({ content: [picture] }));
  tool('test_audio_content', async () => ({ content: [{ type: 'audio', data: sound, mimeType: 'audio/wav' }] }));
  const embedded = { type: 'resource', resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' } };
  tool('test_embedded_resource', async () => ({ content: [embedded] }));
  tool('test_multiple_content_types', async () => ({ content: [...text('Three kinds:').content, picture, embedded] }));
  tool('test_error_handling', async () => { throw new Error('This tool intentionally returns an error for testing'); });
  tool('test_tool_with_logging', async (_, { mcpReq }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.log('info', data);
      await soon();
    }
    return text('logged');
  });
  tool('test_logging_tool', async (_, { mcpReq }) => {
    await mcpReq.log('info', 'for those who asked');
    return text('logged');
  });
  const steps = async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await soon();
    }
    return text(String(progressToken));
  };
  tool('test_tool_with_progress', steps);
  tool('test_streaming_elicitation', steps);
  tool('test_reconnection', async (_, { http }) => {
    http?.closeSSE?.();
    await soon();
    return text('reconnected');
  });
  tool('json_schema_2020_12_tool', async (given) => text(JSON.stringify(given)), fromJsonSchema(schema2020));
  tool('test_x_mcp_header', async ({ region }) => text(`region=${region}`), fromJsonSchema({
    type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, level: { type: 'integer' } },
  }));
  // The SDK refuses a question that its client does not declare to answer, by itself.
  tool('test_missing_capability', async () => need({ greeting: sample('Are you there?') }));
  const change = (name, method, list) => tool(name, async () => {
    list();
    changed?.[method](); // to the modern era; the SDK tells the session of the legacy one
    tell?.[method]();
    return text('changed');
  });
  change('test_trigger_tool_change', 'toolsChanged', () => tool(`added_${changes++}`, async () => text('added')));
  change('test_trigger_prompt_change', 'promptsChanged', () => s.registerPrompt(`added_${changes++}`, { description: 'Added' }, async () => said('added')));

  // The legacy way: a request of the server's while it works. The modern era lists these
  // tools as well, and refuses the request.
  const ask = (name, params, show, inputSchema) => tool(name, async (given, { mcpReq }) => text(show(await mcpReq.send(params(given)))), inputSchema);
  ask('test_sampling', ({ prompt }) => ({
    method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 },
  }), ({ content }) => `LLM response: ${content.text}`, z.object({ prompt: z.string() }));
  const elicit = (message, requestedSchema) => ({ method: 'elicitation/create', params: { message, requestedSchema } });
  const shown = ({ action, content }) => `action=${action}, content=${JSON.stringify(content ?? {})}`;
  ask('test_elicitation', ({ message }) => elicit(message, asking('response')), (a) => `User response: ${shown(a)}`, z.object({ message: z.string() }));
  ask('test_elicitation_sep1034_defaults', () => elicit('With defaults', defaults), (a) => `Elicitation completed: ${shown(a)}`);
  ask('test_elicitation_sep1330_enums', () => elicit('With choices', choices), (a) => `Elicitation completed: ${shown(a)}`);

  // The modern way: a result that says what else is needed.
  const name = inputRequired.elicit({ message: 'What is your name?', requestedSchema: asking('name') });
  const confirm = inputRequired.elicit({ message: 'Please confirm', requestedSchema: asking('ok', 'boolean') });
  const sample = (s) => inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: s } }], maxTokens: 100 });
  const rounds = (rest, f) => tool(`test_input_required_result_${rest}`, async (_, { mcpReq }) => {
    const given = mcpReq.inputResponses ?? {};
    return f(given, typeof mcpReq.requestState === 'function' ? mcpReq.requestState() : mcpReq.requestState, mcpReq, (key) => acceptedContent(given, key));
  });
  const need = (inputRequests, requestState) => inputRequired({ inputRequests, requestState });
  rounds('elicitation', (given, state, req, accepted) => accepted('user_name')?.name ? text(`Hello, ${accepted('user_name').name}!`) : need({ user_name: name }));
  rounds('sampling', (given) => given.capital_question?.content ? text(`Sampling response: ${given.capital_question.content.text}`) : need({ capital_question: sample('What is the capital of France?') }));
  rounds('list_roots', (given) => given.client_roots?.roots ? text(`${given.client_roots.roots.length} roots`) : need({ client_roots: inputRequired.listRoots() }));
  rounds('request_state', (given, state, req, accepted) => {
    if (!accepted('confirm')) return need({ confirm }, 'one');
    return text(state === 'one' ? 'state-ok' : `state is ${state}`);
  });
  rounds('tampered_state', (given, state, req, accepted) => (accepted('confirm') ? text('state-ok') : need({ confirm }, 'whole')));
  rounds('multiple_inputs', (given, state, req, accepted) => accepted('user_name') && given.greeting && given.client_roots
    ? text(`${given.greeting.content?.text} ${accepted('user_name').name}`)
    : need({ user_name: name, greeting: sample('Generate a greeting'), client_roots: inputRequired.listRoots() }, 'several'));
  rounds('multi_round', (given, state, req, accepted) => {
    if (state === undefined) return need({ step1: name }, 'round 1');
    if (state !== 'round 1') return text(`${state} likes ${accepted('step2')?.color}`);
    const color = inputRequired.elicit({ message: 'What is your favorite color?', requestedSchema: asking('color') });
    return need({ step2: color }, `${accepted('step1')?.name ?? 'Nobody'}`);
  });
  rounds('capabilities', (given, state, { envelope }) => {
    if (Object.keys(given).length) return text('fulfilled');
    const can = envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
    const ask = {};
    if (can.elicitation) ask.user_name = name;
    if (can.sampling) ask.greeting = sample('Generate a greeting');
    if (can.roots) ask.client_roots = inputRequired.listRoots();
    return Object.keys(ask).length ? need(ask) : text('the client answers no question');
  });

  const resource = (id, contents) => s.registerResource(id, `test://${id}`, { description: id, mimeType: contents.mimeType },
    async (uri) => ({ contents: [{ uri: uri.href, ...contents }] }));
  resource('static-text', { mimeType: 'text/plain', text: 'This is the content of the static text resource.' });
  resource('static-binary', { mimeType: 'image/png', blob: image });
  resource('watched-resource', { mimeType: 'text/plain', text: 'Watched resource content' });
  s.registerResource('template', new ResourceTemplate('test://template/{id}/data', { list: undefined }), { description: 'A template', mimeType: 'application/json' },
    async (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }] }));

  const prompt = (id, f, argsSchema) => s.registerPrompt(id, { description: `Shows ${id}`, ...(argsSchema && { argsSchema }) }, f);
  prompt('test_simple_prompt', async () => said('This is a simple prompt for testing.'));
  prompt('test_prompt_with_arguments', async ({ arg1, arg2 }) => said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`), z.object({ arg1: z.string(), arg2: z.string() }));
  prompt('test_prompt_with_embedded_resource', async ({ resourceUri }) => ({
    messages: [{ role: 'user', content: { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } } }],
  }), z.object({ resourceUri: z.string() }));
  prompt('test_prompt_with_image', async () => ({ messages: [{ role: 'user', content: picture }] }));
  prompt('test_input_required_result_prompt', async ({ mcpReq }) => {
    const context = acceptedContent(mcpReq.inputResponses, 'user_context')?.context;
    return context ? said(`Context: ${context}`)
      : need({ user_context: inputRequired.elicit({ message: 'Which context?', requestedSchema: asking('context') }) });
  });

  if (era === 'legacy') {
    s.server.setRequestHandler('resources/subscribe', async () => ({}));
    s.server.setRequestHandler('resources/unsubscribe', async () => ({}));
  }
  s.server.setRequestHandler('completion/complete', async () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return s;
});
