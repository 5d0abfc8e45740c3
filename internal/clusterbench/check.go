//go:build linux

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// outcome tells how much a client knows of its operation.
type outcome string

const (
	ok      outcome = "ok"
	failed  outcome = "failed"  // yaya said no, and not that it may have happened nevertheless
	unknown outcome = "unknown" // no answer, or one that leaves it open
)

// op is an operation of a client. Times are since the begin of the round.
type op struct {
	Kind    string        `json:"kind"`
	Node    int           `json:"node"`
	Key     string        `json:"key,omitempty"`   // of a write: what its entry is found by
	ID      string        `json:"id,omitempty"`    // of a refresh that is ok: the token that came of it
	Index   int64         `json:"index,omitempty"` // of a read: the last entry that the node had
	Session string        `json:"session,omitempty"`
	Text    string        `json:"text,omitempty"` // that was said in the session
	Begin   time.Duration `json:"begin"`
	End     time.Duration `json:"end"`
	Outcome outcome       `json:"outcome"`
	Why     string        `json:"why,omitempty"`
}

func (o op) String() string {
	return fmt.Sprintf("%s %s on %s at %v to %v (%s %s)", o.Kind, o.Key, names[o.Node], o.Begin.Round(time.Millisecond), o.End.Round(time.Millisecond), o.Outcome, o.Why)
}

// entry is one of the control log, in the form of the audit.
type entry struct {
	Index   int64           `json:"raft_log_index"`
	Event   string          `json:"event"`
	Actor   string          `json:"actor"`
	Target  string          `json:"target"`
	Payload json.RawMessage `json:"payload"`
	Time    string          `json:"ts"`
}

// payload are the fields of entries that the check looks at.
type payload struct {
	Label    string `json:"label"`
	Invite   string `json:"invite"`
	ID       string `json:"jti"`
	Previous string `json:"previous"`
}

// keyOf returns the key of an entry, "" if no operation of the load makes such entries.
func keyOf(e entry, p payload) string {
	if e.Event == "said" { // by [checkSaid]
		return "said/" + e.Target
	}
	switch e.Event {
	case "device_invited":
		return e.Event + "/" + p.Label
	case "device_token_issued":
		if p.Previous == "" {
			return "" // part of an enrolment
		}
		return e.Event + "/" + p.Previous
	case "device_enrolled", "device_revoked", "token_created", "token_revoked":
		return e.Event + "/" + e.Target
	}
	return ""
}

// checkPrefix holds the log of a node against that of another one, which may have more entries.
func checkPrefix(short, long []entry) (found []string) {
	if len(short) > len(long) {
		return []string{fmt.Sprintf("a node has %d entries that another one has not, the first is %s %s", len(short)-len(long), short[len(long)].Event, short[len(long)].Target)}
	}
	for i, e := range short {
		o := long[i]
		if e.Index != o.Index || e.Event != o.Event || e.Actor != o.Actor || e.Target != o.Target || e.Time != o.Time || !bytes.Equal(e.Payload, o.Payload) {
			return []string{fmt.Sprintf("entry %d is %s %s on one node and %s %s on another", e.Index, e.Event, e.Target, o.Event, o.Target)}
		}
	}
	return nil
}

// write is a change with all operations that asked for it.
type write struct {
	begin, end time.Duration // it happened between these; end is the first acknowledgement
	acked      bool
	may        bool // it may have happened
	ids        []string
	one        op
}

// endless is the end of a write that nobody acknowledged.
const endless = time.Duration(1<<63 - 1)

// checkLog holds a history of writes against the log:
//   - an acknowledged write has one entry, another one at most one, a failed one none;
//   - entries are in an order in which the writes can have happened: of two writes, the one that
//     was acknowledged before the other began has the lower index;
//   - a code enrolls at most one device, a token has at most one successor.
func checkLog(ops []op, log []entry) (found []string) {
	entries, ids := map[string][]int64{}, map[string]string{}
	codes := map[string]string{}
	for i, e := range log {
		if i > 0 && e.Index <= log[i-1].Index {
			return []string{fmt.Sprintf("entry %d comes behind entry %d", e.Index, log[i-1].Index)}
		}
		var p payload
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			found = append(found, fmt.Sprintf("entry %d is not readable: %v", e.Index, err))
			continue
		}
		if key := keyOf(e, p); key != "" {
			entries[key] = append(entries[key], e.Index)
			ids[key] = p.ID
		}
		if e.Event == "device_enrolled" && p.Invite != "" {
			if before, used := codes[p.Invite]; used {
				found = append(found, fmt.Sprintf("the code %s enrolled %s and %s", p.Invite, before, e.Target))
			}
			codes[p.Invite] = e.Target
		}
	}
	writes := map[string]*write{}
	for _, o := range ops {
		if o.Key == "" {
			continue
		}
		w := writes[o.Key]
		if w == nil {
			w = &write{begin: o.Begin, end: endless, one: o}
			writes[o.Key] = w
		}
		w.begin = min(w.begin, o.Begin)
		switch o.Outcome {
		case ok:
			w.acked, w.may, w.end, w.one = true, true, min(w.end, o.End), o
			if o.ID != "" && !slices.Contains(w.ids, o.ID) {
				w.ids = append(w.ids, o.ID)
			}
		case unknown:
			w.may = true
		case failed:
		}
	}
	var placed []placedWrite
	for key, w := range writes {
		at := entries[key]
		switch {
		case len(at) > 1:
			found = append(found, fmt.Sprintf("%v is in the log %d times: %v", w.one, len(at), at))
		case len(at) == 0 && w.acked:
			found = append(found, fmt.Sprintf("%v was acknowledged and is not in the log", w.one))
		case len(at) == 1 && !w.may:
			found = append(found, fmt.Sprintf("%v failed and is entry %d", w.one, at[0]))
		}
		if len(w.ids) > 1 || len(w.ids) == 1 && len(at) == 1 && w.ids[0] != ids[key] {
			found = append(found, fmt.Sprintf("%v was answered with %v, and the log has %q", w.one, w.ids, ids[key]))
		}
		if len(at) == 1 {
			placed = append(placed, placedWrite{w, at[0]})
		}
	}
	return append(found, checkOrder(placed)...)
}

// placedWrite is a write with its index.
type placedWrite struct {
	*write
	index int64
}

// checkOrder finds a write that stands before one that was acknowledged before it began.
func checkOrder(all []placedWrite) (found []string) {
	byBegin, byEnd := slices.Clone(all), slices.Clone(all)
	slices.SortFunc(byBegin, func(a, b placedWrite) int { return cmp.Compare(a.begin, b.begin) })
	slices.SortFunc(byEnd, func(a, b placedWrite) int { return cmp.Compare(a.end, b.end) })
	var last placedWrite // the highest index that was acknowledged before w began
	next := 0
	for _, w := range byBegin {
		for ; next < len(byEnd) && byEnd[next].end < w.begin; next++ {
			if byEnd[next].index > last.index {
				last = byEnd[next]
			}
		}
		if w.index < last.index {
			found = append(found, fmt.Sprintf("%v is entry %d, and %v, which was acknowledged before it began, is entry %d", w.one, w.index, last.one, last.index))
		}
	}
	return found
}

// revocation is a device that was revoked, with the last admission on each node.
type revocation struct {
	device string
	acked  time.Duration
	last   [3]time.Duration // begin of the last request that a node admitted; 0 for none after acked
}

// Limits of a revocation (CL-09).
const (
	limitReached = time.Second     // on nodes that can reach a majority
	limitCut     = 5 * time.Second // on all
)

// check returns for how long after its acknowledgement nodes admitted a device: those
// that could reach a majority all the time, and all.
func (r revocation) check(v *victims, slack time.Duration) (reached, all time.Duration, found []string) {
	for i, last := range r.last {
		late := max(last-r.acked, 0)
		limit := limitCut
		if !v.disturbed(i, r.acked-limitCut, last) {
			limit = limitReached
			reached = max(reached, late)
		}
		all = max(all, late)
		if late > limit+slack {
			found = append(found, fmt.Sprintf("%s was revoked at %v, and %s admitted it %v later, want %v at most", r.device, r.acked.Round(time.Millisecond), names[i], late.Round(time.Millisecond), limit))
		}
	}
	return reached, all, found
}

// checkCalls finds calls that failed on a node that nothing had been done to, for longer than slack:
// a node without a processor for seconds has no news either.
func checkCalls(ops []op, v *victims, slack time.Duration) (found []string) {
	type client struct {
		node int
		kind string
	}
	since := map[client]time.Duration{} // begin of the first of the last failures; a client makes one call after the other
	for _, o := range ops {
		who := client{o.Node, o.Kind}
		excused := v.isDown(o.Node, o.Begin, o.End)
		switch o.Kind {
		case kindOwnCall, kindRead: // the machine's user is served whatever the others do
		case kindCall:
			excused = excused || v.disturbed(o.Node, o.Begin, o.End)
		default:
			continue
		}
		if o.Outcome == ok || excused {
			delete(since, who)
			continue
		}
		if _, before := since[who]; !before {
			since[who] = o.Begin
		}
		if o.End-since[who] >= slack {
			found = append(found, o.String())
		}
	}
	return found
}

// checkReads finds a node that has forgotten an entry: a read that began after another one had
// ended has seen at least as much.
func checkReads(ops []op) (found []string) {
	var last [3]op // of one reader for each node, whose reads follow each other
	for _, o := range ops {
		if o.Kind != kindRead || o.Outcome != ok {
			continue
		}
		if o.Index < last[o.Node].Index {
			found = append(found, fmt.Sprintf("%s had entry %d, and entry %d at the end at %v", names[o.Node], last[o.Node].Index, o.Index, o.Begin.Round(time.Millisecond)))
		}
		last[o.Node] = o
	}
	return found
}

// checkLost finds a change that was made while no servers were a majority. A refresh may have been
// answered with the successor that another one had made before.
func checkLost(ops []op, v *victims) (found []string) {
	for _, o := range ops {
		if o.Key != "" && o.Kind != kindRefresh && o.Outcome == ok && o.Begin > v.lost.from && o.End < v.lost.to {
			found = append(found, o.String()+", without a majority")
		}
	}
	return found
}

// shorten bounds what a report shows.
func shorten(found []string) []string {
	if len(found) > 5 {
		found = append(found[:5:5], fmt.Sprintf("and %d more", len(found)-5))
	}
	for i := range found {
		found[i] = strings.ToValidUTF8(found[i][:min(len(found[i]), 500)], "")
	}
	return found
}
