import type { ChildProcess } from "node:child_process";
import type { Plugin } from "./index.js";

export interface HarnessOptions {
  /** The folder of a program. */
  cwd?: string;
  config?: Record<string, unknown>;
  providers?: { id: string; label?: string; config: Record<string, unknown> }[];
  /** A temporary folder without. */
  stateDir?: string;
}

/**
 * A yaya for tests of a plugin, without yaya. It speaks the protocol with a Plugin in this
 * process, or with a program, and accepts everything that a plugin emits: `yaya plugin test`
 * says what yaya refuses.
 */
export class Harness {
  /** Starts a plugin; close ends it. */
  static start(plugin: Plugin | readonly string[], options?: HarnessOptions): Promise<Harness>;
  close(): Promise<void>;

  /** The result of initialize. */
  manifest: any;
  /** The params of emit, in their order. */
  emitted: { kind: string; session_id: string; payload: any }[];
  logs: string[];
  progress: { id: number; progress: number; total?: number; message?: string }[];
  /** Kinds that the plugin may not emit. */
  refused: Set<string>;
  /** The answers to requests of a skill, by kind: the kind of the answer, and its payload. */
  answers: Record<string, (payload: any) => [kind: string, payload: unknown]>;
  /** The settings that refresh reads. */
  config: Record<string, unknown>;
  providers: HarnessOptions["providers"];
  stateDir: string;
  /** Of a program: the lines that are not messages, its standard error and its exit code. */
  stray: string[];
  stderr: string;
  exitCode?: number;
  process?: ChildProcess;

  /** Sends a request and returns its result. A YayaError is the plugin's error. */
  ask(method: string, params: unknown, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<any>;
  /** Calls a tool and returns the result as the protocol has it. */
  call(name: string, args?: Record<string, unknown>, options?: { sessionId?: string; timeoutMs?: number; signal?: AbortSignal }): Promise<any>;
  /** Delivers an event, waits until it is handled, and returns its id. */
  event(kind: string, payload: unknown, options?: { sessionId?: string; timeoutMs?: number }): Promise<string>;
  /** Asks the guard of calls about one, and returns its answer as the protocol has it. */
  guardTool(name: string, args?: Record<string, unknown>, options?: { sessionId?: string; timeoutMs?: number; kind?: string; server?: string; principal?: string }): Promise<any>;
  /** Asks the guard of messages about one. */
  guardPrompt(text: string, options?: { sessionId?: string; timeoutMs?: number }): Promise<any>;
  /** Waits for an event of a kind, forgets it and returns its payload. */
  next(kind: string, options?: { timeoutMs?: number }): Promise<any>;
  /** Sends a line. */
  write(line: string): void;
}
