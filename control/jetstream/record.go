package jetstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// record is an entry in the stream.
type record struct {
	ID      string          `json:"id"`   // of the append: a retry has the same
	Run     string          `json:"run"`  // of a node, from its start to its end
	Node    string          `json:"node"` // who wrote it
	Term    int64           `json:"term"`
	Time    time.Time       `json:"ts"`
	Event   string          `json:"event"`
	Actor   string          `json:"actor"`
	Target  string          `json:"target"`
	Payload json.RawMessage `json:"payload"`
	Before  string          `json:"before"` // sum of the record before; noSum in the first one
}

// noSum stands for the sum of the record before the first one.
const noSum = ""

func sumOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// stored is a record as the stream has it.
type stored struct {
	seq int64
	raw []byte
}

func (s stored) decode() (r record, err error) {
	if err := json.Unmarshal(s.raw, &r); err != nil {
		return r, fmt.Errorf("control log, entry %d: %w", s.seq, err)
	}
	return r, nil
}

func (r record) entry(index int64) control.Entry {
	return control.Entry{Index: index, Term: r.Term, Time: r.Time, Event: r.Event, Actor: r.Actor, Target: r.Target, Payload: r.Payload}
}
