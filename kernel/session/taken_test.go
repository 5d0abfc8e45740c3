package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// foreign is an owner that refuses sessions that are not "mine".
type foreign struct {
	Owner
	asked *int
	err   error
}

func (f *foreign) Hold(_ context.Context, id, _ string) error {
	if id == "mine" {
		return nil
	}
	*f.asked++
	return f.err
}

func (*foreign) Elsewhere(context.Context, string) string { return "" }

func (*foreign) Grew(string, File) {}

// A session that another node has is not made a second time, neither by name nor as a fork; those
// that are here are opened as ever.
func TestTakenSessionsAreNotMade(t *testing.T) {
	m, _ := newManager(t, t.TempDir())
	if _, err := m.Open("mine", ""); err != nil {
		t.Fatal(err)
	}
	asked := 0
	taken := errors.New("it is on another node")
	m.cfg.Owner = &foreign{asked: &asked, err: taken}
	if _, err := m.Open("theirs", ""); !errors.Is(err, taken) {
		t.Errorf("Open() = %v, want %v", err, taken)
	}
	if _, err := m.Fork("mine", "theirs"); !errors.Is(err, taken) {
		t.Errorf("Fork() = %v, want %v", err, taken)
	}
	if _, err := m.Open("mine", ""); err != nil || asked != 2 {
		t.Errorf("Open() of a session that is here = %v after %d questions, want no error and 2", err, asked)
	}
	if _, err := m.Fork("mine", "mine::agent::a1"); err != nil {
		t.Errorf("Fork() of a sub-agent = %v, want no error", err)
	}
}

// taken is an owner for whom another node has taken all sessions over, until it does not.
type taken struct {
	Owner
	by string
}

func (o *taken) Hold(context.Context, string, string) error { return nil }

func (o *taken) Elsewhere(context.Context, string) string { return o.by }

func (*taken) Grew(string, File) {}

func (*taken) Kept(context.Context, string, File) error { return nil }

func (*taken) Copied(context.Context, string, []File) (bool, error) { return false, nil }

// CL-04: a message that was on the disk when its session was given up is not acknowledged; and a session that is
// this node's again stays, though somebody was about to give it up.
func TestGivenUp(t *testing.T) {
	m, _ := newManager(t, t.TempDir())
	owner := &taken{}
	m.cfg.Owner = owner
	s, err := m.Open("s", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.GiveUp("s"); err != nil {
		t.Fatal(err)
	}
	entry, err := s.Say(Message{Role: "user", Content: "hello"}, "", "")
	if err != nil {
		t.Fatalf("the session of this node was given up: %v", err)
	}
	s.mu.Lock()
	f := s.file(s.j.Size())
	s.mu.Unlock()
	if err := s.Sync(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	owner.by = "north"
	ended := ""
	m.SetEnded(func(id string) error { ended += id; return nil })
	if err := m.GiveUp("s"); err != nil || ended != "s" {
		t.Fatalf("GiveUp = %v, and %q ended; want s", err, ended)
	}
	if err := s.kept(t.Context(), f); !errors.Is(err, ErrElsewhere) {
		t.Errorf("kept() = %v, want that it is elsewhere", err)
	}
}

// copying is an owner that copies files of a session once it has claimed it, and those that the session had then.
type copying struct {
	Owner
	m       *Manager
	claimed bool
	wanted  []string
}

func (o *copying) Hold(_ context.Context, id, _ string) error {
	if o.claimed {
		return nil
	}
	o.claimed = true
	files, err := o.m.Files(id)
	for _, f := range files {
		o.wanted = append(o.wanted, f.Name)
	}
	return err
}

func (*copying) Elsewhere(context.Context, string) string { return "" }

func (o *copying) Grew(_ string, f File) {
	if o.claimed {
		o.wanted = append(o.wanted, f.Name)
	}
}

// CL-04: how a session was made is on the disk before its tape, and is copied with it.
func TestNewSessionIsCopied(t *testing.T) {
	dir := t.TempDir()
	m, _ := newManager(t, dir)
	o := &copying{m: m}
	m.cfg.Owner = o
	const id, record = "s", "sessions/s/session.json"
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "sessions", "s"), 0o700), os.WriteFile(filepath.Join(dir, record), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	m.Saved(id, record)
	s, err := m.OpenIn(id, "", Work)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{record, tapeFile(s.tape)} {
		if !slices.Contains(o.wanted, want) {
			t.Errorf("copied are %q, want %s among them", o.wanted, want)
		}
	}
}

// A session whose files cannot be copied is not made, and leaves no open tape.
func TestNewSessionThatIsNotCopied(t *testing.T) {
	dir := t.TempDir()
	m, _ := newManager(t, dir)
	m.cfg.Owner = &copying{m: m}
	record := filepath.Join(dir, "sessions", "s", "session.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(record), 0o700), os.Symlink("session.json", record)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.OpenIn("s", "", Work); err == nil || m.opened.Load() != 0 {
		t.Errorf("OpenIn() = %v, and %d tapes are open; want an error and none", err, m.opened.Load())
	}
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	if _, err := m.OpenIn("s", "", Work); err != nil {
		t.Errorf("once its files can be read: OpenIn() = %v, want no error", err)
	}
}
