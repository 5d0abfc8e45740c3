package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Bounds of jobs. Of those that have ended, the output is kept until somebody reads it, or too many
// have ended since.
const (
	maxJobs    = 8  // of a session at a time
	maxAllJobs = 64 // of all sessions
	maxEnded   = 8  // of a session
	maxOver    = 64 // of all sessions
	maxToldJob = 200
)

// noteJobs is the name of the note about commands in the background.
const noteJobs = "background commands"

// jobs are those of all sessions. The zero value is closed. It is safe for concurrent use.
type jobs struct {
	mu   sync.Mutex
	runs bool
	all  []*job // in the order of their start
	work sync.WaitGroup
}

func (s *jobs) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = true
}

// close ends all jobs, and waits for them.
func (s *jobs) close() {
	s.mu.Lock()
	s.runs = false
	for _, j := range s.all {
		j.gone = true
		j.halt()
	}
	s.all = slices.DeleteFunc(s.all, (*job).over)
	s.mu.Unlock()
	s.work.Wait()
}

// aside calls f on a goroutine that close waits for, unless jobs are closed.
func (s *jobs) aside(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs {
		s.work.Go(f)
	}
}

// over reports whether a job has ended.
func (j *job) over() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// reserve makes a job, within the bounds. It counts until ended is called.
func (s *jobs) reserve(session, text string) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.runs {
		return nil, errors.New("yaya is shutting down")
	}
	var own []string
	running := 0
	for _, j := range s.all {
		if j.over() {
			continue
		}
		running++
		if j.session == session {
			own = append(own, j.id)
		}
	}
	if len(own) >= maxJobs {
		return nil, fmt.Errorf("%d commands of this session run in the background (%s): end one of them with shell_stop first", maxJobs, strings.Join(own, ", "))
	}
	if running >= maxAllJobs {
		return nil, fmt.Errorf("%d commands of all sessions run in the background, which is the most: run this one without background, or wait until others have ended", maxAllJobs)
	}
	j := newJob(session, text)
	s.all = append(s.all, j)
	s.work.Add(1)
	return j, nil
}

// started makes a job known.
func (s *jobs) started(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.running = true
}

// ended is called once a job is over.
func (s *jobs) ended(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.work.Done()
	s.forget(func(o *job) bool { return o.gone }, 0)
	s.forget(func(o *job) bool { return o.session == j.session }, maxEnded)
	s.forget(func(*job) bool { return true }, maxOver)
}

// forget removes the oldest of the jobs that are over, and that ok selects, but for the newest; the
// caller holds mu.
func (s *jobs) forget(ok func(*job) bool, most int) {
	n := 0
	for _, j := range s.all {
		if j.over() && ok(j) {
			n++
		}
	}
	s.all = slices.DeleteFunc(s.all, func(j *job) bool {
		if n <= most || !j.over() || !ok(j) {
			return false
		}
		n--
		return true
	})
}

// drop forgets a job: nobody reads it from now on. It ends, if it has not.
func (s *jobs) drop(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll(func(o *job) bool { return o == j })
}

// endOf ends the jobs of a session and of its sub-agents.
func (s *jobs) endOf(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropAll(func(j *job) bool { return belongs(j.session, session) })
}

// dropAll drops some jobs; the caller holds mu.
func (s *jobs) dropAll(ok func(*job) bool) {
	for _, j := range s.all {
		if ok(j) {
			j.gone = true
			j.halt()
		}
	}
	s.forget(func(o *job) bool { return o.gone }, 0)
}

// of returns the jobs of a session that can be read.
func (s *jobs) of(session string) (out []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.all {
		if j.session == session && j.running && !j.gone {
			out = append(out, j)
		}
	}
	return out
}

// find returns a job of a session.
func (s *jobs) find(session, id string) (*job, error) {
	all := s.of(session)
	ids := make([]string, 0, len(all))
	for _, j := range all {
		if j.id == id {
			return j, nil
		}
		ids = append(ids, j.id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("no command %q: this session has none in the background, or their ends were read", cut.Text(id, 40))
	}
	return nil, fmt.Errorf("no command %q: this session has %s", cut.Text(id, 40), strings.Join(ids, ", "))
}

// Note tells a model which commands of its session run in the background; its text is empty if
// none does.
func (p *Plugin) Note(session string) event.TurnNote {
	var b strings.Builder
	for _, j := range p.jobs.of(session) {
		j.mu.Lock()
		state := "runs"
		if j.end != nil {
			state = fmt.Sprintf("has ended (%s); read the rest of its output with shell_output", j.how())
		}
		j.mu.Unlock()
		fmt.Fprintf(&b, "%s %s: %q\n", j.id, state, cut.Line(j.text, maxToldJob))
	}
	return event.TurnNote{Name: noteJobs, Text: strings.TrimSuffix(b.String(), "\n")}
}

// how describes the end of a job; the caller holds mu.
func (j *job) how() string {
	switch r := j.end; {
	case r.timedOut:
		return fmt.Sprintf("ended after %v", r.limit)
	case j.stopped && r.code < 0:
		return "stopped"
	case r.code < 0:
		return "killed by a signal"
	default:
		return fmt.Sprintf("exit code %d", r.code)
	}
}
