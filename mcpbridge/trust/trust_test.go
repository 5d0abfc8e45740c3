package trust_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/mcpbridge/trust"
)

var (
	src  = trust.Source{Server: "s", Config: "cmd"}
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

func open(t *testing.T, dir string) *trust.Store {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return trust.NewStore(root)
}

func seen(tools ...string) trust.Seen {
	s := trust.Seen{Identity: "server", Version: "2025-11-25", Tools: map[string]json.RawMessage{}}
	for _, t := range tools {
		name, description, _ := strings.Cut(t, "=")
		s.Tools[name] = json.RawMessage(fmt.Sprintf(`{ "name": %q, "inputSchema": {"description": %q, "n": 12345678901234567890} }`, name, description))
	}
	return s
}

// check opens the store as after a restart.
func check(t *testing.T, dir string, s trust.Seen, at time.Duration) map[string]string {
	t.Helper()
	v, err := open(t, dir).Check(src, s, noon.Add(at))
	if err != nil {
		t.Fatal(err)
	}
	return v.Blocked
}

func one(t *testing.T, s *trust.Store) trust.Waiting {
	t.Helper()
	w, err := s.Waiting()
	if err != nil || len(w) != 1 {
		t.Fatalf("waiting: %+v, %v", w, err)
	}
	return w[0]
}

// R19, UP-03: tools are pinned as a whole; what is new or different waits until it
// is approved, and what has changed is shown.
func TestPins(t *testing.T) {
	dir := t.TempDir()
	if b := check(t, dir, seen("a=one", "b=two"), 0); len(b) != 0 {
		t.Fatalf("on first sight: %v", b)
	}
	// The same in another spelling is the same.
	same := seen("b=two")
	same.Tools["a"] = json.RawMessage(`{"inputSchema":{"n":12345678901234567890,"description":"one"},"name":"a"}`)
	if b := check(t, dir, same, time.Hour); len(b) != 0 {
		t.Fatalf("unchanged: %v", b)
	}
	changed := seen("a=ONE", "b=two", "c=three")
	b := check(t, dir, changed, 2*time.Hour)
	if len(b) != 2 || b["a"] != "its definition has changed" || b["c"] != "it is new" {
		t.Fatalf("blocked: %v", b)
	}
	w := one(t, open(t, dir))
	if w.Server != "s" || w.Reason != "" || len(w.Tools) != 2 || w.Tools[0].Name != "a" || w.Tools[0].New || !w.Tools[1].New {
		t.Fatalf("waiting: %+v", w)
	}
	if d := w.Tools[0].Diff; !strings.Contains(d, `-    "description": "one"`) || !strings.Contains(d, `+    "description": "ONE"`) || strings.Contains(d, "-  \"name\"") {
		t.Errorf("diff:\n%s", d)
	}
	// One that goes back to what it was needs no approval, and is not waited for.
	if b := check(t, dir, seen("a=one", "b=two"), 3*time.Hour); len(b) != 0 {
		t.Fatalf("back again: %v", b)
	}
	if w, err := open(t, dir).Waiting(); err != nil || len(w) != 0 {
		t.Fatalf("waiting: %+v %v", w, err)
	}
	check(t, dir, changed, 4*time.Hour)
	s := open(t, dir)
	w = one(t, s)
	if err := s.Approve(w, "nothing"); err == nil || !strings.Contains(err.Error(), `"nothing" does not wait`) {
		t.Errorf(`got %v; want an error: "nothing" does not wait`, err)
	}
	if err := s.Approve(w, "a"); err != nil {
		t.Fatal(err)
	}
	if b := check(t, dir, changed, 5*time.Hour); len(b) != 1 || b["c"] == "" {
		t.Fatalf("after one: %v", b)
	}
	if err := open(t, dir).Approve(w); !errors.Is(err, trust.ErrStale) {
		t.Errorf("what was shown before: %v", err)
	}
	s = open(t, dir)
	if err := s.Approve(one(t, s)); err != nil {
		t.Fatal(err)
	}
	if b := check(t, dir, changed, 6*time.Hour); len(b) != 0 {
		t.Fatalf("after all: %v", b)
	}
	// Removing a tool needs no approval, nor does restoring it unchanged.
	check(t, dir, seen("b=two"), 7*time.Hour)
	if b := check(t, dir, changed, 8*time.Hour); len(b) != 0 {
		t.Fatalf("removed and back: %v", b)
	}
}

// Approve approves the definition that was shown, and refuses one that changed in between.
func TestApprovesWhatWasShown(t *testing.T) {
	dir := t.TempDir()
	check(t, dir, seen("a=one"), 0)
	check(t, dir, seen("a=two"), time.Hour)
	s := open(t, dir)
	w := one(t, s)
	check(t, dir, seen("a=three"), 2*time.Hour)
	if err := s.Approve(w); !errors.Is(err, trust.ErrStale) {
		t.Fatalf("got %v, want %v", err, trust.ErrStale)
	}
	if b := check(t, dir, seen("a=three"), 3*time.Hour); b["a"] == "" {
		t.Error("it was approved")
	}
}

// UP-34: a server that is somebody else, or speaks an older protocol, is not the
// one that was agreed to.
func TestIdentity(t *testing.T) {
	for name, edit := range map[string]func(*trust.Seen){
		"somebody else": func(s *trust.Seen) { s.Identity = "other" },
		"downgrade":     func(s *trust.Seen) { s.Version = "2024-11-05" },
	} {
		dir := t.TempDir()
		check(t, dir, seen("a=one"), 0)
		s := seen("a=one")
		edit(&s)
		if b := check(t, dir, s, time.Hour); b["a"] == "" {
			t.Errorf("%s: nothing is blocked", name)
		}
		st := open(t, dir)
		w := one(t, st)
		if w.Reason == "" {
			t.Errorf("%s: no reason", name)
		}
		if err := st.Approve(w); err != nil {
			t.Fatal(err)
		}
		if b := check(t, dir, s, 2*time.Hour); len(b) != 0 {
			t.Errorf("%s: after approval: %v", name, b)
		}
	}
	dir := t.TempDir()
	check(t, dir, seen("a=one"), 0)
	newer := seen("a=one")
	newer.Version = "2026-07-28"
	if b := check(t, dir, newer, time.Hour); len(b) != 0 {
		t.Errorf("the other era: %v", b)
	}
	// yaya chooses the era: by the client, or by the pipe.
	if b := check(t, dir, seen("a=one"), 2*time.Hour); len(b) != 0 {
		t.Errorf("back from the other era: %v", b)
	}
	older := seen("a=one")
	older.Version = "2025-06-18"
	if b := check(t, dir, older, 3*time.Hour); b["a"] == "" {
		t.Error("an older version of the same era is not blocked")
	}
	nameless := seen("a=one")
	nameless.Identity = "" // a modern server need not say
	if b := check(t, dir, nameless, 4*time.Hour); len(b) != 0 {
		t.Errorf("without a name: %v", b)
	}
}

// A server that keeps changing its mind is left alone altogether.
func TestFlapping(t *testing.T) {
	dir := t.TempDir()
	check(t, dir, seen("a=0", "steady=x"), 0)
	for i := range 5 {
		if b := check(t, dir, seen(fmt.Sprintf("a=%d", i+1), "steady=x"), time.Duration(i+1)*time.Minute); b["steady"] != "" {
			t.Fatalf("after %d changes: %v", i+1, b)
		}
	}
	b := check(t, dir, seen("a=9", "steady=x"), 6*time.Minute)
	if !strings.Contains(b["steady"], "keeps changing") {
		t.Fatalf("blocked: %v", b)
	}
	if b := check(t, dir, seen("a=0", "steady=x"), 24*time.Hour); b["steady"] == "" {
		t.Error("it is forgotten")
	}
	s := open(t, dir)
	if err := s.Approve(one(t, s)); err != nil {
		t.Fatal(err)
	}
	if b := check(t, dir, seen("a=0", "steady=x"), 25*time.Hour); len(b) != 0 {
		t.Errorf("after approval: %v", b)
	}
}

// PIN-1: only what a server lists first is pinned without a question. A tool that it
// adds a moment later, in the same process of yaya, waits like one that it adds in an hour.
func TestNothingIsPinnedAfterTheFirstList(t *testing.T) {
	s := open(t, t.TempDir())
	for _, c := range []struct {
		name  string
		after time.Duration
		tools []string
		waits string
	}{
		{"the first list", 0, []string{"a=one"}, ""},
		{"a tool at once", 0, []string{"a=one", "b=two"}, "it is new"},
		{"a tool after a moment", 2 * time.Second, []string{"a=one", "b=two"}, "it is new"},
		{"a tool after an hour", time.Hour, []string{"a=one", "b=two"}, "it is new"},
	} {
		v, err := s.Check(src, seen(c.tools...), noon.Add(c.after))
		if err != nil || v.Blocked["a"] != "" || v.Blocked["b"] != c.waits {
			t.Errorf("%s: blocked %v, %v; want b to wait because %q", c.name, v.Blocked, err, c.waits)
		}
	}
	if w := one(t, s); len(w.Tools) != 1 || !w.Tools[0].New {
		t.Errorf("waiting: %+v, want b", w.Tools)
	}
}

// A server with a new configuration is another server; an unreadable file blocks.
func TestSourcesAndDamage(t *testing.T) {
	dir := t.TempDir()
	check(t, dir, seen("a=one"), 0)
	s := open(t, dir)
	if b, err := s.Check(trust.Source{Server: "s", Config: "other"}, seen("a=two"), noon); err != nil || len(b.Blocked) != 0 {
		t.Errorf("got %v %v; want nothing blocked", b, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "trust", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files: %v %v", files, err)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v %v, want Perm 0o600", f, st.Mode(), err)
		}
		if err := os.WriteFile(f, []byte(`{"tools":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v, err := s.Check(src, seen("a=one"), noon)
	if err != nil || !strings.Contains(v.Whole, "yaya repair") || !strings.Contains(v.Blocked["a"], "yaya repair") {
		t.Errorf("Check of damaged approvals = %+v, %v, want all of it blocked with the command", v, err)
	}
	if _, err := s.Waiting(); err != nil {
		t.Errorf("Waiting = %v, want none", err)
	}
}

// REL-13, OP-24: a damaged file of approvals blocks its server with the reason, and no
// other; its record begins again with nothing approved.
func TestDamagedApprovals(t *testing.T) {
	for name, bad := range map[string]string{
		"cut": `{"tools":`, "empty": "", "null": "null", "another document": "{}", "a list": "[]",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			s := trust.NewStore(root)
			one, two := trust.Source{Server: "one", Config: "x"}, trust.Source{Server: "two", Config: "y"}
			if _, err := s.Check(one, seen("a=one"), noon); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "trust", "*.json"))
			if err != nil || len(files) != 1 {
				t.Fatalf("the files are %v, %v, want one", files, err)
			}
			if _, err := s.Check(two, seen("b=two"), noon); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(files[0], []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			s = trust.NewStore(root)
			if v, err := s.Check(one, seen("a=one"), noon); err != nil || v.Blocked["a"] == "" {
				t.Errorf("Check of one = %+v, %v, want it blocked", v, err)
			}
			if v, err := s.Check(two, seen("b=two"), noon); err != nil || len(v.Blocked) != 0 {
				t.Errorf("Check of two = %+v, %v, want nothing blocked", v, err)
			}
			waiting, err := s.Waiting()
			if err != nil || len(waiting) != 1 || waiting[0].Server != "one" || !strings.Contains(waiting[0].Reason, "yaya repair") {
				t.Fatalf("Waiting = %+v, %v, want one with the command", waiting, err)
			}
			if err := s.Approve(waiting[0]); !errors.Is(err, trust.ErrDamaged) {
				t.Errorf("Approve = %v, want %v", err, trust.ErrDamaged)
			}
			damaged, err := s.Damaged()
			file := "trust/" + filepath.Base(files[0])
			if err != nil || len(damaged) != 1 || damaged[file] == nil {
				t.Fatalf("Damaged = %v, %v, want %s", damaged, err, file)
			}
			if err := s.Restart(file, noon); err == nil {
				t.Error("Restart replaced a file that is there")
			}
			if err := os.Remove(files[0]); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(file, noon); err != nil {
				t.Fatal(err)
			}
			if v, err := s.Check(one, seen("a=one"), noon); err != nil || v.Blocked["a"] != "it is new" {
				t.Errorf("Check after the repair = %+v, %v, want the tool to wait", v, err)
			}
			if waiting, err = s.Waiting(); err != nil || len(waiting) != 1 || waiting[0].Server != "one" {
				t.Fatalf("Waiting after the repair = %+v, %v, want one", waiting, err)
			}
			if err := s.Approve(waiting[0]); err != nil {
				t.Fatal(err)
			}
			if v, err := s.Check(one, seen("a=one"), noon); err != nil || len(v.Blocked) != 0 {
				t.Errorf("Check after the approval = %+v, %v, want nothing blocked", v, err)
			}
		})
	}
}

// SEC-A: how a server is configured can hold secrets, and does not lie with its pins; what
// earlier versions have written goes, and the pins stay.
func TestConfigurationIsNotWrittenDown(t *testing.T) {
	for name, clean := range map[string]func(t *testing.T, s *trust.Store, src trust.Source){
		"of a server that is used": func(t *testing.T, s *trust.Store, src trust.Source) {
			if v, err := s.Check(src, seen("a=one", "b=two"), noon); err != nil || v.Blocked["a"] != "" || v.Blocked["b"] != "it is new" {
				t.Errorf("blocked %v, %v; want the pins as they were", v.Blocked, err)
			}
		},
		"of another": func(t *testing.T, s *trust.Store, _ trust.Source) {
			if err := s.Tidy(); err != nil {
				t.Errorf("Tidy = %v, want no error", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			src := trust.Source{Server: "s", Config: "stdio\x00run\x00\x00--token\x00hunter2"}
			s := open(t, dir)
			if _, err := s.Check(src, seen("a=one"), noon); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "trust", "*.json"))
			if err != nil || len(files) != 1 {
				t.Fatalf("files: %v %v", files, err)
			}
			content := func() string {
				t.Helper()
				raw, err := os.ReadFile(files[0])
				if err != nil {
					t.Fatal(err)
				}
				return string(raw)
			}
			now := content()
			if strings.Contains(now, "hunter2") {
				t.Errorf("the file has the secret: %s", now)
			}
			old := strings.Replace(now, `{"server":"s"}`, `{"server":"s","config":"stdio\u0000run\u0000\u0000--token\u0000hunter2"}`, 1)
			if err := os.WriteFile(files[0], []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			// yaya verify, which may be root's, changes nothing.
			if bad, err := open(t, dir).Damaged(); err != nil || len(bad) != 0 || content() != old {
				t.Errorf("Damaged = %v, %v, and the file has %s, want it unchanged", bad, err, content())
			}
			if err := os.WriteFile(files[0], []byte(old), 0o600); err != nil || old == now {
				t.Fatalf("%v: got %s, want old not %v", err, now, now)
			}
			clean(t, s, src)
			if got := content(); strings.Contains(got, "hunter2") || !strings.Contains(got, `"a"`) {
				t.Errorf("the file is %s, want the pins without the secret", got)
			}
		})
	}
}
