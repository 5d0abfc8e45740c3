package sessions_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// S-13, MIS-2: nothing takes a session away while a turn runs, or while its history is summarized.
func TestBusyForWhoeverTakesItAway(t *testing.T) {
	w := newWorld(t, sums())
	turn, summary := w.create(), w.create()
	w.say(turn, "slow")
	for range 4 {
		w.say(summary, "never"+strings.Repeat(" word", 500))
		w.idle(summary)
	}
	over := make(chan string, 1)
	go func() {
		status, body, _ := w.raw("POST", "/v1/sessions/"+summary+"/compact", "")
		over <- fmt.Sprint(status, " ", string(body))
	}()
	eventually.True(t, "a summary", func() bool { return !w.k.Loop.Resting(summary) })
	for _, id := range []string{turn, summary} {
		for _, how := range []string{"archive", "reset", "close", "undo"} {
			w.refused("POST", "/v1/sessions/"+id+"/"+how, "", 409, "busy")
		}
		w.refused("DELETE", "/v1/sessions/"+id, "", 409, "busy")
		w.must("POST", "/v1/sessions/"+id+"/cancel", "", 202)
		w.idle(id)
	}
	if got := <-over; !strings.Contains(got, "canceled") {
		t.Errorf("the summary ends with %s, want it canceled", got)
	}
	w.must("POST", "/v1/sessions/"+turn+"/close", "", 200)
	w.must("POST", "/v1/sessions/"+turn+"/reset", "", 200)
	for _, id := range []string{turn, summary} {
		if status, body, _ := w.raw("POST", "/v1/sessions/"+id+"/archive", ""); status != 204 {
			t.Errorf("archive of a session at rest = %d %s, want 204", status, body)
		}
	}
}

// S-13: archiving and deleting a session, even one whose turn has just ended, is nothing to warn of.
func TestSessionsGoWithoutAWarning(t *testing.T) {
	var log syncedLog
	w := newWorld(t, "", func(cfg *sessions.Config) { cfg.Log = zerolog.New(&log).Level(zerolog.WarnLevel) })
	for n := range 10 {
		id := w.create()
		f := w.follow(id, "")
		w.say(id, "hello")
		f.until("turn_completed")
		method, how, status := "POST", "/archive", 204
		if n%2 == 0 {
			method, how = "DELETE", ""
		}
		if got, body, _ := w.raw(method, "/v1/sessions/"+id+how, ""); got != status {
			t.Errorf("%s %s = %d %s, want %d", method, how, got, body, status)
		}
	}
	w.stop()
	if got := log.String(); got != "" {
		t.Errorf("the log has %s, want nothing", got)
	}
}

// S-13, REL-1: a message that was accepted is not archived, reset or closed away before its turn, and
// one that comes at the same time is either first, or refused.
func TestAMessageIsFirstOrRefused(t *testing.T) {
	var w *world
	w = newWorld(t, sums(), func(cfg *sessions.Config) {
		cfg.Closed = func(id string) {
			w.refused("POST", "/v1/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"slow"}]}`, 409, "session_completed")
		}
	})
	for how, done := range map[string]int{"archive": 204, "reset": 200, "close": 200} {
		for range 15 {
			id := w.create()
			at := "/v1/sessions/" + id + "/"
			w.say(id, "slow")
			w.refused("POST", at+how, "", 409, "busy")
			w.must("POST", at+"cancel", "", 202)
			w.idle(id)
			if how == "reset" { // then the message begins the new history
				continue
			}
			var taken, said int
			var both sync.WaitGroup
			both.Go(func() { taken, _, _ = w.raw("POST", at+how, "") })
			both.Go(func() {
				said, _, _ = w.raw("POST", at+"messages", `{"role":"user","parts":[{"type":"text","text":"slow"}]}`)
			})
			both.Wait()
			if (taken == done) == (said == 202) {
				t.Errorf("%s at the same time as a message: %d, and the message %d; want one of them refused", how, taken, said)
			}
			if said == 202 {
				w.must("POST", at+"cancel", "", 202)
				w.idle(id)
			}
		}
	}
}

// S-13: a message that was accepted before its session was closed gets the same answer when it is sent again.
func TestAMessageAgainAfterClose(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	at := "/v1/sessions/" + id + "/messages"
	const hello = `{"id":"m1","role":"user","parts":[{"type":"text","text":"hello"}]}`
	_, first, _ := w.raw("POST", at, hello)
	w.idle(id)
	w.must("POST", "/v1/sessions/"+id+"/close", "", 200)
	if status, again, header := w.raw("POST", at, hello); status != 202 || string(again) != string(first) || header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("sent again: %d %s, want 202 %s, as one that was posted before", status, again, first)
	}
	w.refused("POST", at, strings.Replace(hello, "hello", "other", 1), 409, "idempotency_conflict")
	w.refused("POST", at, strings.Replace(hello, "m1", "m2", 1), 409, "session_completed")
}

// syncedLog is a log that several goroutines write.
type syncedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *syncedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *syncedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
