// The values that a plugin gets and returns.

/** Codes of errors of yaya. */
export const codes = Object.freeze({ refused: -32001, busy: -32002, noAnswer: -32003, failed: -32004 });

/** yaya has refused or failed what the plugin asked for; code says why. */
export class YayaError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "YayaError";
    this.code = code;
  }
}

/** yaya no longer listens. */
export class ConnectionClosed extends Error {
  constructor(message = "yaya has ended the connection") {
    super(message);
    this.name = "ConnectionClosed";
  }
}

/** A failed tool call: the model reads the message. */
export class ToolError extends Error {
  constructor(message, kind = "tool", detail = undefined) {
    super(message);
    this.name = "ToolError";
    this.kind = kind;
    this.detail = detail;
  }
}

/** The result of a tool call. */
export class Result {
  constructor({ ok = true, display = [], structured, brief, errorKind, detail } = {}) {
    Object.assign(this, { ok, display, structured, brief, errorKind, detail });
  }

  static text(text) {
    return new Result({ display: [{ kind: "text", text }] });
  }

  static markdown(markdown) {
    return new Result({ display: [{ kind: "markdown", markdown }] });
  }

  static json(value) {
    return new Result({ display: [{ kind: "json", data: value }], structured: value });
  }

  static fail(text, kind = "tool", detail = undefined) {
    return new Result({ ok: false, display: [{ kind: "text", text }], errorKind: kind, detail });
  }

  /** Makes a result of what a tool returns. */
  static of(value) {
    if (value instanceof Result) return value;
    if (value === undefined || value === null) return new Result();
    return typeof value === "string" ? Result.text(value) : Result.json(value);
  }

  /** Returns the result as the protocol has it. */
  toJSON() {
    const { ok, display, structured, brief, errorKind, detail } = this;
    return { ok, display, structured, brief, error_kind: errorKind, detail };
  }
}

/** An event. */
export class Event {
  #plugin;

  constructor(plugin, { id, kind, session_id, ts, source, payload }) {
    this.#plugin = plugin;
    Object.assign(this, { id, kind, sessionId: session_id, ts, source, payload });
  }

  /** Emits an answer to this event. */
  reply(kind, payload) {
    return this.#plugin.emit(kind, this.sessionId, { ...payload, request_id: this.id });
  }
}

/** One call of a tool. */
export class Call {
  #request;

  constructor(plugin, request, params, signal) {
    this.#request = request;
    this.plugin = plugin;
    this.id = params.call_id;
    this.sessionId = params.session_id;
    this.turnId = params.turn_id ?? "";
    this.signal = signal;
    this.until = Date.now() + (params.deadline_ms ?? 0);
  }

  /** Reports how far the call is. */
  progress(progress, total = undefined, message = undefined) {
    this.plugin.notify("progress", { id: this.#request, progress, total, message });
  }
}

/** A call of a tool that a guard is asked about. */
export class GuardedCall {
  constructor({ session_id, call: { call_id, turn_id, name, server, kind, origin, principal, args, shown } = {} }) {
    Object.assign(this, { callId: call_id, turnId: turn_id ?? "", name, server: server ?? "", kind, origin, principal: principal ?? "", args, shown, sessionId: session_id });
  }
}

/** The messages of the user since the model was last asked. */
export class GuardedPrompt {
  constructor({ session_id, prompt = "" }) {
    Object.assign(this, { text: prompt, sessionId: session_id });
  }
}

/** The answer of a guard. */
export class Verdict {
  constructor(decision, reason = undefined) {
    Object.assign(this, { decision, reason });
  }

  static allow() {
    return new Verdict("allow");
  }

  static ask(reason) {
    return new Verdict("ask", reason);
  }

  static deny(reason) {
    return new Verdict("deny", reason);
  }
}

/** Returns a message as a line. A value that is not JSON throws a TypeError. */
export function encode(message) {
  return JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n";
}

/** Returns what an exception says. */
export function described(err) {
  return err instanceof Error ? `${err.name}: ${err.message}` : String(err);
}
