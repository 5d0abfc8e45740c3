package config

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// span is the range of a key's numbers, or of its durations in nanoseconds. Both ends belong
// to it.
type span struct{ from, to int64 }

// spans has the range of every key that is a number. The ends only exclude mistakes: an
// accepted value neither overflows nor makes a part of yaya useless.
var spans = map[string]span{
	"servers.max_message_bytes": {1 << 20, 256 << 20},
	"servers.tool_max_sec":      {1, 365 * 24 * 3600},
	"loop.max_iterations":       {1, 1_000_000},
	"compaction.threshold":      {1, 1_000_000_000},
	"compaction.target":         {1, 1_000_000_000},
	"compaction.tries":          {1, 100},
	"budget.session_cents":      {1, 1_000_000_000},
	"budget.day_cents":          {1, 1_000_000_000},
	"traffic.days":              {0, 36_500},
	"retention.sessions":        {0, 36_500},
	"retention.archives":        {0, 36_500},
	"retention.artifacts":       {0, 36_500},
	"retention.traffic":         {0, 36_500},
	"retention.memory":          {0, 36_500},
	"traffic.max_bytes":         {1 << 20, 1 << 40},
	"log.max_mb":                {1, 4096},
	"plugins.max_failures":      {1, 1_000_000},
	"agent_tool.max_depth":      {1, 100},
}

// durations is the range of all durations: a shorter timer would keep a processor busy, or end
// everything before it begins.
var durations = span{int64(100 * time.Millisecond), int64(30 * 24 * time.Hour)}

// span returns the range of a key that is a number or a duration.
func (k Key) span() span {
	if k.kind == duration {
		return durations
	}
	if s, ok := spans[k.Name]; ok {
		return s
	}
	return span{1, math.MaxInt64}
}

// read returns the number, or the duration in nanoseconds, that a value of the key is.
func (k Key) read(v json.RawMessage) (n int64, ok bool) {
	switch k.kind { //nolint:exhaustive // the other kinds have no range
	case number:
		return n, json.Unmarshal(v, &n) == nil && string(v) != "null"
	case duration:
		var s string
		if json.Unmarshal(v, &s) != nil {
			return 0, false
		}
		d, err := time.ParseDuration(s)
		return int64(d), err == nil
	}
	return 0, false
}

// wanted describes the values that a number or a duration can have.
func (k Key) wanted() string {
	s := k.span()
	if k.kind == duration {
		return fmt.Sprintf(`a duration from %s to %s, such as "60s"`, short(s.from), short(s.to))
	}
	return fmt.Sprintf("a whole number from %d to %d", s.from, s.to)
}

// short writes a duration as a person does: "720h" instead of "720h0m0s".
func short(ns int64) string {
	return strings.TrimSuffix(strings.TrimSuffix(time.Duration(ns).String(), "0s"), "0m")
}

// within returns the value of a key, or the nearest end of its range: a data directory can
// have values that were accepted before there were ranges, and must still open.
func within(key string, v json.RawMessage) json.RawMessage {
	k, known := lookupKey(key)
	if !known {
		return v
	}
	n, ok := k.read(v)
	if k.kind == number && string(v) == "null" { // was accepted as 0
		ok = true
	}
	if !ok {
		return v
	}
	s := k.span()
	in := min(max(n, s.from), s.to)
	switch {
	case in == n && string(v) != "null":
		return v
	case k.kind == duration:
		return json.RawMessage(`"` + short(in) + `"`)
	}
	return json.RawMessage(fmt.Sprint(in))
}
