package daemon

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/tool"
)

func taskOf(principal, session string) tool.Call {
	return tool.Call{SessionID: session, Caller: tool.Caller{Principal: principal}}
}

// MIS-6, R32: places are bounded for a client's session, for a principal, and in all; whoever has
// none takes none from others, and a place that is given back is free.
func TestTaskPlaces(t *testing.T) {
	x := newTasks()
	var held []func()
	take := func(principal, session string) error {
		release, err := x.take(taskOf(principal, session))
		if err == nil {
			held = append(held, release)
		}
		return err
	}
	for i := range maxTasksClient {
		if err := take("a", "one"); err != nil {
			t.Fatalf("place %d of a client: %v, want no error", i, err)
		}
	}
	if take("a", "one") == nil {
		t.Errorf("a client has more than %d places", maxTasksClient)
	}
	for i := range maxTasksOf - maxTasksClient {
		if err := take("a", fmt.Sprint("more", i)); err != nil {
			t.Fatalf("place of another client: %v, want no error", err)
		}
	}
	if take("a", "another") == nil {
		t.Errorf("a principal has more than %d places", maxTasksOf)
	}
	for i := len(held); i < maxTasks; i++ {
		if err := take(fmt.Sprint("b", i), "s"+fmt.Sprint(i)); err != nil {
			t.Fatalf("place %d of all: %v, want no error", i, err)
		}
	}
	if take("c", "c") == nil {
		t.Errorf("there are more than %d places", maxTasks)
	}
	for _, release := range held {
		release()
	}
	if x.all != 0 || len(x.of) != 0 || len(x.client) != 0 {
		t.Errorf("%d places are held by %v and %v, want none", x.all, x.of, x.client)
	}
}

// MIS-6: a session works on one task; its sub-agents work on the same, and a line that nobody
// takes is dropped.
func TestTaskOfASession(t *testing.T) {
	x := newTasks()
	work, end, ok := x.begin("sess_1", taskOf("a", "one"))
	if !ok || x.at("sess_1::agent::0a0b0c0d") != work || x.at("sess_2") != nil {
		t.Fatalf("begin = %v, %v; want the task for the session and its sub-agents", work, ok)
	}
	if _, _, ok := x.begin("sess_1", taskOf("a", "one")); ok {
		t.Error("a second task began")
	}
	for i := range 2 * maxLines {
		x.say("sess_1", fmt.Sprint(i))
	}
	if len(work.lines) != maxLines || <-work.lines != "0" {
		t.Errorf("%d lines wait, want the first %d", len(work.lines), maxLines)
	}
	end()
	if x.say("sess_1", "late"); x.at("sess_1") != nil {
		t.Error("the session works on after the end")
	}
}

// R32: a principal begins so many sessions at once, and then one in a while; others are not held up.
func TestTaskSessionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTaskTool(nil, nil)
		for i := range taskBurst {
			if !x.limiter("a").Allow() {
				t.Fatalf("session %d is refused", i)
			}
		}
		if x.limiter("a").Allow() {
			t.Errorf("more than %d sessions at once", taskBurst)
		}
		if !x.limiter("b").Allow() {
			t.Error("another principal is refused")
		}
		time.Sleep(taskEach)
		if !x.limiter("a").Allow() || x.limiter("a").Allow() {
			t.Errorf("want one more session after %v", taskEach)
		}
		for i := range 2 * maxTaskRaters { // none has used up anything: they are let go
			x.limiter(fmt.Sprint("p", i))
		}
		if len(x.rates) > maxTaskRaters+2 || x.rates["a"] == nil {
			t.Errorf("%d principals are kept, and the one that is limited: %v", len(x.rates), x.rates["a"] != nil)
		}
	})
}
