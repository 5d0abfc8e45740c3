/** Types of the SDK for plugins of yaya. docs/PLUGINS.md specifies the protocol. */

import type { Payloads } from "./events.js";

export type { Payloads } from "./events.js";

export type Category = "tool" | "llm-provider" | "strategy" | "memory" | "adapter" | "skill";
export type Level = "debug" | "info" | "warn" | "error";
export type Status = "ok" | "degraded" | "failed";
export type ErrorKind = "tool" | "validation" | "not_found" | "rejected" | "timeout" | "unavailable" | "internal";

/** A JSON Schema of the 2020-12 version. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** The type of the values that a schema describes, as far as it is written in place. */
export type ValueOf<S extends Schema> = S extends { readonly enum: readonly (infer E)[] }
  ? E
  : S extends { readonly type: "string" }
    ? string
    : S extends { readonly type: "number" | "integer" }
      ? number
      : S extends { readonly type: "boolean" }
        ? boolean
        : S extends { readonly type: "null" }
          ? null
          : S extends { readonly type: "array"; readonly items: infer I extends Schema }
            ? ValueOf<I>[]
            : S extends { readonly type: "object"; readonly properties: infer P extends Readonly<Record<string, Schema>> }
              ? { [K in keyof P]?: ValueOf<P[K]> }
              : unknown;

type Members = Readonly<Record<string, Schema>>;

export type Arguments<P extends Members, O extends keyof P> = { [K in Exclude<keyof P, O>]: ValueOf<P[K]> } & { [K in O]?: ValueOf<P[K]> };

export interface ToolOptions<P extends Members, O extends keyof P> {
  /** For the model. */
  description: string;
  title?: string;
  /** yaya asks before it calls a tool of kind write or exec, which is the default. */
  kind?: "read" | "write" | "exec" | "network";
  /** The arguments: a schema for each. */
  input?: P;
  /** The arguments that a call may leave out. */
  optional?: readonly O[];
  /** The schema of all arguments, in the place of input. */
  inputSchema?: Schema;
  /** The schema of the structured result. */
  outputSchema?: Schema;
  /** Ask before each call, whatever the kind is. */
  requiresApproval?: boolean;
  /** Limit of a call; 120 s without. */
  timeoutMs?: number;
}

export type Block = { kind: "text"; text: string } | { kind: "markdown"; markdown: string } | { kind: "json"; data: unknown };

export interface ResultMembers {
  ok?: boolean;
  display?: Block[];
  structured?: unknown;
  /** One line of at most 80 characters; yaya makes one without. */
  brief?: string;
  errorKind?: ErrorKind;
  detail?: unknown;
}

/** The result of a tool call. */
export class Result {
  constructor(members?: ResultMembers);
  ok: boolean;
  display: Block[];
  structured?: unknown;
  brief?: string;
  errorKind?: ErrorKind;
  detail?: unknown;
  static text(text: string): Result;
  static markdown(markdown: string): Result;
  static json(value: unknown): Result;
  static fail(text: string, kind?: ErrorKind, detail?: unknown): Result;
}

/** One call of a tool. */
export class Call {
  readonly plugin: Plugin;
  readonly id: string;
  readonly sessionId: string;
  /** Empty if no agent of yaya's calls. */
  readonly turnId: string;
  /** Aborts when nobody waits any longer. */
  readonly signal: AbortSignal;
  /** When yaya gives up, in milliseconds since 1970. */
  readonly until: number;
  /** Reports how far the call is. */
  progress(progress: number, total?: number, message?: string): void;
}

/** An event; `Payloads` and docs/events have the payload of each kind. */
export class Event<P = any> {
  readonly id: string;
  readonly kind: string;
  readonly sessionId: string;
  /** Seconds since 1970. */
  readonly ts: number;
  readonly source: string;
  readonly payload: P;
  /** Emits an answer to this event. */
  reply(kind: string, payload: Record<string, unknown>): Promise<void>;
}

/** A call of a tool that a guard is asked about. */
export class GuardedCall {
  readonly callId: string;
  /** Empty if no agent of yaya's calls. */
  readonly turnId: string;
  readonly name: string;
  /** The MCP server whose tool it is, or empty. */
  readonly server: string;
  readonly kind: "read" | "write" | "exec" | "network";
  /** Who calls: loop (an agent), mcp, cli or api. */
  readonly origin: string;
  readonly principal: string;
  readonly args: Readonly<Record<string, any>>;
  /** The call as a person sees it who is asked, if that is not args. */
  readonly shown?: any;
  readonly sessionId: string;
}

/** The messages of the user since the model was last asked. */
export class GuardedPrompt {
  readonly text: string;
  readonly sessionId: string;
}

/** The answer of a guard. */
export class Verdict {
  private constructor(decision: string, reason?: string);
  readonly decision: "allow" | "ask" | "deny";
  readonly reason?: string;
  /** No objection. It lifts nothing: rules and people decide. */
  static allow(): Verdict;
  /** A person has to approve the call. A message is then denied. */
  static ask(reason: string): Verdict;
  /** The call does not run, or the model does not get the message. */
  static deny(reason: string): Verdict;
}

export interface Health {
  status: Status;
  summary: string;
  details?: { name: string; status: Status; message: string }[];
}

/** A configured instance of a model provider. */
export interface Instance {
  readonly id: string;
  readonly label: string;
  readonly config: Readonly<Record<string, any>>;
}

type Maybe<T> = T | Promise<T>;

/**
 * A plugin. Its name, version and category are as in its plugin.toml. Register tools and
 * handlers, then call run.
 */
export class Plugin {
  constructor(manifest: { name: string; version: string; category: Category });
  readonly name: string;
  readonly version: string;
  readonly category: Category;
  /** The settings, as of the start or of refresh. */
  config: Readonly<Record<string, any>>;
  /** The configured instances, for an llm-provider. */
  providers: readonly Instance[];
  /** A folder that the plugin may write. */
  stateDir: string;
  kernel: { version: string; protocol: string };

  /**
   * Adds a tool. It returns a text, a Result, or a value for JSON. A ToolError fails the call
   * with its words, and so does every other exception.
   */
  tool<const P extends Members = {}, const O extends keyof P = never>(
    name: string,
    options: ToolOptions<P, O>,
    run: (args: Arguments<P, O>, call: Call) => unknown,
  ): void;
  /**
   * Handles events of a kind, which plugin.toml subscribes to. An exception counts as a failure
   * of the plugin; long work belongs in spawn.
   */
  on<K extends keyof Payloads>(kind: K, handler: (event: Event<Payloads[K]>, signal: AbortSignal) => unknown): void;
  on<P = any>(kind: string, handler: (event: Event<P>, signal: AbortSignal) => unknown): void;
  /**
   * Guards calls of tools, whoever makes them, before they run. permissions.guards of plugin.toml
   * names "pre_tool". An exception, and everything but a Verdict, denies, and counts as a failure
   * of the plugin.
   */
  guardTool(decide: (call: GuardedCall, signal: AbortSignal) => Maybe<Verdict>): void;
  /** Guards the user's messages before the model gets them; permissions.guards names "prompt". */
  guardPrompt(decide: (prompt: GuardedPrompt, signal: AbortSignal) => Maybe<Verdict>): void;
  /** Runs before everything else, within ten seconds. */
  onStart(run: () => unknown): void;
  /** Reports how the plugin is: a summary, or more. */
  health(check: () => Maybe<string | Health>): void;
  /** Saves the plugin's state, within a second. */
  onShutdown(run: () => unknown): void;
  /** Serves yaya on standard input and output, and exits when yaya ends the plugin. */
  run(): Promise<never>;

  /** Publishes an event, and waits until yaya has accepted it. A YayaError says why not. */
  emit(kind: string, sessionId: string, payload: unknown): Promise<void>;
  /** Publishes an event without waiting: if yaya refuses it, its log says so. */
  send(kind: string, sessionId: string, payload: unknown): void;
  /** Publishes a request to another plugin, and returns the event that answers. Only skills may. */
  request<P = any>(kind: string, sessionId: string, payload: unknown, options?: { timeoutMs?: number }): Promise<Event<P>>;
  /** Reads the present settings into config and providers. */
  refresh(): Promise<void>;
  /** Writes a line to yaya's log. */
  log(message: string, level?: Level): void;
  /** Runs work beside the messages. Its exception goes to the log; the signal aborts at the end. */
  spawn(work: (signal: AbortSignal) => unknown): Promise<void>;
}

/** yaya has refused or failed what the plugin asked for. */
export class YayaError extends Error {
  constructor(code: number, message: string);
  readonly code: number;
}

/** yaya no longer listens. */
export class ConnectionClosed extends Error {}

/** A failed tool call: the model reads the message. */
export class ToolError extends Error {
  constructor(message: string, kind?: ErrorKind, detail?: unknown);
}

/** Codes of a YayaError. */
export const codes: Readonly<{ refused: -32001; busy: -32002; noAnswer: -32003; failed: -32004 }>;
