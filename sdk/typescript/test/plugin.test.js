// A plugin in this process, against the harness.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConnectionClosed, Plugin, Result, ToolError, Verdict, YayaError, codes } from "../index.js";
import { Connection } from "../connection.js";
import { Harness } from "../testing.js";

const manifest = (category) => ({ name: "subject", version: "1.0.0", category });

/** Runs a test with a harness, and closes it. */
async function within(plugin, options, run) {
  const yaya = await Harness.start(plugin, options);
  try {
    await run(yaya);
  } finally {
    await yaya.close();
  }
}

test("results of tools", async () => {
  const plugin = new Plugin(manifest("tool"));
  plugin.tool("text", { description: "Greets.", kind: "read", input: { who: { type: "string" }, times: { type: "integer" } }, optional: ["times"] }, ({ who }) => `hello ${who}`);
  plugin.tool("data", { description: "Data.", kind: "read", title: "Data", outputSchema: { type: "object" } }, async () => ({ celsius: 4.5 }));
  plugin.tool("own", { description: "Own.", inputSchema: { type: "object" }, timeoutMs: 2500, requiresApproval: true }, (args, call) => new Result({ brief: call.sessionId, display: [{ kind: "json", data: args }] }));
  plugin.tool("nothing", { description: "Nothing." }, () => {});
  await within(plugin, {}, async (yaya) => {
    const tools = Object.fromEntries(yaya.manifest.tools.map((tool) => [tool.name, tool]));
    assert.deepEqual(tools.text.input_schema, { type: "object", properties: { who: { type: "string" }, times: { type: "integer" } }, required: ["who"], additionalProperties: false });
    assert.deepEqual([tools.data.title, tools.data.output_schema], ["Data", { type: "object" }]);
    assert.deepEqual([tools.own.timeout_ms, tools.own.requires_approval, tools.own.kind], [2500, true, "exec"]);
    assert.deepEqual(await yaya.call("text", { who: "you" }), { ok: true, display: [{ kind: "text", text: "hello you" }] });
    assert.deepEqual(await yaya.call("data"), { ok: true, display: [{ kind: "json", data: { celsius: 4.5 } }], structured: { celsius: 4.5 } });
    assert.deepEqual(await yaya.call("own", { a: 1 }), { ok: true, brief: "s1", display: [{ kind: "json", data: { a: 1 } }] });
    assert.deepEqual(await yaya.call("nothing"), { ok: true, display: [] });
  });
});

test("guards", async () => {
  const plugin = new Plugin(manifest("skill"));
  plugin.guardTool(async ({ name, kind, principal, sessionId, args }) => {
    if (args.do === "ask") return Verdict.ask(`${name} ${kind} ${principal} ${sessionId}`);
    if (args.do === "forget") return undefined;
    if (args.do === "object") return { decision: "allow" };
    if (args.do === "fail") throw new Error("no disk");
    return Verdict.allow();
  });
  assert.throws(() => plugin.guardTool(() => Verdict.allow()), /there are two/);
  await within(plugin, {}, async (yaya) => {
    assert.deepEqual(yaya.manifest.guards, ["pre_tool"]);
    assert.deepEqual(await yaya.guardTool("shell"), { decision: "allow" });
    assert.deepEqual(await yaya.guardTool("shell", { do: "ask" }), { decision: "ask", reason: "shell exec agent:react s1" });
    await assert.rejects(yaya.guardTool("shell", { do: "forget" }), /did not return a Verdict/);
    await assert.rejects(yaya.guardTool("shell", { do: "object" }), /did not return a Verdict/);
    await assert.rejects(yaya.guardTool("shell", { do: "fail" }), /no disk/);
    await assert.rejects(yaya.guardPrompt("hi"), /does not guard prompt/);
  });
  const prompts = new Plugin(manifest("skill"));
  prompts.guardPrompt(({ text }) => (text.includes("password") ? Verdict.deny("no passwords") : Verdict.allow()));
  await within(prompts, {}, async (yaya) => {
    assert.deepEqual(await yaya.guardPrompt("the password"), { decision: "deny", reason: "no passwords" });
    assert.deepEqual(await yaya.guardPrompt("hello"), { decision: "allow" });
  });
  await within(new Plugin(manifest("skill")), {}, async (yaya) => {
    assert.equal(yaya.manifest.guards, undefined);
    await assert.rejects(yaya.guardPrompt("hi"), /unknown method guard/);
  });
});

test("failures of tools", async () => {
  const plugin = new Plugin(manifest("tool"));
  plugin.tool("fails", { description: "Fails.", kind: "read", input: { how: { type: "string" } } }, ({ how }) => {
    if (how === "told") throw new ToolError("no such place", "not_found", { place: "x" });
    if (how === "result") return Result.fail("busy", "unavailable");
    if (how === "bigint") return { a: 1n };
    if (how === "big") return "x".repeat(9 << 20);
    throw new RangeError("too far");
  });
  await within(plugin, {}, async (yaya) => {
    assert.deepEqual(await yaya.call("fails", { how: "told" }), { ok: false, error_kind: "not_found", detail: { place: "x" }, display: [{ kind: "text", text: "no such place" }] });
    assert.equal((await yaya.call("fails", { how: "result" })).error_kind, "unavailable");
    const other = await yaya.call("fails", { how: "other" });
    assert.deepEqual([other.error_kind, other.display[0].text], ["internal", "RangeError: too far"]);
    await assert.rejects(yaya.call("fails", { how: "bigint" }), /BigInt/);
    await assert.rejects(yaya.call("fails", { how: "big" }), /9 MiB is more than the 8 MiB/);
    await assert.rejects(yaya.call("gone"), /no tool gone/);
  });
});

test("calls overlap, are cancelled, and have a deadline", async () => {
  const plugin = new Plugin(manifest("tool"));
  let began, ended;
  const beginning = new Promise((resolve) => (began = resolve));
  const ending = new Promise((resolve) => (ended = resolve));
  plugin.tool("waits", { description: "Waits.", kind: "read" }, (_, { signal }) => {
    signal.addEventListener("abort", ended);
    began();
    return new Promise(() => {});
  });
  plugin.tool("quick", { description: "Answers.", kind: "read" }, (_, call) => {
    call.progress(1, 2, "half");
    return `${call.until > Date.now()} ${call.turnId}`;
  });
  await within(plugin, {}, async (yaya) => {
    const caller = new AbortController();
    const waiting = yaya.call("waits", {}, { signal: caller.signal });
    await beginning;
    assert.equal((await yaya.call("quick")).display[0].text, "true t1");
    assert.deepEqual(yaya.progress.map(({ progress, total, message }) => [progress, total, message]), [[1, 2, "half"]]);
    caller.abort(new Error("gone"));
    await assert.rejects(waiting, /gone/);
    await ending;
    assert.equal((await yaya.call("waits", {}, { timeoutMs: 50 })).error_kind, "timeout");
  });
});

test("registration is checked", () => {
  const plugin = new Plugin(manifest("tool"));
  plugin.tool("a", { description: "A." }, () => {});
  for (const [options, want] of [
    [["a", { description: "A." }, () => {}], /two of this name/],
    [["b", {}, () => {}], /no description/],
    [["b", { description: "B.", kind: "run" }, () => {}], /kind "run"/],
    [["b", { description: "B." }], /function is missing/],
    [["b", { description: "B.", optional: ["x"] }, () => {}], /no argument x/],
  ]) {
    assert.throws(() => plugin.tool(...options), want);
  }
  assert.throws(() => new Plugin(manifest("skill")).tool("a", { description: "A." }, () => {}), /category skill has no tools/);
  assert.throws(() => new Plugin(manifest("thing")), /category "thing"/);
  plugin.on("turn.started", () => {});
  assert.throws(() => plugin.on("turn.started", () => {}), /two handlers/);
});

test("a memory answers", async () => {
  const plugin = new Plugin(manifest("memory"));
  plugin.on("memory.query", (event) => event.reply("memory.result", { hits: [{ text: event.payload.query }] }));
  plugin.on("memory.write", (event) => plugin.send("x.subject.wrote", event.sessionId, event.payload));
  await within(plugin, {}, async (yaya) => {
    const id = await yaya.event("memory.query", { query: "blue", k: 1 }, { sessionId: "s2" });
    assert.equal(yaya.emitted[0].session_id, "s2");
    assert.deepEqual(await yaya.next("memory.result"), { hits: [{ text: "blue" }], request_id: id });
    await yaya.event("memory.write", { entry: { text: "a" } });
    assert.deepEqual(await yaya.next("x.subject.wrote"), { entry: { text: "a" } });
    await yaya.event("turn.started", {}); // nothing handles it
    await assert.rejects(yaya.next("memory.result", { timeoutMs: 10 }), /no memory.result within 10 ms/);
  });
});

test("failures and refusals", async () => {
  const plugin = new Plugin(manifest("skill"));
  const got = [];
  plugin.on("user.message.received", async (event) => {
    switch (event.payload.text) {
      case "hang":
        await new Promise(() => {});
        break;
      case "ask": {
        const answer = await plugin.request("memory.query", event.sessionId, { query: "x" }, { timeoutMs: 5000 });
        await plugin.emit("x.subject.heard", event.sessionId, answer.payload);
        return;
      }
    }
    await plugin.emit("plugin.error", event.sessionId, {}).catch((err) => got.push(err));
    throw new Error("as it was told");
  });
  await within(plugin, {}, async (yaya) => {
    yaya.refused.add("plugin.error");
    await assert.rejects(yaya.event("user.message.received", { text: "fail" }), /as it was told/);
    assert.deepEqual(got.map((err) => [err instanceof YayaError, err.code]), [[true, codes.refused]]);
    await assert.rejects(yaya.event("user.message.received", { text: "hang" }, { timeoutMs: 50 }), /not ended within its time/);
    await assert.rejects(yaya.event("user.message.received", { text: "ask" }), /no answer to memory.query/);
    yaya.answers["memory.query"] = ({ query }) => ["memory.result", { hits: [query] }];
    await yaya.event("user.message.received", { text: "ask" });
    assert.deepEqual(await yaya.next("x.subject.heard"), { hits: ["x"] });
  });
  await assert.rejects(plugin.emit("x.subject.heard", "s1", {}), ConnectionClosed);
  plugin.log("nobody reads this");
});

test("work beside, and settings", async () => {
  const plugin = new Plugin(manifest("llm-provider"));
  let aborted = false;
  plugin.on("llm.call.request", (event) => {
    plugin.spawn(async (signal) => {
      if (event.payload.model === "broken") throw new Error("it is broken");
      if (event.payload.model === "endless") {
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }
      await event.reply("llm.call.response", { text: plugin.providers[0].config.greeting, usage: {} });
    }).finally(() => (aborted = event.payload.model === "endless"));
  });
  plugin.on("config.updated", () => plugin.refresh());
  await within(plugin, { config: { a: 1 }, providers: [{ id: "one", config: { greeting: "hi" } }] }, async (yaya) => {
    assert.deepEqual(plugin.config, { a: 1 });
    await yaya.event("llm.call.request", { model: "" });
    assert.equal((await yaya.next("llm.call.response")).text, "hi");
    await yaya.event("llm.call.request", { model: "broken" });
    Object.assign(yaya, { config: { a: 2 }, providers: [] });
    await yaya.event("config.updated", {});
    assert.deepEqual([plugin.config, plugin.providers], [{ a: 2 }, []]);
    assert.deepEqual(yaya.logs, ["Error: it is broken"]);
    await yaya.event("llm.call.request", { model: "endless" });
  });
  assert.equal(aborted, true);
});

test("start, health, shutdown", async () => {
  const plugin = new Plugin(manifest("memory"));
  const saved = [];
  plugin.onStart(() => writeFileSync(join(plugin.stateDir, "a"), "kept"));
  plugin.onShutdown(() => saved.push(readFileSync(join(plugin.stateDir, "a"), "utf8")));
  await within(plugin, {}, async (yaya) => {
    assert.deepEqual(yaya.manifest, { abi: 1, ...manifest("memory") });
    await assert.rejects(yaya.ask("health", {}), { code: -32601 });
    plugin.health(() => "42 stations");
    assert.deepEqual(await yaya.ask("health", {}), { status: "ok", summary: "42 stations" });
    plugin.health(async () => ({ status: "degraded", summary: "slow" }));
    assert.equal((await yaya.ask("health", {})).status, "degraded");
  });
  assert.deepEqual(saved, ["kept"]);
  const broken = new Plugin(manifest("memory"));
  broken.onStart(() => Promise.reject(new Error("no key")));
  await assert.rejects(Harness.start(broken), /no key/);
});

test("errors of the protocol", async () => {
  const out = [];
  let answered;
  const connection = new Connection(new Plugin(manifest("memory")), (line) => {
    out.push(JSON.parse(line));
    answered();
  });
  for (const [line, id, code] of [
    ["{", null, -32700],
    ["[]", null, -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"health"}', 1, -32600],
    ['{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"abi":0}}', 2, -32602],
    ['{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"abi":1,"later":true}}', 3, undefined],
    ['{"jsonrpc":"2.0","id":4,"method":"later","params":{}}', 4, -32601],
  ]) {
    const answer = new Promise((resolve) => (answered = resolve));
    connection.receive(line);
    await answer;
    assert.deepEqual([out.at(-1).id, out.at(-1).error?.code], [id, code], line);
  }
  const count = out.length;
  for (const line of ['{"jsonrpc":"2.0","method":"later"}', '{"jsonrpc":"2.0","id":"p9","result":{}}', '{"jsonrpc":"2.0","method":"cancel","params":{"id":99}}']) connection.receive(line);
  await connection.close();
  assert.equal(out.length, count);
});
