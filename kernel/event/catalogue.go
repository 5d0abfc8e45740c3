package event

// The closed catalogue with its amendment (turn.*, tool.progress,
// verify.*). docs/PROTOCOL.md holds the same list in words.
var (
	UserMessageReceived = define[UserMessage]("user.message.received", Reliable, "adapter → kernel", inConversation)
	UserInterrupt       = define[Empty]("user.interrupt", Reliable, "adapter → kernel")

	AssistantMessageDelta = define[Delta]("assistant.message.delta", Lossy, "kernel → adapters")
	AssistantMessageDone  = define[AssistantMessage]("assistant.message.done", Reliable, "kernel → adapters")

	LLMCallRequest  = define[LLMRequest]("llm.call.request", Reliable, "kernel → llm-provider")
	LLMCallDelta    = define[LLMDelta]("llm.call.delta", Lossy, "llm-provider → kernel")
	LLMCallResponse = define[LLMResponse]("llm.call.response", Reliable, "llm-provider → kernel")
	LLMCallError    = define[LLMError]("llm.call.error", Reliable, "llm-provider → kernel")

	LLMRetried  = define[LLMRetry]("llm.call.retry", Reliable, "llm-provider → kernel")
	LLMFellBack = define[LLMFallback]("llm.call.fallback", Reliable, "kernel → all", kernelOnly)

	ToolCallRequest = define[ToolRequest]("tool.call.request", Reliable, "kernel → tool")
	ToolCallStart   = define[ToolCall]("tool.call.start", Reliable, "kernel → adapters", kernelOnly)
	ToolCallResult  = define[ToolResult]("tool.call.result", Reliable, "tool → kernel")
	ToolCallError   = define[ToolError]("tool.error", Reliable, "kernel → originator", kernelOnly)
	ToolCallUpdate  = define[ToolProgress]("tool.progress", Lossy, "tool → adapters")

	ApprovalRequested = define[ApprovalRequest]("approval.request", Reliable, "kernel → adapter", kernelOnly, onKernel)
	ApprovalAnswered  = define[ApprovalResponse]("approval.response", Reliable, "adapter → kernel", onKernel)
	ApprovalWithdrawn = define[ApprovalCancelled]("approval.cancelled", Reliable, "kernel → adapter", kernelOnly, onKernel)

	MemoryQueried  = define[MemoryQuery]("memory.query", Reliable, "kernel → memory")
	MemoryWritten  = define[MemoryWrite]("memory.write", Reliable, "kernel → memory")
	MemoryAnswered = define[MemoryResult]("memory.result", Reliable, "memory → kernel")

	StrategyDecideRequest  = define[DecideRequest]("strategy.decide.request", Reliable, "kernel → strategy")
	StrategyDecideResponse = define[DecideResponse]("strategy.decide.response", Reliable, "strategy → kernel")

	PluginWasLoaded   = define[PluginLoaded]("plugin.loaded", Reliable, "kernel → all", kernelOnly)
	PluginWasReloaded = define[PluginReloaded]("plugin.reloaded", Reliable, "kernel → all", kernelOnly)
	PluginWasRemoved  = define[PluginRemoved]("plugin.removed", Reliable, "kernel → all", kernelOnly)
	PluginFailed      = define[PluginError]("plugin.error", Reliable, "kernel → all", kernelOnly)

	KernelIsReady   = define[KernelReady]("kernel.ready", Reliable, "kernel → all", kernelOnly)
	KernelShutsDown = define[KernelShutdown]("kernel.shutdown", Reliable, "kernel → all", kernelOnly)
	KernelFailed    = define[KernelError]("kernel.error", Reliable, "kernel → all", kernelOnly)

	SessionWasStarted  = define[SessionStarted]("session.started", Reliable, "kernel → all", kernelOnly)
	SessionHandedOff   = define[SessionHandoff]("session.handoff", Reliable, "kernel → all", kernelOnly)
	SessionWasReset    = define[SessionReset]("session.reset", Reliable, "kernel → all", kernelOnly)
	SessionWasArchived = define[SessionArchived]("session.archived", Reliable, "kernel → all", kernelOnly)
	SessionWasDeleted  = define[SessionDeleted]("session.deleted", Reliable, "kernel → all", kernelOnly)
	SessionWasForked   = define[SessionForked]("session.forked", Reliable, "kernel → all", kernelOnly)

	SessionCompactionStarted   = define[CompactionStarted]("session.compaction.started", Reliable, "kernel → all", kernelOnly, onKernel)
	SessionCompactionCompleted = define[CompactionCompleted]("session.compaction.completed", Reliable, "kernel → all", kernelOnly, onKernel)
	SessionCompactionFailed    = define[CompactionFailed]("session.compaction.failed", Reliable, "kernel → all", kernelOnly, onKernel)

	ConfigWasUpdated = define[ConfigUpdated]("config.updated", Reliable, "kernel → all", kernelOnly, onKernel)

	SessionContextAttached = define[ContextAttached]("session.context.attached", Reliable, "kernel → all", kernelOnly, onKernel)
	SessionContextDetached = define[ContextDetached]("session.context.detached", Reliable, "kernel → all", kernelOnly, onKernel)
	SessionContextEvicted  = define[ContextEvicted]("session.context.evicted", Reliable, "kernel → all", kernelOnly, onKernel)
	SessionReplayEntry     = define[ReplayEntry]("session.replay.entry", Reliable, "kernel → connection", kernelOnly, onKernel)
	SessionReplayDone      = define[ReplayDone]("session.replay.done", Reliable, "kernel → connection", kernelOnly, onKernel)

	TurnWasStarted   = define[TurnStarted]("turn.started", Reliable, "kernel → all", kernelOnly)
	TurnWasCompleted = define[TurnCompleted]("turn.completed", Reliable, "kernel → all", kernelOnly)
	TurnHasFailed    = define[TurnFailed]("turn.failed", Reliable, "kernel → all", kernelOnly)
	TurnWasCancelled = define[TurnCancelled]("turn.cancelled", Reliable, "kernel → all", kernelOnly)
	TurnNoted        = define[TurnNote]("turn.note", Reliable, "kernel → all", kernelOnly)
	TurnNotice       = define[Notice]("turn.notice", Reliable, "kernel → all", kernelOnly)

	VerifyWasStarted   = define[VerifyStarted]("verify.started", Reliable, "tool → all")
	VerifyWasCompleted = define[VerifyCompleted]("verify.completed", Reliable, "tool → all")
)

// PrefixHint returns the prefix_match_hint of a configuration key: everything
// up to and including the last dot, "" for a key without dots.
func PrefixHint(key string) string {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] == '.' {
			return key[:i+1]
		}
	}
	return ""
}
