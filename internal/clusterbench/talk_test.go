//go:build linux

package main

import "testing"

// CL-01, CL-04: the check of a session finds messages that are missing, doubled, out of order or were refused, and
// nothing where all is well.
func TestCheckSaid(t *testing.T) {
	say := func(text string, begin, end int, o outcome) op {
		x := made("", begin, end, o)
		x.Kind, x.Session, x.Text = kindSay, "s", text
		return x
	}
	ops := []op{say("a", 1, 2, ok), say("b", 3, 4, ok), say("c", 3, 9, unknown), say("d", 5, 6, failed)}
	for name, c := range map[string]struct {
		said []string
		want string // in what is found, "" for nothing
	}{
		"all":                  {[]string{"a", "b"}, ""},
		"one that may be":      {[]string{"a", "c", "b"}, ""},
		"one is missing":       {[]string{"a"}, "was acknowledged and is not in the log"},
		"one is there twice":   {[]string{"a", "b", "a"}, "is in the log 2 times"},
		"an unknown one twice": {[]string{"a", "c", "b", "c"}, "is in the log 2 times"},
		"another order":        {[]string{"b", "a"}, "before"},
		"a refused one":        {[]string{"a", "b", "d"}, "failed and is entry 3"},
	} {
		t.Run(name, func(t *testing.T) { finds(t, checkSaid(ops, "s", c.said), c.want) })
	}
	if got := checkSaid(ops, "another", nil); len(got) > 0 {
		t.Errorf("of another session: %v", got)
	}
}
