package admin

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/yaya-ai/yaya/control"
)

var _ control.Stateful = (*Reads)(nil)

// readEvent is the entry of the control log that says which notifications were read.
const readEvent = "notifications_read"

// Limits of what is remembered of notifications that were read.
const (
	maxRead   = 200 // of one entry
	maxReadID = 64  // bytes of an id
	readsKept = 1000
)

// readPayload is the payload of a [readEvent].
type readPayload struct {
	IDs []string `json:"ids"`
}

// Reads are the notifications that somebody has read: what is read on one device is read
// on all, and on every node. It is a projection of the control log. The zero value is
// ready; methods are safe for concurrent use.
type Reads struct {
	mu  sync.Mutex
	ids []string // oldest first, the last [readsKept]
}

// Apply implements [control.Projection].
func (r *Reads) Apply(e control.Entry) error {
	if e.Event != readEvent {
		return nil
	}
	var p readPayload
	if err := e.Decode(&p); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range p.IDs[:min(len(p.IDs), maxRead)] {
		if id != "" && len(id) <= maxReadID && !slices.Contains(r.ids, id) {
			r.ids = append(r.ids, id)
		}
	}
	if n := len(r.ids) - readsKept; n > 0 {
		r.ids = slices.Delete(r.ids, 0, n)
	}
	return nil
}

// Part implements [control.Stateful].
func (r *Reads) Part() string { return "reads" }

// Save implements [control.Stateful].
func (r *Reads) Save() (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return json.Marshal(readPayload{append([]string{}, r.ids...)})
}

// Restore implements [control.Stateful].
func (r *Reads) Restore(state json.RawMessage) error {
	var p readPayload
	if err := json.Unmarshal(state, &p); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = p.IDs[max(0, len(p.IDs)-readsKept):]
	return nil
}

// all returns the ids of what was read.
func (r *Reads) all() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]bool, len(r.ids))
	for _, id := range r.ids {
		out[id] = true
	}
	return out
}
