// The plugin: its tools and handlers, and its messages to yaya.

import { serve } from "./stdio.js";
import { ConnectionClosed, Event, described } from "./types.js";

const categories = ["tool", "llm-provider", "strategy", "memory", "adapter", "skill"];
const kinds = ["read", "write", "exec", "network"];

export class Plugin {
  config = {};
  providers = [];
  stateDir = "";
  kernel = { version: "", protocol: "" };

  // For the connection.
  tools = new Map();
  handlers = new Map();
  guards = new Map(); // by point
  started = undefined;
  checked = undefined;
  stopped = undefined;
  connection = null;

  constructor({ name, version, category }) {
    if (!name || !version) throw new TypeError("a plugin has a name and a version, as in its plugin.toml");
    if (!categories.includes(category)) throw new TypeError(`category ${JSON.stringify(category)} is none of ${categories.join(", ")}`);
    Object.assign(this, { name, version, category });
  }

  tool(name, { description, title, kind = "exec", input = {}, optional = [], inputSchema, outputSchema, requiresApproval, timeoutMs }, run) {
    if (this.category !== "tool") throw new TypeError(`a plugin of category ${this.category} has no tools`);
    if (this.tools.has(name)) throw new TypeError(`tool ${name}: there are two of this name`);
    if (!description) throw new TypeError(`tool ${name}: it has no description`);
    if (!kinds.includes(kind)) throw new TypeError(`tool ${name}: kind ${JSON.stringify(kind)} is none of ${kinds.join(", ")}`);
    if (typeof run !== "function") throw new TypeError(`tool ${name}: its function is missing`);
    const unknown = optional.find((key) => !Object.hasOwn(input, key));
    if (unknown !== undefined) throw new TypeError(`tool ${name}: there is no argument ${unknown}`);
    const required = Object.keys(input).filter((key) => !optional.includes(key));
    const schema = inputSchema ?? { type: "object", properties: input, required, additionalProperties: false };
    this.tools.set(name, {
      description: { name, title, description, kind, input_schema: schema, output_schema: outputSchema, requires_approval: requiresApproval, timeout_ms: timeoutMs },
      run,
    });
  }

  on(kind, handler) {
    if (this.handlers.has(kind)) throw new TypeError(`event ${kind}: there are two handlers`);
    this.handlers.set(kind, handler);
  }

  guardTool(decide) {
    this.#guard("pre_tool", decide);
  }

  guardPrompt(decide) {
    this.#guard("prompt", decide);
  }

  #guard(point, decide) {
    if (this.guards.has(point)) throw new TypeError(`guard ${point}: there are two`);
    if (typeof decide !== "function") throw new TypeError(`guard ${point}: its function is missing`);
    this.guards.set(point, decide);
  }

  onStart(run) {
    this.started = run;
  }

  health(check) {
    this.checked = check;
  }

  onShutdown(run) {
    this.stopped = run;
  }

  run() {
    return serve(this);
  }

  async emit(kind, sessionId, payload) {
    await this.#connected().call("emit", { kind, session_id: sessionId, payload });
  }

  send(kind, sessionId, payload) {
    this.notify("emit", { kind, session_id: sessionId, payload });
  }

  async request(kind, sessionId, payload, { timeoutMs = 60_000 } = {}) {
    const { event } = await this.#connected().call("request", { kind, session_id: sessionId, payload, timeout_ms: timeoutMs });
    return new Event(this, event);
  }

  async refresh() {
    this.take(await this.#connected().call("config", {}));
  }

  log(message, level = "info") {
    this.notify("log", { level, message });
  }

  spawn(work) {
    return this.#connected().begin(async (signal) => {
      try {
        await work(signal);
      } catch (err) {
        if (err instanceof ConnectionClosed || (signal.aborted && err === signal.reason)) return;
        console.error(err);
        this.log(described(err), "error");
      }
    });
  }

  /** Sends a notification. Nobody misses one when yaya has gone. */
  notify(method, params) {
    this.connection?.send({ method, params });
  }

  #connected() {
    if (!this.connection) throw new ConnectionClosed("the plugin does not run");
    return this.connection;
  }

  // For the connection.

  take({ config, providers }) {
    this.config = config ?? {};
    this.providers = (providers ?? []).map(({ id, label = "", config = {} }) => ({ id, label, config }));
  }

  async check() {
    const told = await this.checked();
    return typeof told === "string" ? { status: "ok", summary: told } : told;
  }
}
