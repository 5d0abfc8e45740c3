package downstream

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"github.com/yaya-ai/yaya/internal/fair"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

const (
	maxMade     = 16 << 10    // remembered tasks of servers
	maxMadeEach = maxMade / 4 // of one principal

	goneBits = 1 << 20 // marks of forgotten tasks
)

// made remembers which principal's call has become a task of a server: the task belongs to that
// principal, even if others learn its id. If a principal creates too many tasks, only its own
// oldest ones are forgotten.
//
// A task without a record, from before a restart, belongs to the owner. A forgotten task must
// not become the owner's, so each one leaves a mark. There are far more marks than long-lived
// tasks, and a mark shared by two tasks costs the owner at most a task from before a restart.
type made struct {
	salt   string // servers choose ids, but must not choose keys
	by     map[taskKey]*fair.Place[string, taskKey]
	places *fair.Places[string, taskKey] // by principal
	gone   []uint64                      // one bit per key; nil until a task is forgotten
}

// taskKey is a digest of the id that clients know, which may be long.
type taskKey [sha256.Size]byte

func newMade(total, each int) made {
	return made{salt: rand.Text(), by: map[taskKey]*fair.Place[string, taskKey]{}, places: fair.New[string, taskKey](total, each)}
}

func (m *made) key(id string) taskKey { return sha256.Sum256([]byte(m.salt + id)) }

// mark returns the position of a key's mark.
func (k taskKey) mark() (word int, bit uint64) {
	n := binary.LittleEndian.Uint64(k[:]) % goneBits
	return int(n / 64), 1 << (n % 64) //nolint:gosec // bounded
}

// record stores the owner of a new task; the server may have used the id before.
func (m *made) record(id, principal string) {
	k := m.key(id)
	if was := m.by[k]; was != nil {
		if was.Party() == principal {
			return
		}
		m.places.Leave(was)
	}
	mine, forgotten := m.places.Take(principal, k)
	m.by[k] = mine
	if forgotten == nil {
		return
	}
	delete(m.by, forgotten.Value)
	if forgotten.Party() == tool.Owner {
		return // recorded or not, it is the owner's
	}
	if m.gone == nil {
		m.gone = make([]uint64, goneBits/64)
	}
	word, bit := forgotten.Value.mark()
	m.gone[word] |= bit
}

// owner returns the principal that a task belongs to, "" for a forgotten task.
func (m *made) owner(id string) string {
	k := m.key(id)
	if place := m.by[k]; place != nil {
		return place.Party()
	}
	if word, bit := k.mark(); m.gone != nil && m.gone[word]&bit != 0 {
		return ""
	}
	return tool.Owner
}

// hasMade records that a client's call has become a task of a server.
func (s *Server) hasMade(x *exchange, server string, o jsonrpc.Object) {
	own, ok := o.String("taskId")
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made.record(server+taskSeparator+own, x.caller.Principal)
}

// ownsTask reports whether a task of a server belongs to a client.
func (s *Server) ownsTask(x *exchange, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := s.made.owner(id)
	return by != "" && by == x.caller.Principal
}
