// A yaya for tests of a plugin, without yaya.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Connection } from "./connection.js";
import { lines } from "./stdio.js";
import { Plugin, YayaError } from "./index.js";
import { encode } from "./types.js";

export class Harness {
  manifest = {};
  emitted = [];
  logs = [];
  progress = [];
  refused = new Set();
  answers = {};
  stray = [];
  stderr = "";
  exitCode = undefined;
  #last = 0;
  #pending = new Map();
  #waiting = new Set();
  #temporary = "";
  #ended = Promise.resolve();
  #connection;

  static async start(plugin, { cwd, config = {}, providers, stateDir } = {}) {
    const harness = new Harness();
    Object.assign(harness, { config, providers, stateDir });
    if (!stateDir) harness.stateDir = harness.#temporary = await mkdtemp(join(tmpdir(), "plugin-"));
    if (plugin instanceof Plugin) {
      harness.#connection = new Connection(plugin, (line) => queueMicrotask(() => harness.#receive(line)));
    } else {
      harness.#spawn(plugin, cwd);
    }
    try {
      harness.manifest = await harness.ask("initialize", { abi: 1, kernel: { version: "test", protocol: "v0" }, config, providers, state_dir: harness.stateDir });
    } catch (err) {
      await harness.#end();
      throw err;
    }
    return harness;
  }

  #spawn([program, ...args], cwd) {
    this.process = spawn(program, args, { cwd, env: { ...process.env, HOME: this.stateDir } });
    this.process.stdout.on("data", lines((line) => this.#receive(line)));
    this.process.stderr.on("data", (piece) => (this.stderr += piece));
    this.process.stdin.on("error", () => {}); // the end of the program says more
    this.#ended = new Promise((resolve) => {
      const gone = (why) => {
        for (const { reject } of this.#pending.values()) reject(new Error(`the program has ended (${why}); it last said: ${this.stderr.slice(-500)}`));
        resolve();
      };
      this.process.on("error", (err) => gone(err.message));
      this.process.on("close", (code, signal) => {
        this.exitCode = code ?? undefined;
        gone(signal ?? code);
      });
    });
  }

  async close() {
    try {
      if (this.#connection || this.process.exitCode === null) await this.ask("shutdown", {});
    } finally {
      await this.#end();
    }
  }

  async #end() {
    await this.#connection?.close();
    if (this.process) {
      this.process.stdin.end();
      const timer = setTimeout(() => this.process.kill("SIGKILL"), 5000);
      await this.#ended;
      clearTimeout(timer);
    }
    if (this.#temporary) await rm(this.#temporary, { recursive: true, force: true });
  }

  // As yaya.

  async ask(method, params, { timeoutMs = 10_000, signal } = {}) {
    const id = ++this.#last;
    const limit = AbortSignal.timeout(timeoutMs);
    const ending = signal ? AbortSignal.any([signal, limit]) : limit;
    try {
      return await new Promise((resolve, reject) => {
        this.#pending.set(id, { resolve, reject });
        ending.addEventListener("abort", () => {
          this.write(encode({ method: "cancel", params: { id } }));
          reject(ending.reason);
        });
        this.write(encode({ id, method, params }));
      });
    } finally {
      this.#pending.delete(id);
    }
  }

  call(name, args = {}, { sessionId = "s1", timeoutMs = 10_000, signal } = {}) {
    return this.ask("tool.call", { call_id: "call_1", name, args, session_id: sessionId, turn_id: "t1", deadline_ms: timeoutMs }, { timeoutMs: timeoutMs + 1000, signal });
  }

  async event(kind, payload, { sessionId = "s1", timeoutMs = 10_000 } = {}) {
    const id = `e${this.#last + 1}`;
    const event = { id, kind, session_id: sessionId, ts: Date.now() / 1000, source: "test", payload };
    await this.ask("event", { event, deadline_ms: timeoutMs }, { timeoutMs: timeoutMs + 1000 });
    return id;
  }

  /** Asks a guard, and returns its answer as the protocol has it. */
  guardTool(name, args = {}, { sessionId = "s1", timeoutMs = 10_000, ...more } = {}) {
    const call = { call_id: "call_1", name, args, kind: "exec", origin: "loop", principal: "agent:react", ...more };
    return this.ask("guard", { point: "pre_tool", session_id: sessionId, call, deadline_ms: timeoutMs }, { timeoutMs: timeoutMs + 1000 });
  }

  guardPrompt(prompt, { sessionId = "s1", timeoutMs = 10_000 } = {}) {
    return this.ask("guard", { point: "prompt", session_id: sessionId, prompt, deadline_ms: timeoutMs }, { timeoutMs: timeoutMs + 1000 });
  }

  next(kind, { timeoutMs = 10_000 } = {}) {
    return new Promise((resolve, reject) => {
      const look = () => {
        const at = this.emitted.findIndex((e) => e.kind === kind);
        if (at < 0) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(this.emitted.splice(at, 1)[0].payload);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`no ${kind} within ${timeoutMs} ms; emitted were ${this.emitted.map((e) => e.kind).join(", ") || "none"}`));
      }, timeoutMs);
      this.#waiting.add(look);
      look();
    });
  }

  write(line) {
    if (this.#connection) this.#connection.receive(line);
    else this.process.stdin.write(line);
  }

  // Messages of the plugin.

  #receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      this.stray.push(line);
      return;
    }
    if (message.method === undefined) {
      const waiting = this.#pending.get(message.id);
      if (message.error) waiting?.reject(new YayaError(message.error.code, message.error.message));
      else waiting?.resolve(message.result);
      return;
    }
    const { result = {}, error } = this.#take(message.method, message.params ?? {});
    if (message.id !== undefined) this.write(encode({ id: message.id, ...(error ? { error } : { result }) }));
    else if (error) console.error(`${message.method} was refused: ${error.message}`);
  }

  #take(method, params) {
    switch (method) {
      case "emit":
        if (this.refused.has(params.kind)) return { error: { code: -32001, message: `the plugin may not emit ${params.kind}` } };
        this.emitted.push(params);
        for (const look of [...this.#waiting]) look();
        return {};
      case "log":
        this.logs.push(params.message);
        return {};
      case "progress":
        this.progress.push(params);
        return {};
      case "config":
        return { result: { config: this.config, providers: this.providers } };
      case "request": {
        const answer = this.answers[params.kind];
        if (!answer) return { error: { code: -32004, message: `the test has no answer to ${params.kind}` } };
        const [kind, payload] = answer(params.payload);
        return { result: { event: { id: "a1", kind, session_id: params.session_id, ts: Date.now() / 1000, source: "test", payload } } };
      }
    }
    return { error: { code: -32601, message: `unknown method ${method}` } };
  }
}
