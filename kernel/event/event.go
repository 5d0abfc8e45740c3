package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// ProtocolVersion is the version of the event protocol. Until it is 1, payload
// shapes may change with a minor release and a migration note.
const ProtocolVersion = "v0"

// KernelSession is the reserved session of the control plane. Its events are not
// persisted, and events about approvals, configuration, compaction and connections
// travel on it so that they never queue behind the session they concern.
const KernelSession = "kernel"

// KernelSource is the source of events that the kernel emits.
const KernelSource = "kernel"

// BridgePrefix starts the ids of plugin-private sessions.
const BridgePrefix = "_bridge:"

// Event is the envelope. The bus assigns ID, Time and Source; none of them can
// be chosen by an emitter.
type Event struct {
	ID        string    // UUID
	Kind      string    // dotted identifier, from the catalogue or x.*
	SessionID string    // the conversation, KernelSession, or a bridge session
	Time      time.Time // wall clock; order comes from the bus, never from here
	Source    string    // emitting plugin, or KernelSource
	Payload   any       // the payload type of Kind; json.RawMessage for raw x.*

	// Entry is the entry of the session's tape that holds the event, 0 when there
	// is none. It does not travel: clients see it as their cursor.
	Entry int64
	// Unrecorded marks an event that its emitter keeps off the tape.
	Unrecorded bool
	// ClientID is the id that a client gave to what it submitted, "" if none. It
	// is kept with the entry.
	ClientID string
	// Turn is the turn that the event belongs to, if it is not the running turn of its
	// session: a message precedes the turn that it starts.
	Turn string
	// Starts marks a message that starts its turn: after a crash between the two, the next
	// start makes up for it. A message without the mark starts none by itself.
	Starts bool
}

// wireEvent is the envelope in JSON, with exactly these members.
type wireEvent struct {
	ID        string  `json:"id"`
	Kind      string  `json:"kind"`
	SessionID string  `json:"session_id"`
	TS        float64 `json:"ts"`
	Source    string  `json:"source"`
	Payload   any     `json:"payload"`
}

// MarshalJSON writes the envelope with ts as unix seconds.
func (e Event) MarshalJSON() ([]byte, error) {
	payload := e.Payload
	if payload == nil {
		payload = struct{}{}
	}
	return json.Marshal(wireEvent{e.ID, e.Kind, e.SessionID, float64(e.Time.UnixMicro()) / 1e6, e.Source, payload})
}

// UnmarshalJSON reads an envelope and decodes the payload into the type that
// the catalogue has for the kind. The payload of an unknown x.* kind stays raw.
func (e *Event) UnmarshalJSON(data []byte) error {
	var raw json.RawMessage
	w := wireEvent{Payload: &raw}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	payload, err := DecodePayload(w.Kind, raw)
	if err != nil {
		return err
	}
	*e = Event{ID: w.ID, Kind: w.Kind, SessionID: w.SessionID, Time: time.UnixMicro(int64(math.Round(w.TS * 1e6))).UTC(), Source: w.Source, Payload: payload}
	return nil
}

var (
	kindPattern   = lazyregexp.New(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$`)
	extPattern    = lazyregexp.New(`^x\.[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)+$`)
	bridgePattern = lazyregexp.New(`^_bridge:[a-z0-9][a-z0-9:_-]{0,127}$`)
)

// sessPattern describes the ids that namesSession accepts, in a loop, since each event is checked.
const sessPattern = `^[A-Za-z0-9_-]{1,128}$`

func namesSession(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return 1 <= len(id) && len(id) <= 128
}

// IsExtension reports whether kind is in the x.<plugin>.<kind> namespace.
func IsExtension(kind string) bool {
	return len(kind) <= 128 && strings.HasPrefix(kind, "x.") && extPattern().MatchString(kind)
}

// CheckClientSession returns an error if a user or an adapter may not create a
// session with this id: it is malformed, reserved, or plugin-private. The kernel
// creates sub-agent ids (parent, [AgentSeparator], and a part of its own); clients cannot.
func CheckClientSession(id string) error {
	switch {
	case id == KernelSession:
		return fmt.Errorf("session id %q is reserved", id)
	case strings.HasPrefix(id, BridgePrefix):
		return fmt.Errorf("session id %q: the prefix %q is reserved for plugins", id, BridgePrefix)
	case !namesSession(id):
		return fmt.Errorf("session id %q does not match %s", id, sessPattern)
	}
	return nil
}

// Folder names the folder of a session's files. Ids that clients may choose are safe
// as they are; others are hashed.
func Folder(session string) string {
	if CheckClientSession(session) == nil {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return "_" + hex.EncodeToString(sum[:16])
}

// AgentSeparator separates the id of a sub-agent's session from that of its parent.
const AgentSeparator = "::agent::"

// Root returns the session that a session belongs to: itself, or for a sub-agent that of the
// conversation.
func Root(session string) string {
	root, _, _ := strings.Cut(session, AgentSeparator)
	return root
}

// CheckSession returns an error if no event can travel on a session with this id.
func CheckSession(id string) error {
	if strings.HasPrefix(id, BridgePrefix) {
		if !bridgePattern().MatchString(id) {
			return fmt.Errorf("bridge session id %q does not match %s", id, bridgePattern())
		}
		return nil
	}
	for part := range strings.SplitSeq(id, AgentSeparator) {
		if !namesSession(part) {
			return fmt.Errorf("session id %q does not match %s", id, sessPattern)
		}
	}
	return nil
}
