package sessions_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/gateway/sessions"
)

// MIS-6: a session belongs to the client that has begun it, through one profile, and a restart
// changes nothing; for other clients it does not exist, and folders are checked each time.
func TestSessionOfAClient(t *testing.T) {
	w := newWorld(t, `{"scenarios":[]}`)
	mine := sessions.Client{Principal: "token:ci", Profile: "reading"}
	id, err := w.s.Begin(w.ws, mine)
	if err != nil {
		t.Fatal(err)
	}
	open := func(string) error { return nil }
	out, err := w.s.Run(t.Context(), id, "hello", mine, open)
	if err != nil || out.Err != nil || out.Text != "echo: hello" {
		t.Fatalf("Run = %+v, %v; want the echo", out, err)
	}
	w.stop()
	w.start(`{"scenarios":[]}`)
	if got, err := w.s.ClientOf(id); err != nil || got == nil || *got != mine {
		t.Errorf("ClientOf = %v, %v; want %v after a restart", got, err, mine)
	}
	if err := w.s.Begun(id, mine); err != nil {
		t.Errorf("Begun = %v, want no error", err)
	}
	person := w.create()
	for name, c := range map[string]struct {
		id  string
		who sessions.Client
	}{
		"another client":    {id, sessions.Client{Principal: "token:other", Profile: "reading"}},
		"another profile":   {id, sessions.Client{Principal: "token:ci", Profile: "all"}},
		"a person's":        {person, mine},
		"one that is not":   {"sess_0", mine},
		"an id of no shape": {"../x", mine},
	} {
		if _, err := w.s.Run(t.Context(), c.id, "hello", c.who, open); !errors.Is(err, sessions.ErrNotBegun) {
			t.Errorf("%s: %v, want %v", name, err, sessions.ErrNotBegun)
		}
		if err := w.s.Begun(c.id, c.who); !errors.Is(err, sessions.ErrNotBegun) {
			t.Errorf("%s: Begun = %v, want %v", name, err, sessions.ErrNotBegun)
		}
	}
	closed := errors.New("closed")
	if _, err := w.s.Run(t.Context(), id, "hello", mine, func(dir string) error {
		if dir != w.ws {
			t.Errorf("asked about %s, want %s", dir, w.ws)
		}
		return closed
	}); !errors.Is(err, closed) {
		t.Errorf("in a folder that is closed now: %v, want %v", err, closed)
	}
}

// MIS-6: a session as text has its last turns, as many as fit, whole or cut at a character.
func TestSessionText(t *testing.T) {
	w := newWorld(t, `{"scenarios":[]}`)
	mine := sessions.Client{Principal: "owner"}
	id, err := w.s.Begin(w.ws, mine)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first" + strings.Repeat(".", 1000), "second" + strings.Repeat(".", 1000), strings.Repeat("ä", 3000)} {
		if _, err := w.s.Run(t.Context(), id, text, mine, func(string) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		limit             int
		first, left, tail bool
	}{{1 << 20, true, false, true}, {13_000, false, true, true}, {4000, false, true, false}, {0, false, true, false}} {
		text, err := w.s.Text(id, c.limit)
		if err != nil || !utf8.ValidString(text) || !strings.HasPrefix(text, "Session "+id) || len(text) > max(c.limit, 1000) {
			t.Fatalf("Text(%d) = %d bytes, %v; want at most that many, valid", c.limit, len(text), err)
		}
		if got := strings.Contains(text, "user:\nfirst."); got != c.first {
			t.Errorf("limit %d: the first turn is there: %v, want %v", c.limit, got, c.first)
		}
		if got := strings.Contains(text, "earlier turns are left out"); got != c.left {
			t.Errorf("limit %d: it says that turns are left out: %v, want %v", c.limit, got, c.left)
		}
		if got := strings.HasSuffix(text, "ä\n"); got != c.tail {
			t.Errorf("limit %d: the last turn is whole: %v, want %v", c.limit, got, c.tail)
		}
	}
	if _, err := w.s.Text("sess_0", 100); err == nil {
		t.Error("a session that is not there has a text")
	}
}
