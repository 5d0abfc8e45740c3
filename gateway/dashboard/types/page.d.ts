// Types that the page's modules share. Its APIs are typed by what yaya itself says of
// them: admin.d.ts and v1.d.ts are made of the two OpenAPI documents (make types).
import type { components as AdminComponents, paths as AdminPaths } from './admin.d.ts';
import type { components as V1Components, paths as V1Paths } from './v1.d.ts';
import type { ComponentChildren } from '../page/vendor/preact.js';

type Paths = AdminPaths & V1Paths;

/** Lists without null: the documents call all of them nullable, as lists of Go are, and
 * yaya sends an empty one instead. */
type Whole<T> = T extends (infer E)[]
  ? Whole<E>[]
  : T extends object
    ? { [K in keyof T]: Whole<Exclude<T[K], null>> }
    : T;

/** A path of a document as the page writes it, with a string for each parameter. */
type Pattern<K extends string> = K extends `${infer A}{${string}}${infer B}`
  ? `${A}${string}${Pattern<B>}`
  : K;

type WithoutQuery<P extends string> = P extends `${infer A}?${string}` ? A : P;

/** The path of a document that one of the page's is. */
type Key<P extends string> = {
  [K in keyof Paths]: [Pattern<K>, WithoutQuery<P>] extends [WithoutQuery<P>, Pattern<K>]
    ? K
    : never;
}[keyof Paths];

type Operation<M extends string, P extends string> =
  Key<P> extends infer K extends keyof Paths ? Paths[K][Lowercase<M> & keyof Paths[K]] : never;

type JSONOf<R> = R extends { content: { 'application/json': infer J } } ? J : undefined;

declare global {
  type Children = ComponentChildren;

  /** A schema of the admin API, and one of the API of sessions. */
  type Admin<N extends keyof AdminComponents['schemas']> = Whole<AdminComponents['schemas'][N]>;
  type V1<N extends keyof V1Components['schemas']> = Whole<V1Components['schemas'][N]>;

  /** P if an API has the operation, else nothing that could be passed. */
  type Known<M extends string, P extends string> = [Operation<M, P>] extends [never]
    ? never
    : Operation<M, P> extends { responses: unknown }
      ? P
      : never;

  /** The response of an operation. */
  type AnswerOf<M extends string, P extends string> =
    Operation<M, P> extends { responses: infer R }
      ? Whole<Exclude<JSONOf<R[keyof R & (200 | 201 | 202 | 204)]>, null>>
      : never;

  /** The request of an operation. */
  type BodyOf<M extends string, P extends string> =
    Operation<M, P> extends { requestBody: { content: { 'application/json': infer B } } }
      ? B
      : undefined;

  interface Cursor {
    epoch: string;
    seq: number;
  }

  type Attachment = Pick<V1<'Uploaded'>, 'ref' | 'mime_type'> & { name?: string };

  /** The result of a tool (Y-122). */
  type Envelope = Partial<Admin<'Called'>>;

  /** An event of a session as its topic tells it (docs/WIRE.md). Its data depends
   * on its type (docs/events). */
  interface Told {
    type: string;
    ts?: string;
    client_id?: string;
    cursor?: Cursor;
    data?: Partial<{
      id: string;
      name: string;
      args: unknown;
      ok: boolean;
      envelope: Envelope;
      stop_reason: string;
      kind: string;
      brief: string;
      detail: unknown;
      error: string;
      reason: string;
      text: string;
      content: string;
      attachments: Attachment[];
      progress: number;
      total: number;
      message: string;
      response: string;
      tool_name: string;
      feedback: string;
      usage: V1<'Usage'>;
      command: string;
      exit_code: number;
      how: string;
      wait_s: number;
      failed: { provider?: string; model?: string };
      next: { provider?: string; model?: string };
      queue: Waiting[];
    }>;
  }

  /** A message that waits for the turn to end. */
  interface Waiting {
    id: string;
    text: string;
  }

  /** Where a session is, as the answer to joining its topic and resync tell it. */
  interface Snapshot {
    turn_id?: string;
    queue?: Waiting[];
  }

  /** Details that yaya's own tools add to a question; another tool's arguments may look like
   * it, so that the tool's name is asked for first. */
  interface Asked {
    folder?: string;
    items?: Admin<'Item'>[];
    added?: Admin<'Item'>[];
    removed?: Admin<'Item'>[];
    allowed?: Admin<'Item'>[];
    host?: string;
    port?: number;
    command?: string;
    cwd?: string;
    sandbox?: string;
    weaker?: string[];
    outside?: boolean;
    reason?: string;
    hosts?: string[];
    write?: string[];
    commands?: string[];
    source?: string;
    changed_unreviewed?: { path: string }[];
    changed_unknown?: string;
  }

  /** A JSON Schema, as far as the page makes forms of one. */
  interface Schema {
    type?: unknown;
    title?: string;
    description?: string;
    properties?: Record<string, Schema>;
    required?: string[];
    enum?: unknown[];
    maxLength?: number;
    default?: unknown;
  }
}
