package agents

// The messages of the wire protocol about agents and kernels.
// Times are RFC 3339 in UTC with milliseconds. raft_log_index increases strictly from
// message to message of agent:lobby: see docs/WIRE.md, Cursors.

// Statuses of an agent.
const (
	Idle    = "idle"
	Running = "running"
	Paused  = "paused"
	Failed  = "failed"
)

// RegisterAgent is register_agent on agent:lobby.
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

// UpdateAgent is update_agent on agent:lobby.
type UpdateAgent struct {
	Type         string         `json:"type"` // "update_agent"
	ID           string         `json:"id"`
	Status       string         `json:"status"`
	ContextPatch map[string]any `json:"context_patch"`
	Index        int64          `json:"raft_log_index"`
	Time         string         `json:"ts"`
}

// KillAgent is kill_agent on agent:lobby.
type KillAgent struct {
	Type   string `json:"type"` // "kill_agent"
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Time   string `json:"ts"`
	Index  int64  `json:"raft_log_index"`
}

// Heartbeat is heartbeat on kernel:{id}.
type Heartbeat struct {
	Type        string  `json:"type"` // "heartbeat"
	KernelID    string  `json:"kernel_id"`
	AgentCount  int     `json:"agent_count"`
	Entropy     float64 `json:"entropy"`     // 0…1, see measure.Mix
	DriftScore  float64 `json:"drift_score"` // 0…1, see measure.Mix
	MemoryCount int     `json:"memory_count"`
	Time        string  `json:"ts"`
}

// BridgeChange is bridge_connected or bridge_disconnected on kernel:{id}.
type BridgeChange struct {
	Type     string `json:"type"`
	KernelID string `json:"kernel_id"`
	Time     string `json:"ts"`
}

// Agent is one agent as GET /agents shows it.
type Agent struct {
	ID       string         `json:"id"`
	KernelID string         `json:"kernel_id"`
	Skill    string         `json:"skill"`
	Status   string         `json:"status"`
	Meta     map[string]any `json:"meta"`
	Context  map[string]any `json:"context"` // what the patches add up to
	Index    int64          `json:"raft_log_index"`
	Time     string         `json:"ts"`
	Updated  bool           `json:"-"` // its newest change is an update
}
