// The protocol: messages in both directions, and the requests that run.

import { Call, ConnectionClosed, Event, GuardedCall, GuardedPrompt, Result, ToolError, Verdict, YayaError, described, encode } from "./types.js";

export const ABI = 1;
const maxLine = 8 << 20; // bytes of a line that yaya reads
const patience = 1000; // milliseconds for work beside to end

const parseError = -32700;
const invalidRequest = -32600;
const unknownMethod = -32601;
const invalidParams = -32602;
const internalError = -32603;
const handlerFailed = -32000; // an exception of the plugin's own

/** A connection to yaya. write gets whole lines. */
export class Connection {
  #plugin;
  #write;
  #last = 0;
  #pending = new Map(); // requests of the plugin, by id
  #running = new Map(); // requests of yaya, by id: an AbortController
  #beside = new Map(); // work beside the messages: an AbortController by promise
  #greeted = false;
  #stopped = false;
  #closed = false;

  constructor(plugin, write) {
    this.#plugin = plugin;
    this.#write = write;
    this.ended = new Promise((resolve) => (this.end = resolve)); // yaya has ended the plugin, or has gone
    plugin.connection = this;
  }

  /** Writes a message. */
  send(message) {
    const line = encode(message);
    const size = Buffer.byteLength(line);
    if (size > maxLine) throw new RangeError(`a message of ${size >> 20} MiB is more than the ${maxLine >> 20} MiB that yaya reads`);
    this.#write(line);
  }

  /** Sends a request and waits for its answer. */
  call(method, params) {
    if (this.#closed) return Promise.reject(new ConnectionClosed());
    const id = `p${++this.#last}`;
    return new Promise((resolve, reject) => {
      this.send({ id, method, params }); // a throw rejects
      this.#pending.set(id, { resolve, reject });
    });
  }

  /** Runs work beside the messages. */
  begin(work) {
    const ending = new AbortController();
    const done = work(ending.signal).finally(() => this.#beside.delete(done));
    this.#beside.set(done, ending);
    return done;
  }

  /** Handles a line of yaya's. */
  receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch (err) {
      this.send({ id: null, error: { code: parseError, message: `not JSON: ${err.message}` } });
      return;
    }
    if (message === null || typeof message !== "object" || Array.isArray(message)) {
      this.send({ id: null, error: { code: invalidRequest, message: "not a message: a batch, or not an object" } });
    } else if (message.method === undefined) {
      this.#answered(message);
    } else if (message.id === undefined) {
      if (message.method === "cancel") this.#running.get(message.params?.id)?.abort(new Error("cancelled"));
    } else {
      this.#serve(message.id, message.method, message.params ?? {});
    }
  }

  #answered({ id, result, error }) {
    const waiting = this.#pending.get(id);
    this.#pending.delete(id);
    if (error) waiting?.reject(new YayaError(error.code ?? internalError, error.message ?? ""));
    else waiting?.resolve(result);
  }

  async #serve(id, method, params) {
    const ending = new AbortController();
    this.#running.set(id, ending);
    try {
      this.send({ id, result: await this.#handle(id, method, params, ending) });
    } catch (err) {
      const told = err instanceof YayaError;
      if (!told && !ending.signal.aborted) console.error(err);
      this.send({ id, error: { code: told ? err.code : handlerFailed, message: told ? err.message : described(err) } });
    } finally {
      this.#running.delete(id);
    }
    if (method === "shutdown") this.end();
  }

  async #handle(id, method, params, ending) {
    if (method === "initialize") return this.#initialize(params);
    if (!this.#greeted) throw new YayaError(invalidRequest, `${method} comes before initialize`);
    switch (method) {
      case "event":
        return this.#event(params, ending);
      case "tool.call":
        return this.#tool(id, params, ending);
      case "guard":
        if (this.#plugin.guards.size > 0) return this.#guard(params, ending);
        break;
      case "health":
        if (this.#plugin.checked) return this.#plugin.check();
        break;
      case "shutdown":
        await this.stop();
        return {};
    }
    throw new YayaError(unknownMethod, `unknown method ${method}`);
  }

  async #initialize(params) {
    const plugin = this.#plugin;
    if (!(params.abi >= ABI)) throw new YayaError(invalidParams, `yaya speaks version ${params.abi} of the plugin protocol, and this plugin needs ${ABI}`);
    plugin.kernel = { version: "", protocol: "", ...params.kernel };
    plugin.stateDir = params.state_dir ?? "";
    plugin.take(params);
    await plugin.started?.();
    this.#greeted = true;
    const tools = [...plugin.tools.values()].map((tool) => tool.description);
    return { abi: ABI, name: plugin.name, version: plugin.version, category: plugin.category, ...(tools.length > 0 && { tools }), ...(plugin.guards.size > 0 && { guards: [...plugin.guards.keys()] }) };
  }

  async #event(params, ending) {
    const event = new Event(this.#plugin, params.event);
    const handler = this.#plugin.handlers.get(event.kind);
    if (handler) await within(params.deadline_ms, ending, () => handler(event, ending.signal));
    return {};
  }

  async #tool(id, params, ending) {
    const tool = this.#plugin.tools.get(params.name);
    if (!tool) throw new YayaError(invalidParams, `there is no tool ${params.name}`);
    const call = new Call(this.#plugin, id, params, ending.signal);
    try {
      return Result.of(await within(params.deadline_ms, ending, () => tool.run(params.args ?? {}, call)));
    } catch (err) {
      if (err instanceof ToolError) return Result.fail(err.message, err.kind, err.detail);
      if (err instanceof DeadlineError) return Result.fail(`${params.name} has not ended within its time`, "timeout");
      if (ending.signal.aborted) throw err;
      console.error(err);
      return Result.fail(described(err), "internal");
    }
  }

  async #guard(params, ending) {
    const decide = this.#plugin.guards.get(params.point);
    if (!decide) throw new YayaError(invalidParams, `it does not guard ${params.point}`);
    const question = params.point === "pre_tool" ? new GuardedCall(params) : new GuardedPrompt(params);
    const verdict = await within(params.deadline_ms, ending, () => decide(question, ending.signal));
    if (!(verdict instanceof Verdict)) throw new TypeError(`the guard of ${params.point} did not return a Verdict`);
    return verdict;
  }

  /** Lets the plugin save its state, once. */
  async stop() {
    if (this.#stopped || !this.#greeted) return;
    this.#stopped = true;
    await this.#plugin.stopped?.();
  }

  /** Ends what runs, and waits a second for work beside. */
  async close() {
    this.#closed = true;
    this.#plugin.connection = null;
    for (const waiting of this.#pending.values()) waiting.reject(new ConnectionClosed());
    this.#pending.clear();
    for (const ending of [...this.#running.values(), ...this.#beside.values()]) ending.abort(new ConnectionClosed());
    if (this.#beside.size === 0) return;
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, patience)));
    await Promise.race([Promise.allSettled([...this.#beside.keys()]), late]);
    clearTimeout(timer);
  }
}

class DeadlineError extends Error {
  constructor() {
    super("it has not ended within its time");
    this.name = "DeadlineError";
  }
}

/** Runs work until its deadline, or until nobody waits; work learns of both by the signal. */
async function within(ms, ending, work) {
  const timer = ms > 0 ? setTimeout(() => ending.abort(new DeadlineError()), Math.min(ms, 2 ** 31 - 1)) : undefined;
  const aborted = new Promise((_, reject) => ending.signal.addEventListener("abort", () => reject(ending.signal.reason), { once: true }));
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    clearTimeout(timer);
  }
}
