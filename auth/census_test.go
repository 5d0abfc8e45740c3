package auth_test

import (
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
)

// A census counts what the authority counts, from the file alone.
func TestCensus(t *testing.T) {
	w := newWorld(t)
	census, tail := auth.NewCensus(), local.NewTail(journal.Root(w.root))
	same := func(when string, want int) {
		t.Helper()
		if err := tail.Next(census.Apply); err != nil {
			t.Fatal(err)
		}
		if got := census.Enrolled(); got != want || w.Enrolled() != want {
			t.Errorf("%s: the census counts %d and the authority %d, want %d", when, got, w.Enrolled(), want)
		}
	}
	same("at first", 0)
	w.enroll(newGadget("phone"), auth.ToolsCall)
	same("a device", 1)
	if _, _, err := w.CreateLasting(t.Context(), auth.LocalOwner, auth.NewLasting{Name: "ci", Scopes: []auth.Scope{auth.ToolsCall}}); err != nil {
		t.Fatal(err)
	}
	same("a device and a token", 2)
	if err := w.Revoke(t.Context(), auth.LocalOwner, "phone", "lost"); err != nil {
		t.Fatal(err)
	}
	same("a token", 1)
	if err := w.RevokeLasting(t.Context(), auth.LocalOwner, "ci"); err != nil {
		t.Fatal(err)
	}
	same("nobody", 0)
}

// A request that changes nothing succeeds without an entry in the log.
func TestNothingChanges(t *testing.T) {
	w := newWorld(t)
	w.enroll(newGadget("phone"), auth.ToolsCall, auth.SessionsRead)
	last := func() int64 {
		var n int64
		if err := w.log.Read(1, func(e control.Entry) error { n = e.Index; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		name    string
		do      func() error
		changes bool
	}{
		{"the same scopes", func() error {
			return w.SetScopes(t.Context(), auth.LocalOwner, "phone", []auth.Scope{auth.SessionsRead, auth.ToolsCall})
		}, false},
		{"other scopes", func() error {
			return w.SetScopes(t.Context(), auth.LocalOwner, "phone", []auth.Scope{auth.SessionsRead})
		}, true},
		{"no scopes", func() error { return w.SetScopes(t.Context(), auth.LocalOwner, "phone", nil) }, true},
		{"revoked", func() error { return w.Revoke(t.Context(), auth.LocalOwner, "phone", "lost") }, true},
		{"revoked again", func() error { return w.Revoke(t.Context(), auth.LocalOwner, "phone", "lost") }, false},
	} {
		was := last()
		if err := c.do(); err != nil {
			t.Errorf("%s: got %v, want no error", c.name, err)
		}
		if got := last() != was; got != c.changes {
			t.Errorf("%s: an entry was written: %t, want %t", c.name, got, c.changes)
		}
	}
}
