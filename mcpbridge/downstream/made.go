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
	maxMade     = 16 << 10    // tasks of servers that are remembered
	maxMadeEach = maxMade / 4 // of one principal

	goneBits = 1 << 20 // marks of those that were forgotten
)

// made remembers whose calls have become tasks of servers: a task is its principal's,
// whoever else learns its id. A principal that makes too many forgets its own oldest
// ones, and nobody else's.
//
// A task that was never recorded, of before a restart, is the owner's. One that was
// forgotten must not become that, so each leaves a mark. There are far more marks than
// tasks that last long, and one that two tasks share takes from the owner no more than
// a task of before a restart.
type made struct {
	salt   string // servers choose ids, and must not choose keys
	by     map[taskKey]*fair.Place[string, taskKey]
	places *fair.Places[string, taskKey] // by principal
	gone   []uint64                      // a bit for a key; nil before one was forgotten
}

// taskKey stands for the id that clients know: that may be long.
type taskKey [sha256.Size]byte

func newMade(total, each int) made {
	return made{salt: rand.Text(), by: map[taskKey]*fair.Place[string, taskKey]{}, places: fair.New[string, taskKey](total, each)}
}

func (m *made) key(id string) taskKey { return sha256.Sum256([]byte(m.salt + id)) }

// mark returns where the mark of a key is.
func (k taskKey) mark() (word int, bit uint64) {
	n := binary.LittleEndian.Uint64(k[:]) % goneBits
	return int(n / 64), 1 << (n % 64) //nolint:gosec // bounded
}

// record notes whose task an id is from now on; the server may have had one of that id.
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
		return // remembered or not, it is the owner's
	}
	if m.gone == nil {
		m.gone = make([]uint64, goneBits/64)
	}
	word, bit := forgotten.Value.mark()
	m.gone[word] |= bit
}

// owner returns whose task an id is, "" for nobody's.
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

// hasMade notes that a client's call has become a task of a server.
func (s *Server) hasMade(x *exchange, server string, o jsonrpc.Object) {
	own, ok := o.String("taskId")
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made.record(server+taskSeparator+own, x.caller.Principal)
}

// ownsTask reports whether a task of a server is a client's.
func (s *Server) ownsTask(x *exchange, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := s.made.owner(id)
	return by != "" && by == x.caller.Principal
}
