package wire

import (
	"github.com/yaya-ai/yaya/gateway/wire/codec"
	"github.com/yaya-ai/yaya/kernel/loop"
)

// Describe lists the messages of agent:{id}, of the handshake, and of the
// connection itself.
func Describe() []codec.Description {
	const agent = AgentPrefix + "{id}"
	return []codec.Description{
		codec.FromServer("", "auth_challenge", "the first frame; outside topics", authChallenge{}),
		codec.FromClient("", "auth", "the answer to the challenge; outside topics", authFrame{}, nil),
		codec.FromServer("", "auth_ok", "the client is who it says; outside topics", authOK{}),
		codec.FromServer("", "auth_fail", "it is not, and 4401 follows; outside topics", authFail{}),
		codec.FromClient("phoenix", "heartbeat", "the client is there", nil, struct{}{}),
		codec.FromClient("phoenix", "auth", "a refreshed token for the connection", tokenPush{}, struct{}{}),
		codec.FromServer("phoenix", "disconnect", "why the close follows", disconnect{}),
		codec.FromClient(agent, "phx_join", "join, where the client was", joinPayload{}, AgentJoined{}),
		codec.FromServer(agent, "<kind>", "an event of the agent; its name is its kind", AgentEvent{}),
		codec.FromServer(agent, queueChanged, "what waits for the turn to end; its data are QueueChanged", AgentEvent{}),
		codec.FromServer(agent, "resync", "forget what you have: this is the state", Resync{}),
		codec.FromServer(agent, streamStart, "text begins", StreamStart{}),
		codec.FromServer(agent, streamChunk, "a part of the text", StreamChunk{}),
		codec.FromServer(agent, streamEnd, "the text is whole", StreamEnd{}),
		codec.FromServer(agent, streamFailed, "the text ends with an error", StreamError{}),
		codec.FromClient(agent, "message", "say something to the agent", agentMessage{}, loop.Admission{}),
		codec.FromClient(agent, "interrupt", "end the turn", struct{}{}, interrupted{}),
		codec.FromClient(agent, "approval", "decide what the agent has asked", agentApproval{}, nil),
		codec.FromClient(agent, "history", "what is older than a cursor", historyPush{}, historyPage{}),
		codec.FromClient(agent, "stream_retry", "send chunks again", streamRetry{}, retried{}),
	}
}
