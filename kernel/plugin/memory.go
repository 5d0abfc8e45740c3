package plugin

import (
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

const (
	// memoryPatience is how long a query waits for memories while others have answered.
	memoryPatience = 2 * time.Second
	maxRecalled    = 50        // entries of a merged answer
	maxRemembered  = 256 << 10 // bytes of their texts
)

// memories is the panel of the plugins of category memory.
func (r *Registry) memories() bus.Panel {
	return bus.Panel{Members: r.rememberers, Merge: mergeMemories, Patience: memoryPatience}
}

// rememberers are the memories that get queries: those for the short term first, and
// otherwise in the order in which they were loaded.
func (r *Registry) rememberers() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var long []string
	for _, l := range r.order {
		if l.status != Loaded || l.manifest.Category != Memory || !slices.Contains(l.kinds, event.MemoryQueried.Name()) {
			continue
		}
		if l.manifest.MemoryKind == "short-term" {
			out = append(out, l.manifest.Name)
		} else {
			long = append(long, l.manifest.Name)
		}
	}
	return append(out, long...)
}

// mergeMemories takes turns: the best entry of each memory, then the second of each, and so on.
// How well an entry fits is known only within its memory. A text that was taken is not taken
// again, nor is one that the query may not have, from a memory that knows nothing of that.
func mergeMemories(request event.Event, answers []event.Event) event.Event {
	out := answers[0]
	if len(answers) > 1 {
		out.Source = event.KernelSource
	}
	q, _ := request.Payload.(event.MemoryQuery)
	limit := min(max(q.K, 0), maxRecalled)
	hits, seen, size := []event.MemoryEntry{}, map[string]bool{}, 0
	for rank, more := 0, true; more && len(hits) < limit; rank++ {
		more = false
		for _, ev := range answers {
			r, _ := ev.Payload.(event.MemoryResult)
			if rank >= len(r.Hits) {
				continue
			}
			more = true
			hit := r.Hits[rank]
			text := strings.Join(strings.Fields(hit.Text), " ")
			if text == "" || seen[text] || !q.Wants(hit, request.SessionID) || len(hits) >= limit || size+len(hit.Text) > maxRemembered {
				continue
			}
			seen[text] = true
			size += len(hit.Text)
			hits = append(hits, hit)
		}
	}
	out.Payload = event.MemoryResult{Hits: hits, Request: event.Request{RequestID: request.ID}}
	return out
}
