// An editor: the official client of the Agent Client Protocol, which starts `yaya acp` and works with it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Readable, Writable } from 'node:stream';

const env = JSON.parse(process.env.SCENARIO);
const require = createRequire(env.modules + '/');
const at = require.resolve('@agentclientprotocol/sdk');
const { client, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(at));
const { zSessionNotification, zRequestPermissionRequest } = await import(pathToFileURL(at.replace(/v1\/stable\/acp\.js$/, 'v1/schema/zod.gen.js')));

const yaya = spawn(env.yaya, [...env.args, 'acp'], { stdio: ['pipe', 'pipe', 'inherit'], cwd: env.workspace });
const exited = new Promise((done) => yaya.on('exit', (code, signal) => done(signal ?? code)));
let seen = []; // updates
let offered; // commands
let answers = []; // what the next questions get
const asked = [];
const app = client({ name: 'an editor' })
  .onNotification('session/update', ({ params }) => {
    zSessionNotification.parse(params);
    seen.push(params.update);
    if (params.update.sessionUpdate === 'available_commands_update') offered = params.update;
  })
  .onRequest('session/request_permission', async ({ params, signal }) => {
    zRequestPermissionRequest.parse(params);
    asked.push(params);
    const answer = answers.shift();
    if (answer === 'wait') {
      await new Promise((done) => signal.addEventListener('abort', done));
      return { outcome: { outcome: 'cancelled' } };
    }
    return { outcome: answer ? { outcome: 'selected', optionId: params.options.find((o) => o.kind === answer).optionId } : { outcome: 'cancelled' } };
  });

// eventually waits until a condition holds.
const eventually = async (holds) => {
  for (const end = Date.now() + 120_000; !(await holds()); ) {
    assert.ok(Date.now() < end, `not within two minutes: ${holds}`);
    await new Promise((done) => setTimeout(done, 20));
  }
};

const says = (kind = 'agent_message_chunk') => seen.filter((u) => u.sessionUpdate === kind).map((u) => u.content.text).join('');
const calls = () => {
  const all = new Map();
  for (const u of seen) {
    if (u.sessionUpdate === 'tool_call') all.set(u.toolCallId, { ...u, statuses: [u.status] });
    if (u.sessionUpdate === 'tool_call_update') {
      const c = all.get(u.toolCallId);
      assert.ok(c, `an update of a call that was not announced: ${JSON.stringify(u)}`);
      if (u.status) c.statuses.push(u.status);
      if (u.content) c.result = u.content;
    }
  }
  return [...all.values()];
};
const refused = async (promise, what) => {
  const e = await promise.then(() => undefined, (e) => e);
  assert.ok(e && what.test(e.message + ' ' + e.code), `${e?.message} ${e?.code}, want ${what}`);
};

await app.connectWith(ndJsonStream(Writable.toWeb(yaya.stdin), Readable.toWeb(yaya.stdout)), async (ctx) => {
  const hello = await ctx.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true } });
  assert.equal(hello.protocolVersion, 1);
  assert.equal(hello.agentInfo.name, 'yaya');
  assert.ok(hello.agentCapabilities.loadSession);
  await refused(ctx.request('session/new', { cwd: 'relative', mcpServers: [] }), /absolute path.*-32602/);
  await refused(ctx.request('session/new', { cwd: env.workspace + '/not-there', mcpServers: [] }), /-32602/);
  await refused(ctx.request('session/prompt', { sessionId: 'sess_none', prompt: [] }), /not open.*-32002/);
  await refused(ctx.request('session/load', { sessionId: 'sess_none', cwd: env.workspace, mcpServers: [] }), /-32002/);
  await refused(ctx.request('fs/nonsense', {}), /does not know.*-32601/);

  const { sessionId, modes, configOptions } = await ctx.request('session/new', { cwd: env.workspace, mcpServers: [{ name: 'of the editor', command: 'false', args: [], env: [] }] });
  const prompt = (...content) => {
    seen = [];
    return ctx.request('session/prompt', { sessionId, prompt: content.map((c) => (typeof c === 'string' ? { type: 'text', text: c } : c)) });
  };

  // Text, in the order in which it is written, and that the servers of the editor are not started.
  assert.equal((await prompt('hello')).stopReason, 'end_turn');
  assert.match(says(), /^yaya starts no MCP servers[^]*"of the editor"[^]*hello from yaya, to a client of the protocol$/);
  assert.equal((await prompt('hello')).stopReason, 'end_turn');
  assert.equal(says(), 'hello from yaya, to a client of the protocol');
  await refused(prompt(), /empty.*-32602/);
  await refused(prompt({ type: 'audio', data: '', mimeType: 'audio/wav' }), /-32602/);
  await refused(prompt({ type: 'image', data: '***', mimeType: 'image/png' }), /base64.*-32602/);

  // What the editor adds to a prompt.
  assert.equal((await prompt('what is', { type: 'resource_link', name: 'a.txt', uri: `file://${env.workspace}/a.txt` }, { type: 'resource', resource: { uri: 'file:///etc/elsewhere.txt', text: 'a `text`' } }, { type: 'image', data: env.picture, mimeType: 'image/png' })).stopReason, 'end_turn');

  // A patch is asked about as a diff, and is made when the editor allows it.
  answers = ['allow_once'];
  assert.equal((await prompt('patch')).stopReason, 'end_turn');
  assert.equal(readFileSync(env.workspace + '/a.txt', 'utf8'), 'one\n2\n');
  const q = asked.at(-1);
  assert.deepEqual(q.toolCall.content.filter((c) => c.type === 'diff'), [{ type: 'diff', path: env.workspace + '/a.txt', oldText: 'one\ntwo\n', newText: 'one\n2\n' }]);
  assert.deepEqual([q.toolCall.kind, q.toolCall.locations], ['edit', [{ path: env.workspace + '/a.txt' }]]);
  let [c] = calls();
  assert.deepEqual([c.title, c.kind, c.statuses.at(-1)], ['apply_patch: a.txt', 'edit', 'completed']);

  // A command that the editor does not allow is not run, and the agent goes on.
  answers = ['reject_once'];
  assert.equal((await prompt('run')).stopReason, 'end_turn');
  assert.equal(existsSync(env.workspace + '/made'), false);
  assert.match(asked.at(-1).toolCall.title, /touch made/);
  [c] = calls();
  assert.deepEqual([c.title, c.kind, c.statuses.at(-1)], ['shell: touch made', 'execute', 'failed']);

  // A session that plans runs nothing, and asks about nothing.
  assert.deepEqual([modes.currentModeId, modes.availableModes.map((m) => m.id)], ['work', ['work', 'edits', 'plan']]);
  await refused(ctx.request('session/set_mode', { sessionId, modeId: 'fly' }), /fly|mode.*-32602/);
  const asks = asked.length;
  await ctx.request('session/set_mode', { sessionId, modeId: 'plan' });
  assert.equal((await prompt('run')).stopReason, 'end_turn');
  [c] = calls();
  assert.deepEqual([c.kind, c.statuses.at(-1), asked.length], ['execute', 'failed', asks]);
  assert.match(JSON.stringify(c.result), /this session plans/);
  const resumed = await ctx.request('session/resume', { sessionId, cwd: env.workspace, mcpServers: [] });
  assert.equal(resumed.modes.currentModeId, 'plan');
  seen = [];
  await ctx.request('session/set_mode', { sessionId, modeId: 'work' });
  await eventually(() => seen.some((u) => u.sessionUpdate === 'current_mode_update' && u.currentModeId === 'work'));

  // A reading call is not asked about.
  const before = asked.length;
  assert.equal((await prompt('read')).stopReason, 'end_turn');
  [c] = calls();
  assert.deepEqual([c.kind, c.statuses.at(-1), c.locations], ['read', 'completed', [{ path: env.workspace + '/a.txt' }]]);
  assert.match(c.result[0].content.text, /one/);
  assert.equal(asked.length, before);

  // An edit is asked about as a diff, and the plan of the agent is the editor's plan. Who allows later edits,
  // too, has chosen the mode in which they need no question.
  answers = ['allow_always'];
  assert.equal((await prompt('edit')).stopReason, 'end_turn');
  await eventually(() => seen.some((u) => u.sessionUpdate === 'current_mode_update' && u.currentModeId === 'edits'));
  assert.deepEqual(asked.at(-1).toolCall.content, [{ type: 'diff', path: env.workspace + '/a.txt', oldText: 'one', newText: 'eins' }]);
  assert.equal(readFileSync(env.workspace + '/a.txt', 'utf8'), 'eins\n2\n');
  assert.deepEqual(seen.filter((u) => u.sessionUpdate === 'plan').map((u) => u.entries.map((e) => [e.content, e.status])), [[['look', 'completed'], ['edit', 'in_progress']]]);

  // What yaya does itself.
  await eventually(() => offered);
  assert.deepEqual(offered.availableCommands.map((c) => c.name), ['compact', 'undo']);
  assert.equal((await prompt('/undo')).stopReason, 'end_turn');
  assert.match(says(), /^undone: a\.txt \(1 more/);
  assert.equal(readFileSync(env.workspace + '/a.txt', 'utf8'), 'one\n2\n');
  assert.equal((await prompt('/compact the names')).stopReason, 'end_turn');
  assert.match(says(), /^the history has about \d+ tokens now; before, it had \d+/);

  // The model of the session; a change from elsewhere is told.
  const [model] = configOptions;
  assert.deepEqual([configOptions.length, model.id, model.category], [1, 'model', 'model']);
  assert.ok(model.options.some((o) => o.value === model.currentValue) && model.options.some((o) => o.value === 'second'));
  await refused(ctx.request('session/set_config_option', { sessionId, configId: 'model', value: 'nosuch' }), /nosuch.*-32602/);
  await refused(ctx.request('session/set_config_option', { sessionId, configId: 'speed', value: 'high' }), /speed.*-32602/);
  seen = [];
  const set = await ctx.request('session/set_config_option', { sessionId, configId: 'model', value: 'second' });
  assert.equal(set.configOptions[0].currentValue, 'second');
  await eventually(() => seen.some((u) => u.sessionUpdate === 'config_option_update' && u.configOptions[0].currentValue === 'second'));
  await prompt('who are you');
  assert.equal(says(), 'the second model');
  await ctx.request('session/set_config_option', { sessionId, configId: 'model', value: model.currentValue });
  await prompt('who are you');
  assert.equal(says(), 'the first model');

  // Cancelled while it asks: the question is withdrawn, and the prompt is answered as cancelled.
  answers = ['wait'];
  const until = asked.length;
  const running = prompt('run');
  await eventually(() => asked.length > until);
  await refused(ctx.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hello' }] }), /being worked on/);
  await ctx.notify('session/cancel', { sessionId });
  assert.equal((await running).stopReason, 'cancelled');
  await ctx.notify('session/cancel', { sessionId }); // of nothing

  // Somebody else works in the session: the prompt waits for its turn, or is withdrawn. A question that is
  // answered elsewhere is withdrawn in the editor.
  if (env.base) {
    const v1 = async (method, path, body) => {
      const r = await fetch(`${env.base}/v1/sessions/${sessionId}${path}`, { method, headers: { 'Content-Type': 'application/json' }, body: body && JSON.stringify(body) });
      assert.ok(r.ok, `${method} ${path}: ${await r.clone().text()}`);
      return r.json();
    };
    for (const withdraw of [false, true]) {
      const before = asked.length;
      answers = ['wait'];
      seen = [];
      await v1('POST', '/messages', { role: 'user', parts: [{ type: 'text', text: 'run' }] });
      await eventually(() => asked.length > before);
      assert.equal(says('user_message_chunk'), 'run');
      const waits = prompt('hello');
      await eventually(async () => (await v1('GET', '/queue')).queue.length);
      if (withdraw) {
        await ctx.notify('session/cancel', { sessionId });
        assert.equal((await waits).stopReason, 'cancelled');
        assert.equal((await v1('GET', '/queue')).queue.length, 0);
      }
      await v1('POST', '/approve', { tool_call_id: asked.at(-1).toolCall.toolCallId, action: 'deny' });
      if (!withdraw) {
        assert.equal((await waits).stopReason, 'end_turn');
        assert.match(says(), /hello from yaya, to a client of the protocol$/);
      } else await eventually(async () => (await v1('GET', '')).state === 'idle');
    }
  }

  // A model that fails fails the prompt, with the reason.
  await refused(prompt('break'), /the turn failed.*no such thing/);

  // The list, and the past of a session that is opened again.
  const { sessions } = await ctx.request('session/list', { cwd: env.workspace });
  assert.deepEqual(sessions.map((s) => [s.sessionId, s.cwd]), [[sessionId, env.workspace]]);
  assert.deepEqual((await ctx.request('session/list', { cwd: '/nowhere' })).sessions, []);
  seen = [];
  await ctx.request('session/load', { sessionId, cwd: env.workspace, mcpServers: [] });
  assert.match(says('user_message_chunk'), /^hellohellowhat is\na\.txt\n\/etc\/elsewhere\.txt:\n```\na `text`\n```\[picture\]patchrunrunreadeditwho are youwho are yourun(runhellorun)?break$/);
  assert.match(says(), /^hello from yaya, to a client of the protocolhello from yaya/);
  assert.deepEqual(calls().map((c) => [c.kind, c.statuses.at(-1)]), [['edit', 'completed'], ['execute', 'failed'], ['execute', 'failed'], ['read', 'completed'], ['think', 'completed'], ['edit', 'completed'], ['execute', 'failed'], ...(env.base ? [['execute', 'failed'], ['execute', 'failed']] : [])]);
  await refused(ctx.request('session/load', { sessionId, cwd: '/', mcpServers: [] }), /works in/);
  assert.equal((await prompt('hello')).stopReason, 'end_turn');
  assert.equal(says(), 'hello from yaya, to a client of the protocol');
  seen = [];
  await ctx.request('session/resume', { sessionId, cwd: env.workspace, mcpServers: [] });
  assert.equal((await prompt('hello')).stopReason, 'end_turn');
  assert.equal(says() + says('user_message_chunk'), 'hello from yaya, to a client of the protocol');

  await ctx.request('session/close', { sessionId });
  await refused(prompt('hello'), /not open/);
  await ctx.request('session/delete', { sessionId });
  await ctx.request('session/delete', { sessionId });
  assert.deepEqual((await ctx.request('session/list', {})).sessions, []);
});
yaya.stdin.end();
assert.equal(await exited, 0);
