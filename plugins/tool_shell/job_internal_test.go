//go:build unix

package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// The call that starts a job returns after a moment; when it is cancelled before, the job ends: no
// result has named it.
func TestLookAtTheStartOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob("s", "x")
		if err := j.look(t.Context()); err != nil {
			t.Errorf("look = %v, want no error", err)
		}
		select {
		case <-j.halted:
			t.Error("a job that runs was ended")
		default:
		}
		go func() {
			<-j.halted
			close(j.done)
		}()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("cancelled by the user"))
		if err := j.look(ctx); err == nil || err.Error() != "cancelled by the user" || !j.over() {
			t.Errorf("look of a cancelled call = %v, want its cause, and the end of the job", err)
		}
	})
}

// Output is cut between characters, and what is left out is counted.
func TestUnread(t *testing.T) {
	u := new(unread)
	u.add("a€"[:2])
	if got := u.take(false); got != "a" {
		t.Errorf("take of a part of a character = %q, want what comes before it", got)
	}
	u.add("a€"[2:])
	if got := u.take(false); got != "€" {
		t.Errorf("take = %q, want the whole character", got)
	}
	u.add("a\xe2")
	if got := u.take(true); got != "a\uFFFD" {
		t.Errorf("take of the end = %q, want all of it", got)
	}
	for range 30 {
		u.add(strings.Repeat("x", maxUnread/10))
	}
	u.add("end")
	got := u.take(false)
	if want := fmt.Sprintf("[… %d bytes omitted …]\n", 30*(maxUnread/10)+len("end")-maxUnread); !strings.HasPrefix(got, want) || len(got) != len(want)+maxUnread || !strings.HasSuffix(got, "end") {
		t.Errorf("take of a flood = %.60q…, %d bytes, want %q and the newest %d", got, len(got), want, maxUnread)
	}
	if got := u.take(false); got != "" {
		t.Errorf("take of what was taken = %q, want nothing", got)
	}
}

// Of jobs that have ended a number is kept, the newest.
func TestEndedJobsAreBounded(t *testing.T) {
	var s jobs
	s.open()
	var all []*job
	for i := range maxAllJobs + maxOver {
		j, err := s.reserve(strings.Repeat("x", i%20), "x")
		if err != nil {
			t.Fatal(err)
		}
		s.started(j)
		close(j.done)
		s.ended(j)
		all = append(all, j)
	}
	if len(s.all) != maxOver || s.all[0] != all[len(all)-maxOver] {
		t.Errorf("%d jobs are kept, want the newest %d", len(s.all), maxOver)
	}
	for range maxEnded + 1 {
		j, err := s.reserve("one", "x")
		if err != nil {
			t.Fatal(err)
		}
		s.started(j)
		close(j.done)
		s.ended(j)
	}
	if got := len(s.of("one")); got != maxEnded {
		t.Errorf("%d jobs of a session are kept, want %d", got, maxEnded)
	}
	for i := range maxAllJobs {
		if _, err := s.reserve(strings.Repeat("y", i/maxJobs+1), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.reserve("z", "x"); err == nil {
		t.Errorf("job %d was accepted, want a refusal", maxAllJobs+1)
	}
	s.mu.Lock()
	s.runs = false
	s.mu.Unlock()
	if _, err := s.reserve("z", "x"); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("reserve at the end = %v, want that yaya shuts down", err)
	}
}
