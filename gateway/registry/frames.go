package registry

// The messages of the wire protocol about agents, kernels, skills and the cluster.
// Times are RFC 3339 in UTC with milliseconds (W-4). raft_log_index is the index
// of the control log (W-31, W-46).

// Statuses of an agent (W-30).
const (
	Idle    = "idle"
	Running = "running"
	Paused  = "paused"
	Failed  = "failed"
)

// RegisterAgent is register_agent on agent:lobby (W-29).
type RegisterAgent struct {
	Type     string         `json:"type"` // "register_agent"
	ID       string         `json:"id"`
	KernelID string         `json:"kernel_id"`
	Skill    string         `json:"skill"`
	Status   string         `json:"status"` // "idle"
	Meta     map[string]any `json:"meta"`
	Time     string         `json:"ts"`
	Index    int64          `json:"raft_log_index"`
}

// UpdateAgent is update_agent on agent:lobby (W-30).
type UpdateAgent struct {
	Type         string         `json:"type"` // "update_agent"
	ID           string         `json:"id"`
	Status       string         `json:"status"`
	ContextPatch map[string]any `json:"context_patch"`
	Index        int64          `json:"raft_log_index"`
	Time         string         `json:"ts"`
}

// KillAgent is kill_agent on agent:lobby (W-33).
type KillAgent struct {
	Type   string `json:"type"` // "kill_agent"
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Time   string `json:"ts"`
	Index  int64  `json:"raft_log_index"`
}

// Heartbeat is heartbeat on kernel:{id} (W-34).
type Heartbeat struct {
	Type        string  `json:"type"` // "heartbeat"
	KernelID    string  `json:"kernel_id"`
	AgentCount  int     `json:"agent_count"`
	Entropy     float64 `json:"entropy"`     // 0…1, see [Mix.Entropy]
	DriftScore  float64 `json:"drift_score"` // 0…1, see [Mix.Drift]
	MemoryCount int     `json:"memory_count"`
	Time        string  `json:"ts"`
}

// BridgeChange is bridge_connected or bridge_disconnected on kernel:{id} (W-35).
type BridgeChange struct {
	Type     string `json:"type"`
	KernelID string `json:"kernel_id"`
	Time     string `json:"ts"`
}

// LeaderElected is leader_elected on cluster:consensus (W-38).
type LeaderElected struct {
	Type string `json:"type"` // "leader_elected"
	Node string `json:"node"`
	Term int64  `json:"term"`
	Time string `json:"ts"`
}

// QuorumChange is quorum_lost or quorum_restored on cluster:consensus (W-39).
type QuorumChange struct {
	Type      string `json:"type"`
	NodeCount int    `json:"node_count"`
	Time      string `json:"ts"`
}

// Reasons of a [SkillError] (W-40).
const (
	HandlerUnavailable = "handler_unavailable"
	Timeout            = "timeout"
	RateLimited        = "rate_limited"
)

// SkillError is skill_error on agent:lobby (W-40).
type SkillError struct {
	Type      string `json:"type"` // "skill_error"
	RequestID string `json:"request_id"`
	HandlerID string `json:"handler_id"`
	Reason    string `json:"reason"`
	Time      string `json:"ts"`
}

// SkillPromoted is skill_promoted on skill:evolution (W-42).
type SkillPromoted struct {
	Type        string  `json:"type"` // "skill_promoted"
	SkillID     string  `json:"skill_id"`
	SkillName   string  `json:"skill_name"`
	Fitness     float64 `json:"fitness_score"` // 0…1, see [Fitness.Score]
	Originating string  `json:"originating_kernel"`
	Time        string  `json:"ts"`
	Index       int64   `json:"raft_log_index"`
}

// SkillDemoted is skill_demoted on skill:evolution (W-43).
type SkillDemoted struct {
	Type    string `json:"type"` // "skill_demoted"
	SkillID string `json:"skill_id"`
	Reason  string `json:"reason"`
	Time    string `json:"ts"`
	Index   int64  `json:"raft_log_index"`
}

// Agent is one agent as GET /agents shows it (W-50).
type Agent struct {
	ID       string         `json:"id"`
	KernelID string         `json:"kernel_id"`
	Skill    string         `json:"skill"`
	Status   string         `json:"status"`
	Meta     map[string]any `json:"meta"`
	Context  map[string]any `json:"context"` // what the patches add up to
	Index    int64          `json:"raft_log_index"`
	Time     string         `json:"ts"`
}
