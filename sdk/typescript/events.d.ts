/** The payloads of events, as types. Made of docs/events by go test ./plugins/conform -run TestEventTypes -update. Do not edit. */

/** The payload of approval.cancelled. */
export interface ApprovalCancelled {
  id: string;
  reason: string;
}

/** The payload of approval.request. */
export interface ApprovalRequest {
  brief: string;
  id: string;
  params: any;
  tool_name: string;
}

/** The payload of approval.response. */
export interface ApprovalResponse {
  feedback?: string;
  id: string;
  response: "approve" | "approve_for_session" | "reject";
}

/** The payload of assistant.message.delta. */
export interface AssistantMessageDelta {
  content: string;
}

/** A part of payloads. */
export interface AssistantMessageDoneToolCall {
  args: any;
  id: string;
  name: string;
}

/** The payload of assistant.message.done. */
export interface AssistantMessageDone {
  content: string;
  tool_calls: AssistantMessageDoneToolCall[] | null;
}

/** The payload of config.updated. */
export interface ConfigUpdated {
  key: string;
  prefix_match_hint: string;
}

/** The payload of kernel.error. */
export interface KernelError {
  detail?: any;
  message: string;
  source: string;
}

/** The payload of kernel.ready. */
export interface KernelReady {
  version: string;
}

/** The payload of kernel.shutdown. */
export interface KernelShutdown {
  reason: string;
}

/** The payload of llm.call.delta. */
export interface LLMCallDelta {
  content?: string;
  reasoning?: string;
  request_id?: string;
  tool_call_partial?: any;
}

/** The payload of llm.call.error. */
export interface LLMCallError {
  context_window?: number;
  error: string;
  kind?: "connection" | "timeout" | "status" | "empty" | "other";
  overflow?: boolean;
  request_id?: string;
  retry_after_s?: number;
  status_code?: number;
}

/** A part of payloads. */
export interface LLMCallFallbackFailed {
  model: string;
  provider: string;
}

/** The payload of llm.call.fallback. */
export interface LLMCallFallback {
  error: string;
  failed: LLMCallFallbackFailed;
  kind?: "connection" | "timeout" | "status" | "empty" | "other";
  next: LLMCallFallbackFailed;
  status_code?: number;
}

/** A part of payloads. */
export interface LLMCallRequestMessageAttachment {
  mime_type: string;
  name?: string;
  ref: string;
}

/** A part of payloads. */
export interface LLMCallRequestMessageImage {
  data: string;
  mime_type: string;
}

/** A part of payloads. */
export interface LLMCallRequestMessageReasoning {
  by?: string;
  calls?: number;
  data?: any;
  text?: string;
}

/** A part of payloads. */
export interface LLMCallRequestMessage {
  attachments?: LLMCallRequestMessageAttachment[] | null;
  content: string;
  images?: LLMCallRequestMessageImage[] | null;
  note?: string;
  reasoning?: LLMCallRequestMessageReasoning[] | null;
  role: string;
  tool?: boolean;
  tool_call_id?: string;
  tool_calls?: AssistantMessageDoneToolCall[] | null;
}

/** A part of payloads. */
export interface LLMCallRequestTool {
  description: string;
  name: string;
  parameters: any;
}

/** The payload of llm.call.request. */
export interface LLMCallRequest {
  messages: LLMCallRequestMessage[] | null;
  model: string;
  params: any;
  provider: string;
  tools?: LLMCallRequestTool[] | null;
}

/** A part of payloads. */
export interface LLMCallResponseUsage {
  input: number;
  input_cache_creation: number;
  input_cache_read: number;
  input_other: number;
  output: number;
  total: number;
}

/** The payload of llm.call.response. */
export interface LLMCallResponse {
  cost_usd?: number;
  model?: string;
  reasoning?: LLMCallRequestMessageReasoning[] | null;
  request_id?: string;
  stop_reason?: string;
  text?: string;
  tool_calls?: AssistantMessageDoneToolCall[] | null;
  usage: LLMCallResponseUsage;
}

/** The payload of llm.call.retry. */
export interface LLMCallRetry {
  attempt: number;
  error: string;
  kind?: "connection" | "timeout" | "status" | "empty" | "other";
  request_id?: string;
  status_code?: number;
  wait_s: number;
}

/** The payload of memory.query. */
export interface MemoryQuery {
  folder?: string;
  k: number;
  query: string;
}

/** A part of payloads. */
export interface MemoryResultHit {
  id?: string;
  meta?: Record<string, string>;
  text: string;
}

/** The payload of memory.result. */
export interface MemoryResult {
  hits: MemoryResultHit[] | null;
  request_id?: string;
}

/** The payload of memory.write. */
export interface MemoryWrite {
  entry: MemoryResultHit;
}

/** The payload of plugin.error. */
export interface PluginError {
  error: string;
  name: string;
}

/** The payload of plugin.loaded. */
export interface PluginLoaded {
  category: string;
  name: string;
  version: string;
}

/** The payload of plugin.reloaded. */
export interface PluginReloaded {
  name: string;
  version: string;
}

/** The payload of plugin.removed. */
export interface PluginRemoved {
  name: string;
}

/** The payload of session.archived. */
export interface SessionArchived {
  archive_path: string;
  session_id: string;
}

/** The payload of session.compaction.completed. */
export interface SessionCompactionCompleted {
  how?: string;
  target_session_id: string;
  tokens_after: number;
  tokens_before: number;
}

/** The payload of session.compaction.failed. */
export interface SessionCompactionFailed {
  error: string;
  target_session_id: string;
}

/** The payload of session.compaction.started. */
export interface SessionCompactionStarted {
  target_session_id: string;
  tokens_before: number;
}

/** The payload of session.context.attached. */
export interface SessionContextAttached {
  adapter_id: string;
  connection_id: string;
  session_id: string;
}

/** The payload of session.context.detached. */
export interface SessionContextDetached {
  connection_id: string;
  reason: string;
  session_id: string;
}

/** The payload of session.context.evicted. */
export interface SessionContextEvicted {
  reason: string;
  session_id: string;
}

/** The payload of session.deleted. */
export interface SessionDeleted {
  session_id: string;
}

/** The payload of session.forked. */
export interface SessionForked {
  child_id: string;
  parent_id: string;
}

/** The payload of session.handoff. */
export interface SessionHandoff {
  name: string;
  session_id: string;
  state: any;
}

/** The payload of session.replay.done. */
export interface SessionReplayDone {
  connection_id: string;
  replayed: number;
  session_id: string;
}

/** The payload of session.replay.entry. */
export interface SessionReplayEntry {
  entry_id: number;
  kind: string;
  payload: any;
  session_id: string;
}

/** The payload of session.reset. */
export interface SessionReset {
  archive_path: string | null;
  session_id: string;
}

/** The payload of session.started. */
export interface SessionStarted {
  session_id: string;
  tape_name: string;
  workspace: string;
}

/** A part of payloads. */
export interface StrategyDecideRequestState {
  answer?: string;
  answered: boolean;
  messages: LLMCallRequestMessage[] | null;
  pending?: AssistantMessageDoneToolCall[] | null;
  recalled: boolean;
  step: number;
  tool_names: string[] | null;
  turn_id: string;
  window?: number;
}

/** The payload of strategy.decide.request. */
export interface StrategyDecideRequest {
  state: StrategyDecideRequestState;
}

/** A part of payloads. */
export interface StrategyDecideResponseNote {
  name: string;
  text: string;
}

/** The payload of strategy.decide.response. */
export interface StrategyDecideResponse {
  folder?: string;
  k?: number;
  model?: string;
  next: "llm" | "tool" | "memory" | "done";
  notes?: StrategyDecideResponseNote[] | null;
  params?: any;
  provider?: string;
  query?: string;
  remember?: string;
  request_id?: string;
  system?: string;
  tool_calls?: AssistantMessageDoneToolCall[] | null;
  tools?: string[] | null;
}

/** The payload of tool.call.request. */
export interface ToolCallRequest {
  args: any;
  id: string;
  name: string;
  request_id?: string;
  schema_version?: string;
}

/** The payload of tool.call.result. */
export interface ToolCallResult {
  envelope?: any;
  error?: string;
  id: string;
  ok: boolean;
  request_id?: string;
  value?: any;
}

/** The payload of tool.call.start. */
export interface ToolCallStart {
  args: any;
  id: string;
  name: string;
}

/** The payload of tool.error. */
export interface ToolError {
  brief: string;
  detail?: any;
  id: string;
  kind: "validation" | "not_found" | "rejected";
  request_id?: string;
}

/** The payload of tool.progress. */
export interface ToolProgress {
  id: string;
  message?: string;
  progress: number;
  total?: number | null;
}

/** The payload of turn.cancelled. */
export interface TurnCancelled {
  reason: string;
  turn_id: string;
}

/** The payload of turn.completed. */
export interface TurnCompleted {
  cost_usd?: number;
  steps: number;
  stop_reason?: string;
  turn_id: string;
  usage: LLMCallResponseUsage;
}

/** The payload of turn.failed. */
export interface TurnFailed {
  error: string;
  kind: string;
  turn_id: string;
}

/** The payload of turn.note. */
export interface TurnNote {
  name: string;
  text: string;
}

/** The payload of turn.notice. */
export interface TurnNotice {
  text: string;
}

/** The payload of turn.started. */
export interface TurnStarted {
  model?: string;
  tool_generation: number;
  turn_id: string;
}

/** The payload of user.interrupt. */
export interface UserInterrupt {
}

/** The payload of user.message.received. */
export interface UserMessageReceived {
  attachments?: LLMCallRequestMessageAttachment[] | null;
  text: string;
}

/** The payload of verify.completed. */
export interface VerifyCompleted {
  command: string;
  exit_code?: number | null;
  output_ref?: string;
  turn_id: string;
}

/** The payload of verify.started. */
export interface VerifyStarted {
  command: string;
  turn_id: string;
}

/** The payload of each kind of event. */
export interface Payloads {
  "approval.cancelled": ApprovalCancelled;
  "approval.request": ApprovalRequest;
  "approval.response": ApprovalResponse;
  "assistant.message.delta": AssistantMessageDelta;
  "assistant.message.done": AssistantMessageDone;
  "config.updated": ConfigUpdated;
  "kernel.error": KernelError;
  "kernel.ready": KernelReady;
  "kernel.shutdown": KernelShutdown;
  "llm.call.delta": LLMCallDelta;
  "llm.call.error": LLMCallError;
  "llm.call.fallback": LLMCallFallback;
  "llm.call.request": LLMCallRequest;
  "llm.call.response": LLMCallResponse;
  "llm.call.retry": LLMCallRetry;
  "memory.query": MemoryQuery;
  "memory.result": MemoryResult;
  "memory.write": MemoryWrite;
  "plugin.error": PluginError;
  "plugin.loaded": PluginLoaded;
  "plugin.reloaded": PluginReloaded;
  "plugin.removed": PluginRemoved;
  "session.archived": SessionArchived;
  "session.compaction.completed": SessionCompactionCompleted;
  "session.compaction.failed": SessionCompactionFailed;
  "session.compaction.started": SessionCompactionStarted;
  "session.context.attached": SessionContextAttached;
  "session.context.detached": SessionContextDetached;
  "session.context.evicted": SessionContextEvicted;
  "session.deleted": SessionDeleted;
  "session.forked": SessionForked;
  "session.handoff": SessionHandoff;
  "session.replay.done": SessionReplayDone;
  "session.replay.entry": SessionReplayEntry;
  "session.reset": SessionReset;
  "session.started": SessionStarted;
  "strategy.decide.request": StrategyDecideRequest;
  "strategy.decide.response": StrategyDecideResponse;
  "tool.call.request": ToolCallRequest;
  "tool.call.result": ToolCallResult;
  "tool.call.start": ToolCallStart;
  "tool.error": ToolError;
  "tool.progress": ToolProgress;
  "turn.cancelled": TurnCancelled;
  "turn.completed": TurnCompleted;
  "turn.failed": TurnFailed;
  "turn.note": TurnNote;
  "turn.notice": TurnNotice;
  "turn.started": TurnStarted;
  "user.interrupt": UserInterrupt;
  "user.message.received": UserMessageReceived;
  "verify.completed": VerifyCompleted;
  "verify.started": VerifyStarted;
}
