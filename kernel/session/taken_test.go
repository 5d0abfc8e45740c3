package session

import (
	"context"
	"errors"
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
