"""The payloads of events, as types.

Made of docs/events by go test ./plugins/conform -run TestEventTypes -update. Do not edit.

A member that may be absent is in a class without the end Required.
"""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict


class ApprovalCancelled(TypedDict):
    """The payload of approval.cancelled."""

    id: str
    reason: str


class ApprovalRequest(TypedDict):
    """The payload of approval.request."""

    brief: str
    id: str
    params: Any
    tool_name: str


class ApprovalResponseRequired(TypedDict):
    """Has the members of ApprovalResponse that are always there."""

    id: str
    response: Literal["approve", "approve_for_session", "reject"]


class ApprovalResponse(ApprovalResponseRequired, total=False):
    """The payload of approval.response."""

    feedback: str


class AssistantMessageDelta(TypedDict):
    """The payload of assistant.message.delta."""

    content: str


class AssistantMessageDoneToolCall(TypedDict):
    """A part of payloads."""

    args: Any
    id: str
    name: str


class AssistantMessageDone(TypedDict):
    """The payload of assistant.message.done."""

    content: str
    tool_calls: Optional[List[AssistantMessageDoneToolCall]]


class ConfigUpdated(TypedDict):
    """The payload of config.updated."""

    key: str
    prefix_match_hint: str


class KernelErrorRequired(TypedDict):
    """Has the members of KernelError that are always there."""

    message: str
    source: str


class KernelError(KernelErrorRequired, total=False):
    """The payload of kernel.error."""

    detail: Any


class KernelReady(TypedDict):
    """The payload of kernel.ready."""

    version: str


class KernelShutdown(TypedDict):
    """The payload of kernel.shutdown."""

    reason: str


class LLMCallDelta(TypedDict, total=False):
    """The payload of llm.call.delta."""

    content: str
    reasoning: str
    request_id: str
    tool_call_partial: Any


class LLMCallErrorRequired(TypedDict):
    """Has the members of LLMCallError that are always there."""

    error: str


class LLMCallError(LLMCallErrorRequired, total=False):
    """The payload of llm.call.error."""

    context_window: int
    kind: Literal["connection", "timeout", "status", "empty", "other"]
    overflow: bool
    request_id: str
    retry_after_s: float
    status_code: int


class LLMCallFallbackFailed(TypedDict):
    """A part of payloads."""

    model: str
    provider: str


class LLMCallFallbackRequired(TypedDict):
    """Has the members of LLMCallFallback that are always there."""

    error: str
    failed: LLMCallFallbackFailed
    next: LLMCallFallbackFailed


class LLMCallFallback(LLMCallFallbackRequired, total=False):
    """The payload of llm.call.fallback."""

    kind: Literal["connection", "timeout", "status", "empty", "other"]
    status_code: int


class LLMCallRequestMessageAttachmentRequired(TypedDict):
    """Has the members of LLMCallRequestMessageAttachment that are always there."""

    mime_type: str
    ref: str


class LLMCallRequestMessageAttachment(LLMCallRequestMessageAttachmentRequired, total=False):
    """A part of payloads."""

    name: str


class LLMCallRequestMessageImage(TypedDict):
    """A part of payloads."""

    data: str
    mime_type: str


class LLMCallRequestMessageReasoning(TypedDict, total=False):
    """A part of payloads."""

    by: str
    calls: int
    data: Any
    text: str


class LLMCallRequestMessageRequired(TypedDict):
    """Has the members of LLMCallRequestMessage that are always there."""

    content: str
    role: str


class LLMCallRequestMessage(LLMCallRequestMessageRequired, total=False):
    """A part of payloads."""

    attachments: Optional[List[LLMCallRequestMessageAttachment]]
    images: Optional[List[LLMCallRequestMessageImage]]
    note: str
    reasoning: Optional[List[LLMCallRequestMessageReasoning]]
    tool: bool
    tool_call_id: str
    tool_calls: Optional[List[AssistantMessageDoneToolCall]]


class LLMCallRequestTool(TypedDict):
    """A part of payloads."""

    description: str
    name: str
    parameters: Any


class LLMCallRequestRequired(TypedDict):
    """Has the members of LLMCallRequest that are always there."""

    messages: Optional[List[LLMCallRequestMessage]]
    model: str
    params: Any
    provider: str


class LLMCallRequest(LLMCallRequestRequired, total=False):
    """The payload of llm.call.request."""

    tools: Optional[List[LLMCallRequestTool]]


class LLMCallResponseUsage(TypedDict):
    """A part of payloads."""

    input: int
    input_cache_creation: int
    input_cache_read: int
    input_other: int
    output: int
    total: int


class LLMCallResponseRequired(TypedDict):
    """Has the members of LLMCallResponse that are always there."""

    usage: LLMCallResponseUsage


class LLMCallResponse(LLMCallResponseRequired, total=False):
    """The payload of llm.call.response."""

    cost_usd: float
    model: str
    reasoning: Optional[List[LLMCallRequestMessageReasoning]]
    request_id: str
    stop_reason: str
    text: str
    tool_calls: Optional[List[AssistantMessageDoneToolCall]]


class LLMCallRetryRequired(TypedDict):
    """Has the members of LLMCallRetry that are always there."""

    attempt: int
    error: str
    wait_s: float


class LLMCallRetry(LLMCallRetryRequired, total=False):
    """The payload of llm.call.retry."""

    kind: Literal["connection", "timeout", "status", "empty", "other"]
    request_id: str
    status_code: int


class MemoryQueryRequired(TypedDict):
    """Has the members of MemoryQuery that are always there."""

    k: int
    query: str


class MemoryQuery(MemoryQueryRequired, total=False):
    """The payload of memory.query."""

    folder: str


class MemoryResultHitRequired(TypedDict):
    """Has the members of MemoryResultHit that are always there."""

    text: str


class MemoryResultHit(MemoryResultHitRequired, total=False):
    """A part of payloads."""

    id: str
    meta: Dict[str, str]


class MemoryResultRequired(TypedDict):
    """Has the members of MemoryResult that are always there."""

    hits: Optional[List[MemoryResultHit]]


class MemoryResult(MemoryResultRequired, total=False):
    """The payload of memory.result."""

    request_id: str


class MemoryWrite(TypedDict):
    """The payload of memory.write."""

    entry: MemoryResultHit


class PluginError(TypedDict):
    """The payload of plugin.error."""

    error: str
    name: str


class PluginLoaded(TypedDict):
    """The payload of plugin.loaded."""

    category: str
    name: str
    version: str


class PluginReloaded(TypedDict):
    """The payload of plugin.reloaded."""

    name: str
    version: str


class PluginRemoved(TypedDict):
    """The payload of plugin.removed."""

    name: str


class SessionArchived(TypedDict):
    """The payload of session.archived."""

    archive_path: str
    session_id: str


class SessionCompactionCompletedRequired(TypedDict):
    """Has the members of SessionCompactionCompleted that are always there."""

    target_session_id: str
    tokens_after: int
    tokens_before: int


class SessionCompactionCompleted(SessionCompactionCompletedRequired, total=False):
    """The payload of session.compaction.completed."""

    how: str


class SessionCompactionFailed(TypedDict):
    """The payload of session.compaction.failed."""

    error: str
    target_session_id: str


class SessionCompactionStarted(TypedDict):
    """The payload of session.compaction.started."""

    target_session_id: str
    tokens_before: int


class SessionContextAttached(TypedDict):
    """The payload of session.context.attached."""

    adapter_id: str
    connection_id: str
    session_id: str


class SessionContextDetached(TypedDict):
    """The payload of session.context.detached."""

    connection_id: str
    reason: str
    session_id: str


class SessionContextEvicted(TypedDict):
    """The payload of session.context.evicted."""

    reason: str
    session_id: str


class SessionDeleted(TypedDict):
    """The payload of session.deleted."""

    session_id: str


class SessionForked(TypedDict):
    """The payload of session.forked."""

    child_id: str
    parent_id: str


class SessionHandoff(TypedDict):
    """The payload of session.handoff."""

    name: str
    session_id: str
    state: Any


class SessionReplayDone(TypedDict):
    """The payload of session.replay.done."""

    connection_id: str
    replayed: int
    session_id: str


class SessionReplayEntry(TypedDict):
    """The payload of session.replay.entry."""

    entry_id: int
    kind: str
    payload: Any
    session_id: str


class SessionReset(TypedDict):
    """The payload of session.reset."""

    archive_path: Optional[str]
    session_id: str


class SessionStarted(TypedDict):
    """The payload of session.started."""

    session_id: str
    tape_name: str
    workspace: str


class StrategyDecideRequestStateRequired(TypedDict):
    """Has the members of StrategyDecideRequestState that are always there."""

    answered: bool
    messages: Optional[List[LLMCallRequestMessage]]
    recalled: bool
    step: int
    tool_names: Optional[List[str]]
    turn_id: str


class StrategyDecideRequestState(StrategyDecideRequestStateRequired, total=False):
    """A part of payloads."""

    answer: str
    pending: Optional[List[AssistantMessageDoneToolCall]]
    window: int


class StrategyDecideRequest(TypedDict):
    """The payload of strategy.decide.request."""

    state: StrategyDecideRequestState


class StrategyDecideResponseNote(TypedDict):
    """A part of payloads."""

    name: str
    text: str


class StrategyDecideResponseRequired(TypedDict):
    """Has the members of StrategyDecideResponse that are always there."""

    next: Literal["llm", "tool", "memory", "done"]


class StrategyDecideResponse(StrategyDecideResponseRequired, total=False):
    """The payload of strategy.decide.response."""

    folder: str
    k: int
    model: str
    notes: Optional[List[StrategyDecideResponseNote]]
    params: Any
    provider: str
    query: str
    remember: str
    request_id: str
    system: str
    tool_calls: Optional[List[AssistantMessageDoneToolCall]]
    tools: Optional[List[str]]


class ToolCallRequestRequired(TypedDict):
    """Has the members of ToolCallRequest that are always there."""

    args: Any
    id: str
    name: str


class ToolCallRequest(ToolCallRequestRequired, total=False):
    """The payload of tool.call.request."""

    request_id: str
    schema_version: str


class ToolCallResultRequired(TypedDict):
    """Has the members of ToolCallResult that are always there."""

    id: str
    ok: bool


class ToolCallResult(ToolCallResultRequired, total=False):
    """The payload of tool.call.result."""

    envelope: Any
    error: str
    request_id: str
    value: Any


class ToolCallStart(TypedDict):
    """The payload of tool.call.start."""

    args: Any
    id: str
    name: str


class ToolErrorRequired(TypedDict):
    """Has the members of ToolError that are always there."""

    brief: str
    id: str
    kind: Literal["validation", "not_found", "rejected"]


class ToolError(ToolErrorRequired, total=False):
    """The payload of tool.error."""

    detail: Any
    request_id: str


class ToolProgressRequired(TypedDict):
    """Has the members of ToolProgress that are always there."""

    id: str
    progress: float


class ToolProgress(ToolProgressRequired, total=False):
    """The payload of tool.progress."""

    message: str
    total: Optional[float]


class TurnCancelled(TypedDict):
    """The payload of turn.cancelled."""

    reason: str
    turn_id: str


class TurnCompletedRequired(TypedDict):
    """Has the members of TurnCompleted that are always there."""

    steps: int
    turn_id: str
    usage: LLMCallResponseUsage


class TurnCompleted(TurnCompletedRequired, total=False):
    """The payload of turn.completed."""

    cost_usd: float
    stop_reason: str


class TurnFailed(TypedDict):
    """The payload of turn.failed."""

    error: str
    kind: str
    turn_id: str


class TurnNote(TypedDict):
    """The payload of turn.note."""

    name: str
    text: str


class TurnNotice(TypedDict):
    """The payload of turn.notice."""

    text: str


class TurnStartedRequired(TypedDict):
    """Has the members of TurnStarted that are always there."""

    tool_generation: int
    turn_id: str


class TurnStarted(TurnStartedRequired, total=False):
    """The payload of turn.started."""

    model: str


class UserInterrupt(TypedDict, total=False):
    """The payload of user.interrupt."""


class UserMessageReceivedRequired(TypedDict):
    """Has the members of UserMessageReceived that are always there."""

    text: str


class UserMessageReceived(UserMessageReceivedRequired, total=False):
    """The payload of user.message.received."""

    attachments: Optional[List[LLMCallRequestMessageAttachment]]


class VerifyCompletedRequired(TypedDict):
    """Has the members of VerifyCompleted that are always there."""

    command: str
    turn_id: str


class VerifyCompleted(VerifyCompletedRequired, total=False):
    """The payload of verify.completed."""

    exit_code: Optional[int]
    output_ref: str


class VerifyStarted(TypedDict):
    """The payload of verify.started."""

    command: str
    turn_id: str


PAYLOADS: Dict[str, Any] = {
    "approval.cancelled": ApprovalCancelled,
    "approval.request": ApprovalRequest,
    "approval.response": ApprovalResponse,
    "assistant.message.delta": AssistantMessageDelta,
    "assistant.message.done": AssistantMessageDone,
    "config.updated": ConfigUpdated,
    "kernel.error": KernelError,
    "kernel.ready": KernelReady,
    "kernel.shutdown": KernelShutdown,
    "llm.call.delta": LLMCallDelta,
    "llm.call.error": LLMCallError,
    "llm.call.fallback": LLMCallFallback,
    "llm.call.request": LLMCallRequest,
    "llm.call.response": LLMCallResponse,
    "llm.call.retry": LLMCallRetry,
    "memory.query": MemoryQuery,
    "memory.result": MemoryResult,
    "memory.write": MemoryWrite,
    "plugin.error": PluginError,
    "plugin.loaded": PluginLoaded,
    "plugin.reloaded": PluginReloaded,
    "plugin.removed": PluginRemoved,
    "session.archived": SessionArchived,
    "session.compaction.completed": SessionCompactionCompleted,
    "session.compaction.failed": SessionCompactionFailed,
    "session.compaction.started": SessionCompactionStarted,
    "session.context.attached": SessionContextAttached,
    "session.context.detached": SessionContextDetached,
    "session.context.evicted": SessionContextEvicted,
    "session.deleted": SessionDeleted,
    "session.forked": SessionForked,
    "session.handoff": SessionHandoff,
    "session.replay.done": SessionReplayDone,
    "session.replay.entry": SessionReplayEntry,
    "session.reset": SessionReset,
    "session.started": SessionStarted,
    "strategy.decide.request": StrategyDecideRequest,
    "strategy.decide.response": StrategyDecideResponse,
    "tool.call.request": ToolCallRequest,
    "tool.call.result": ToolCallResult,
    "tool.call.start": ToolCallStart,
    "tool.error": ToolError,
    "tool.progress": ToolProgress,
    "turn.cancelled": TurnCancelled,
    "turn.completed": TurnCompleted,
    "turn.failed": TurnFailed,
    "turn.note": TurnNote,
    "turn.notice": TurnNotice,
    "turn.started": TurnStarted,
    "user.interrupt": UserInterrupt,
    "user.message.received": UserMessageReceived,
    "verify.completed": VerifyCompleted,
    "verify.started": VerifyStarted,
}
