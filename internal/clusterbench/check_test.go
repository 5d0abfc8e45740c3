//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// at is an entry of a log.
func at(index int64, event, target, payload string) entry {
	return entry{Index: index, Event: event, Target: target, Payload: json.RawMessage(payload)}
}

// made is a write between two times, in seconds.
func made(key string, begin, end int, o outcome) op {
	return op{Kind: kindToken, Key: key, Begin: time.Duration(begin) * time.Second, End: time.Duration(end) * time.Second, Outcome: o}
}

// refreshed is a refresh that was answered with a token.
func refreshed(previous, id string) op {
	o := made("device_token_issued/"+previous, 0, 1, ok)
	o.ID = id
	return o
}

// CL-01, CL-11: the check of a history finds what a broken log would do to it, and nothing in what
// a good one does.
func TestCheckLog(t *testing.T) {
	a, b := at(1, "token_created", "a", "{}"), at(2, "token_created", "b", "{}")
	const ka, kb = "token_created/a", "token_created/b"
	for _, c := range []struct {
		name string
		ops  []op
		log  []entry
		want string // in what is found, "" for nothing
	}{
		{"in order", []op{made(ka, 0, 1, ok), made(kb, 2, 3, ok)}, []entry{a, b}, ""},
		{"at the same time", []op{made(kb, 0, 2, ok), made(ka, 1, 3, ok)}, []entry{a, b}, ""},
		{"against time", []op{made(kb, 0, 1, ok), made(ka, 2, 3, ok)}, []entry{a, b}, "acknowledged before it began"},
		{"an unknown one against time", []op{made(kb, 0, 1, ok), made(ka, 2, 3, unknown)}, []entry{a, b}, "acknowledged before it began"},
		{"an unknown one, later", []op{made(ka, 0, 1, unknown), made(kb, 2, 3, ok)}, []entry{at(1, b.Event, "b", "{}"), at(2, a.Event, "a", "{}")}, ""},
		{"lost", []op{made(ka, 0, 1, ok), made(kb, 2, 3, ok)}, []entry{a}, "is not in the log"},
		{"unknown and not there", []op{made(ka, 0, 1, unknown)}, nil, ""},
		{"twice", []op{made(ka, 0, 1, ok)}, []entry{a, at(2, a.Event, "a", "{}")}, "in the log 2 times"},
		{"failed and there", []op{made(ka, 0, 1, failed)}, []entry{a}, "failed and is entry 1"},
		{"failed, and asked again", []op{made(ka, 0, 1, failed), made(ka, 2, 3, ok)}, []entry{a}, ""},
		{"an index that goes back", nil, []entry{b, a}, "comes behind"},
		{"a code for two", nil, []entry{at(1, "device_enrolled", "x", `{"invite":"C"}`), at(2, "device_enrolled", "y", `{"invite":"C"}`)}, "enrolled x and y"},
		{"one successor for two", []op{refreshed("p", "q"), refreshed("p", "q")}, []entry{at(1, "device_token_issued", "x", `{"jti":"q","previous":"p"}`)}, ""},
		{"two successors", []op{refreshed("p", "q"), refreshed("p", "r")}, []entry{at(1, "device_token_issued", "x", `{"jti":"q","previous":"p"}`)}, "was answered with"},
		{"a successor of nobody", []op{refreshed("p", "r")}, []entry{at(1, "device_token_issued", "x", `{"jti":"q","previous":"p"}`)}, "was answered with"},
		{"two entries of successors", []op{refreshed("p", "q")}, []entry{at(1, "device_token_issued", "x", `{"jti":"q","previous":"p"}`), at(2, "device_token_issued", "x", `{"jti":"r","previous":"p"}`)}, "in the log 2 times"},
	} {
		t.Run(c.name, func(t *testing.T) { finds(t, checkLog(c.ops, c.log), c.want) })
	}
}

func finds(t *testing.T, got []string, want string) {
	t.Helper()
	if (want == "") != (len(got) == 0) || !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// CL-01: the logs of two nodes are beginnings of one.
func TestCheckPrefix(t *testing.T) {
	a, b, c := at(1, "x", "a", "{}"), at(2, "x", "b", "{}"), at(2, "x", "c", "{}")
	finds(t, checkPrefix([]entry{a}, []entry{a, b}), "")
	finds(t, checkPrefix([]entry{a, b}, []entry{a}), "has 1 entries that another one has not")
	finds(t, checkPrefix([]entry{a, b}, []entry{a, c}), "entry 2 is")
	finds(t, checkPrefix([]entry{a}, []entry{at(1, "x", "a", `{"y":1}`)}), "entry 1 is")
}

// CL-09: how long an admission may follow a revocation depends on whether the node reached a
// majority.
func TestCheckRevocation(t *testing.T) {
	v := &victims{}
	v.cut[2] = []span{{10 * time.Second, 30 * time.Second}}
	for _, c := range []struct {
		name string
		last [3]time.Duration
		want string
	}{
		{"at once", [3]time.Duration{}, ""},
		{"within a second", [3]time.Duration{0, 20*time.Second + 900*time.Millisecond, 0}, ""},
		{"after a second", [3]time.Duration{0, 20*time.Second + 1100*time.Millisecond, 0}, "south admitted it 1.1s later"},
		{"cut off", [3]time.Duration{0, 0, 24 * time.Second}, ""},
		{"cut off for too long", [3]time.Duration{0, 0, 26 * time.Second}, "west admitted it 6s later"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reached, all, found := revocation{"phone", 20 * time.Second, c.last}.check(v, 0)
			finds(t, found, c.want)
			if late := max(slices.Max(c.last[:])-20*time.Second, 0); all != late || reached > all {
				t.Errorf("the slowest was %v, and %v with a majority, want %v", all, reached, late)
			}
		})
	}
}

// CL-02, CL-11: a call may fail while its node is the victim, and one of the user's only while its
// node does not answer.
func TestCheckCalls(t *testing.T) {
	v := &victims{}
	v.cut[0], v.down[1] = []span{{10 * time.Second, 20 * time.Second}}, []span{{10 * time.Second, 20 * time.Second}}
	for _, c := range []struct {
		kind string
		node int
		at   int
		want string
	}{
		{kindCall, 0, 15, ""}, {kindCall, 1, 15, ""}, {kindCall, 2, 15, kindCall}, {kindCall, 0, 25, kindCall},
		{kindOwnCall, 0, 15, kindOwnCall}, {kindOwnCall, 1, 15, ""}, {kindRead, 0, 15, kindRead}, {kindRead, 1, 15, ""},
	} {
		o := op{Kind: c.kind, Node: c.node, Begin: time.Duration(c.at) * time.Second, End: time.Duration(c.at) * time.Second, Outcome: failed}
		t.Run(fmt.Sprint(c), func(t *testing.T) { finds(t, checkCalls([]op{o}, v, 0), c.want) })
	}
	call := func(at int, o outcome) op {
		return op{Kind: kindCall, Node: 2, Begin: time.Duration(at) * time.Second, End: time.Duration(at) * time.Second, Outcome: o}
	}
	finds(t, checkCalls([]op{call(1, failed), call(3, failed), call(4, ok), call(6, failed)}, v, 4*time.Second), "")
	finds(t, checkCalls([]op{call(1, failed), call(3, failed), call(5, failed)}, v, 4*time.Second), "at 5s")
}

// CL-02: no change is acknowledged without a majority.
func TestCheckLost(t *testing.T) {
	v := &victims{lost: span{10 * time.Second, 20 * time.Second}}
	finds(t, checkLost([]op{made("a", 8, 11, ok), made("b", 12, 15, failed), made("c", 12, 15, unknown), made("d", 19, 21, ok)}, v), "")
	finds(t, checkLost([]op{made("a", 12, 15, ok)}, v), "without a majority")
	finds(t, checkLost([]op{made("a", 12, 15, ok)}, &victims{}), "")
}

// CL-01: a node that has shown an entry has it from then on.
func TestCheckReads(t *testing.T) {
	read := func(node int, index int64, o outcome) op {
		return op{Kind: kindRead, Node: node, Index: index, Outcome: o}
	}
	finds(t, checkReads([]op{read(0, 5, ok), read(1, 3, ok), read(0, 0, failed), read(0, 5, ok), read(1, 4, ok)}), "")
	finds(t, checkReads([]op{read(0, 5, ok), read(0, 4, ok)}), "north had entry 5")
}
