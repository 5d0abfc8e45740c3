package plane

import (
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

// Describe lists the messages of the topics of this package.
func Describe() []codec.Description {
	const kernel = kernelTopic + "{id}"
	return []codec.Description{
		codec.FromClient(lobbyTopic, "phx_join", "join; the answer has the agents", nil, LobbyJoined{}),
		codec.FromServer(lobbyTopic, "register_agent", "an agent is there", agents.RegisterAgent{}),
		codec.FromServer(lobbyTopic, "update_agent", "an agent has changed", agents.UpdateAgent{}),
		codec.FromServer(lobbyTopic, "kill_agent", "an agent is gone", agents.KillAgent{}),
		codec.FromServer(lobbyTopic, "skill_error", "a dead letter", SkillError{}),
		codec.FromServer(lobbyTopic, "presence_join", "a device has come", Presence{}),
		codec.FromServer(lobbyTopic, "presence_leave", "a device has gone", Presence{}),
		codec.FromClient(kernel, "phx_join", "join, or attach as that kernel", nil, KernelInfo{}),
		codec.FromServer(kernel, "heartbeat", "how the kernel is", agents.Heartbeat{}),
		codec.FromServer(kernel, "bridge_connected", "the kernel is there", agents.BridgeChange{}),
		codec.FromServer(kernel, "bridge_disconnected", "the kernel is gone", agents.BridgeChange{}),
		codec.FromServer(kernel, "skill_invoke", "to the kernel: do this", SkillInvoke{}),
		codec.FromClient(kernel, "heartbeat", "by the kernel: how it is", heartbeatPush{}, struct{}{}),
		codec.FromClient(kernel, "register_agent", "by the kernel", registerPush{}, indexed{}),
		codec.FromClient(kernel, "update_agent", "by the kernel", updatePush{}, indexed{}),
		codec.FromClient(kernel, "kill_agent", "by the kernel", killPush{}, indexed{}),
		codec.FromClient(kernel, "advertise_capabilities", "by the kernel: what it can do", capabilitiesPush{}, registeredSkills{}),
		codec.FromClient(kernel, "skill_result", "by the kernel: what has become of skill_invoke", skillResult{}, struct{}{}),
		codec.FromClient(kernel, "skill.invoke", "have a skill done by whoever has it", Invocation{}, Invoked{}),
		codec.FromClient(consensusTopic, "phx_join", "join; the answer is the state of the cluster", nil, Status{}),
		codec.FromServer(consensusTopic, "leader_elected", "who orders the changes", LeaderElected{}),
		codec.FromServer(consensusTopic, "quorum_lost", "nothing can be changed now", QuorumChange{}),
		codec.FromServer(consensusTopic, "quorum_restored", "changes can be made again", QuorumChange{}),
		codec.FromServer(evolutionTopic, "skill_promoted", "a skill does well", SkillPromoted{}),
		codec.FromServer(evolutionTopic, "skill_demoted", "a skill does well no more", SkillDemoted{}),
		codec.FromClient(memoryTopic, "memory_query", "what does this kernel remember", memoryQuery{}, memoryHits{}),
	}
}
