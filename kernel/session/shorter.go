package session

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Compaction is the state of an anchor that replaces the entries before KeepFrom
// by a summary.
type Compaction struct {
	Kind    string `json:"kind"` // "compaction"
	Summary string `json:"summary"`
	// Kept are messages from before KeepFrom that stay as they are: what the user asked in
	// the turn that is running, instructions, the plan, and what a fork has inherited.
	Kept         []event.Message `json:"kept,omitempty"`
	KeepFrom     int64           `json:"keep_from"` // first entry that is still shown as it is
	TokensBefore int             `json:"tokens_before"`
	TokensAfter  int             `json:"tokens_after"`
	// Usage and CostUSD are those of the summary.
	Usage   event.Usage `json:"usage,omitzero"`
	CostUSD float64     `json:"cost_usd,omitempty"`
}

// CompactionOf returns the compaction that an entry is the anchor of; ok is false for other entries.
func CompactionOf(e Entry) (c Compaction, ok bool) {
	var a Anchor
	if e.Kind != KindAnchor || json.Unmarshal(e.Payload, &a) != nil || len(a.State) == 0 || json.Unmarshal(a.State, &c) != nil || c.Kind != "compaction" {
		return Compaction{}, false
	}
	if c.KeepFrom <= 0 || c.KeepFrom > e.ID {
		c.KeepFrom = e.ID
	}
	return c, true
}

func (p *Projection) compact(c Compaction) {
	cut, _ := slices.BinarySearch(p.from, c.KeepFrom)
	cut = p.whole(cut)
	msgs, from, slots := p.msgs[cut:], p.from[cut:], p.slots
	*p = Projection{answer: p.answer, partial: p.partial, denied: p.denied, turn: p.turn, summed: true}
	p.push(0, event.Message{Role: "system", Content: c.Summary})
	for _, m := range c.Kept {
		p.push(0, m)
	}
	moved := len(p.msgs) - cut
	for i, m := range msgs {
		p.push(from[i], m)
	}
	for call, i := range slots {
		if i >= cut {
			if p.slots == nil {
				p.slots = map[string]int{}
			}
			p.slots[call] = i + moved
		}
	}
}

// whole moves a cut behind an answer that has become a message only with the message after
// it: their entry is the latter's, and whoever begins to read there does not find the answer.
func (p *Projection) whole(cut int) int {
	if cut+1 < len(p.msgs) && p.from[cut] > 0 && p.from[cut] == p.from[cut+1] && p.msgs[cut].Role == "assistant" && len(p.msgs[cut].ToolCalls) == 0 {
		return cut + 1
	}
	return cut
}

// base returns the history as a fork inherits it: without entries of its own, and ended where it
// stands, since what follows is on the parent's tape.
func (p *Projection) base() Projection {
	in := *p
	in.shared = true // with p
	if in.turn > 0 {
		in.reword(Elsewhere, NotBegun, Interrupted)
	}
	in.stopped()
	if in.denied {
		in.withdraw()
	}
	out := Projection{summed: in.summed}
	for _, m := range in.msgs {
		out.push(0, m)
	}
	if in.answer != "" {
		out.push(0, event.Message{Role: "assistant", Content: in.answer})
	}
	return out
}

// Split divides the history for a compaction that keeps about keep tokens at its end, at
// least the last message with the results of its calls: the messages to summarize, those
// among them to keep as they are as well, and the first entry to keep, 0 if there is none yet.
// It returns nil when there is nothing to gain.
func (p *Projection) Split(keep int) (old, kept []event.Message, keepFrom int64) {
	cut, first := p.cut(keep*4), 0
	if p.summed {
		first = 1
	}
	if cut <= first {
		return nil, nil, 0
	}
	kept = p.pinned(first, cut, keep*2)
	if len(kept) == cut-first {
		return nil, nil, 0
	}
	own := cut
	for own < len(p.msgs) && p.from[own] == 0 {
		own++
	}
	kept = append(kept, p.msgs[cut:own]...)
	if own < len(p.msgs) {
		keepFrom = p.from[own]
	}
	p.shared = true
	return p.msgs[:cut:cut], kept, keepFrom
}

// cut returns where the last messages of about that many bytes begin. It is never between
// a call and its result, and at a message of the user if that costs little.
func (p *Projection) cut(most int) int {
	last := len(p.msgs) - 1
	for last > 0 && p.msgs[last].Role == "tool" {
		last--
	}
	n := 0
	for _, m := range p.msgs[max(last, 0):] {
		n += size(m)
	}
	cut, kept := last, n
	for i := last - 1; i >= 0 && n+size(p.msgs[i]) <= most; i-- {
		n += size(p.msgs[i])
		if p.msgs[i].Role != "tool" {
			cut, kept = i, n
		}
	}
	n = kept
	for i := cut; i <= last && n >= kept/2; i++ {
		if p.msgs[i].Role == "user" {
			return i
		}
		n -= size(p.msgs[i])
	}
	return p.whole(cut)
}

// pinned returns the messages in a part of the history that are never summarized away, the
// last ones first within that many bytes: what the user said since the last answer, messages of
// the system, and the last plan. The last of the user is always among them, unless it is answered.
func (p *Projection) pinned(from, to, most int) []event.Message {
	turn := len(p.msgs)
	for turn > 0 && (p.msgs[turn-1].Role != "assistant" || len(p.msgs[turn-1].ToolCalls) > 0) {
		turn--
	}
	var out []event.Message
	asked := slices.ContainsFunc(p.msgs[to:], func(m event.Message) bool { return m.Role == "user" })
	planned := slices.ContainsFunc(p.msgs[to:], func(m event.Message) bool { return m.Note == event.NotePlan })
	for i := to - 1; i >= from; i-- {
		m := p.msgs[i]
		plan := m.Note == event.NotePlan && !planned
		planned = planned || plan
		if m.Role != "system" && (m.Role != "user" || i < turn) && !plan {
			continue
		}
		must := plan || m.Role == "user" && !asked
		if most -= size(m); most < 0 && !must {
			continue
		}
		asked = asked || m.Role == "user"
		out = append(out, m)
	}
	slices.Reverse(out)
	return out
}

// Shrink is the state of an anchor that shortens results of tools in the model's view.
type Shrink struct {
	Kind         string `json:"kind"`   // "shrink"
	Before       int64  `json:"before"` // results of calls that were made before this entry
	Limit        int    `json:"limit"`  // bytes that are left of each
	TokensBefore int    `json:"tokens_before"`
	TokensAfter  int    `json:"tokens_after"`
}

func shrinkOf(e Entry) (Shrink, bool) {
	var a Anchor
	var s Shrink
	if e.Kind != KindAnchor || json.Unmarshal(e.Payload, &a) != nil || len(a.State) == 0 || json.Unmarshal(a.State, &s) != nil || s.Kind != "shrink" {
		return Shrink{}, false
	}
	s.Limit = max(s.Limit, 1)
	return s, true
}

func (p *Projection) shrink(s Shrink) {
	for i, m := range p.msgs {
		if m.Role != "tool" || p.from[i] >= s.Before {
			continue
		}
		short := shortened(m, s.Limit)
		if size(short) >= size(m) {
			continue
		}
		if p.shared {
			p.msgs, p.shared = slices.Clone(p.msgs), false
		}
		p.bytes += size(short) - size(m)
		p.msgs[i] = short
	}
}

// shortened is a result with a text of about limit bytes at most, and without its pictures if
// that is less than they cost.
func shortened(m event.Message, limit int) event.Message {
	if limit <= 2*pictureSize {
		m.Attachments = nil
	}
	if text := Shortened(m.Content, limit); len(text) < len(m.Content) {
		m.Content = text
	}
	return m
}

// leftOut stands for the middle of a shortened text.
const leftOut = "\n[… the middle of this text was left out to save room; repeat the call, for less at a time, if it matters …]\n"

// Shortened returns the beginning and the end of a text, about that many bytes together.
func Shortened(text string, limit int) string {
	if len(text) <= limit+len(leftOut) {
		return text
	}
	head := strings.ToValidUTF8(text[:limit*2/3], "")
	return head + leftOut + strings.ToValidUTF8(text[len(text)-limit/3:], "")
}

// The lengths to which results are shortened, in bytes: older ones rather than those that the
// model has just asked for, which may stay longer.
var (
	olderLimits = []int{8 << 10, 2 << 10, 512}
	allLimits   = []int{32 << 10, 16 << 10, 8 << 10, 4 << 10, 2 << 10, 1 << 10, 512}
)

// shorten returns the anchor that frees so many tokens and shortens as little as it can; false
// if there is none. With all, results of the last calls are shortened too, and what frees less
// is better than nothing.
func (p *Projection) shorten(free int, all bool) (Shrink, bool) {
	s, limits := Shrink{Kind: "shrink", Before: math.MaxInt64, TokensBefore: p.Tokens()}, allLimits
	if !all {
		limits, s.Before = olderLimits, 0
		for i, m := range slices.Backward(p.msgs) {
			if len(m.ToolCalls) > 0 {
				s.Before = p.from[i]
				break
			}
		}
	}
	freed := 0
	for _, limit := range limits {
		freed = 0
		for i, m := range p.msgs {
			if m.Role == "tool" && p.from[i] < s.Before {
				freed += max(0, size(m)-size(shortened(m, limit)))
			}
		}
		s.Limit, s.TokensAfter = limit, s.TokensBefore-freed/4
		if freed/4 >= free {
			break
		}
	}
	return s, freed > 0 && (all || freed/4 >= free)
}
