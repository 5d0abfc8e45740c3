package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// A session ends with the servers of its sub-agents. A call that waits for such a server fails, because
// nobody would end the one that it starts.
func TestServersEndWithTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := langservers{all: map[serverKey]*langserver{}}
		own, deep, other := serverKey{session: "s"}, serverKey{session: "s" + event.AgentSeparator + "a"}, serverKey{session: "s2"}
		var releases []func()
		for _, key := range []serverKey{own, deep, other} {
			_, release, err := l.use(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			releases = append(releases, release)
		}
		waiting := make(chan error, 1)
		go func() {
			_, _, err := l.use(t.Context(), own)
			waiting <- err
		}()
		synctest.Wait()
		l.endOf("s")
		if l.all[own] != nil || l.all[deep] != nil || l.all[other] == nil {
			t.Errorf("the servers are %v, want that of s2 alone", l.all)
		}
		for _, release := range releases {
			release()
		}
		if err := <-waiting; err == nil {
			t.Error("a call got the server of a session that has ended")
		}
		_, release, err := l.use(t.Context(), own)
		if err != nil {
			t.Fatal(err)
		}
		release()
		l.close()
	})
}

// A server that nobody asks ends after a while, counted from the end of the last call.
func TestIdleServersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := langservers{all: map[serverKey]*langserver{}}
		key := serverKey{session: "s"}
		runs := func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.all[key] != nil
		}
		_, release, err := l.use(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * serverIdle)
		release()
		time.Sleep(serverIdle - time.Second)
		if !runs() {
			t.Error("a server ended too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if runs() {
			t.Error("a server that nobody asks goes on")
		}
		l.close()
	})
}
