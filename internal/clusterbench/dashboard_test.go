//go:build linux

package main

import "testing"

// CL-01, R12: the check of a dashboard finds events that are missing, doubled, out of order or of
// nobody, and nothing in a whole row of them, with a resync in between.
func TestCheckLobby(t *testing.T) {
	log := []entry{at(1, "agent_registered", "a", "{}"), at(2, "token_created", "t", "{}"), at(3, "agent_registered", "b", "{}"), at(4, "agent_killed", "a", "{}")}
	a, b, k := sight{1_000_000, "register_agent", "a"}, sight{3_000_000, "register_agent", "b"}, sight{4_000_000, "kill_agent", "a"}
	update := sight{3_000_001, "update_agent", "b"}
	for name, c := range map[string]struct {
		saw  []sight
		want string // in what is found, "" for nothing
	}{
		"all":                 {[]sight{{}, a, b, update, k}, ""},
		"from the middle":     {[]sight{{Index: 1_000_000}, b, k}, ""},
		"a resync":            {[]sight{{}, a, {Index: 3_000_000}, k}, ""},
		"one is missing":      {[]sight{{}, a, k}, "did not see register_agent of b"},
		"one comes twice":     {[]sight{{}, a, b, b, k}, "at 3000000 behind 3000000"},
		"another order":       {[]sight{{}, b, a, k}, "at 1000000 behind 3000000"},
		"nobody":              {[]sight{{}, a, {2_000_000, "register_agent", "x"}, b, k}, "is not in the log"},
		"another agent":       {[]sight{{}, a, {3_000_000, "register_agent", "x"}, k}, "is not in the log"},
		"an update goes back": {[]sight{{}, a, b, k, update}, "at 3000001 behind 4000000"},
		"nothing":             {nil, "did not see"},
	} {
		t.Run(name, func(t *testing.T) { finds(t, checkLobby("north", c.saw, log), c.want) })
	}
}
