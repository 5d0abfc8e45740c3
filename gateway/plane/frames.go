package plane

// The messages of the wire protocol about skills and the cluster, which only the
// gateway sends. Times are RFC 3339 in UTC with milliseconds.

// LeaderElected is leader_elected on cluster:consensus.
type LeaderElected struct {
	Type string `json:"type"` // "leader_elected"
	Node string `json:"node"`
	Term int64  `json:"term"`
	Time string `json:"ts"`
}

// QuorumChange is quorum_lost or quorum_restored on cluster:consensus.
type QuorumChange struct {
	Type      string `json:"type"`
	NodeCount int    `json:"node_count"`
	Time      string `json:"ts"`
}

// Reasons of a [SkillError].
const (
	HandlerUnavailable = "handler_unavailable"
	Timeout            = "timeout"
	RateLimited        = "rate_limited"
)

// SkillError is skill_error on agent:lobby.
type SkillError struct {
	Type      string `json:"type"` // "skill_error"
	RequestID string `json:"request_id"`
	HandlerID string `json:"handler_id"`
	Reason    string `json:"reason"`
	Time      string `json:"ts"`
}

// SkillPromoted is skill_promoted on skill:evolution.
type SkillPromoted struct {
	Type        string  `json:"type"` // "skill_promoted"
	SkillID     string  `json:"skill_id"`
	SkillName   string  `json:"skill_name"`
	Fitness     float64 `json:"fitness_score"` // 0…1, see measure.Fitness
	Originating string  `json:"originating_kernel"`
	Time        string  `json:"ts"`
	Index       int64   `json:"raft_log_index"`
}

// SkillDemoted is skill_demoted on skill:evolution.
type SkillDemoted struct {
	Type    string `json:"type"` // "skill_demoted"
	SkillID string `json:"skill_id"`
	Reason  string `json:"reason"`
	Time    string `json:"ts"`
	Index   int64  `json:"raft_log_index"`
}
