package follow_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/gateway/follow"
	"github.com/yaya-ai/yaya/kernel/session"
)

// One reader feeds all clients, and ends some time after the last of them has left.
func TestLinger(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *world, v *view)
		want []string
	}{
		{"the last client has left", func(_ *world, v *view) {
			v.Leave()
			time.Sleep(linger)
		}, []string{"open 1", "close 1 lost=false"}},
		{"just before", func(_ *world, v *view) {
			v.Leave()
			time.Sleep(linger - time.Nanosecond)
		}, []string{"open 1"}},
		{"a client comes back in time", func(w *world, v *view) {
			v.Leave()
			time.Sleep(linger - time.Nanosecond)
			w.join("s")
			time.Sleep(time.Hour)
		}, []string{"open 1"}},
		{"the time starts again", func(w *world, v *view) {
			v.Leave()
			time.Sleep(linger - time.Nanosecond)
			w.join("s").Leave()
			time.Sleep(linger - time.Nanosecond)
		}, []string{"open 1"}},
		{"another client is still there", func(w *world, v *view) {
			w.join("s")
			v.Leave()
			time.Sleep(time.Hour) // its heartbeats keep the session from taking it for dead
		}, []string{"open 1"}},
		{"a client comes too late", func(w *world, v *view) {
			v.Leave()
			time.Sleep(linger + time.Nanosecond)
			w.join("s")
		}, []string{"open 1", "close 1 lost=false", "open 2"}},
		{"busy", func(_ *world, v *view) {
			v.Busy(true)
			v.Leave()
			time.Sleep(time.Hour)
		}, []string{"open 1"}},
		{"no longer busy", func(_ *world, v *view) {
			v.Busy(true)
			v.Leave()
			time.Sleep(linger + time.Nanosecond)
			v.Busy(false)
			time.Sleep(linger)
		}, []string{"open 1", "close 1 lost=false"}},
		{"kept", func(w *world, v *view) {
			v.Leave()
			for range 10 {
				time.Sleep(linger - time.Nanosecond)
				if !w.set.Keep("s") {
					w.t.Error("Keep = false, want true")
				}
			}
		}, []string{"open 1"}},
		{"kept while it is held", func(w *world, v *view) {
			w.set.Keep("s")
			time.Sleep(time.Hour)
			v.Leave()
			time.Sleep(linger - time.Nanosecond)
		}, []string{"open 1"}},
		{"finished by the only client", func(_ *world, v *view) { v.Finish() }, []string{"open 1", "close 1 lost=false"}},
		{"finished by one of two", func(w *world, v *view) {
			w.join("s")
			v.Finish()
			time.Sleep(time.Hour)
		}, []string{"open 1"}},
		{"finished while busy", func(_ *world, v *view) {
			v.Busy(true)
			v.Finish()
			time.Sleep(linger - time.Nanosecond)
			v.Busy(false)
			time.Sleep(time.Nanosecond)
		}, []string{"open 1", "close 1 lost=false"}},
		{"ended whoever holds it", func(w *world, _ *view) { w.set.End("s") }, []string{"open 1", "close 1 lost=false"}},
		{"dropped by the session", func(w *world, _ *view) {
			if _, err := w.Archive("s", ""); err != nil {
				w.t.Errorf("Archive = %v, want no error", err)
			}
		}, []string{"open 1", "close 1 lost=true"}},
	} {
		each(t, tt.name, func(t *testing.T, w *world) {
			v := w.join("s")
			tt.do(w, v)
			w.happened(tt.want...)
			followed := tt.want[len(tt.want)-1][:4] == "open"
			if _, ok := w.set.Get("s"); ok != followed {
				t.Errorf("Get: %t, want %t", ok, followed)
			}
			if got := w.set.Keep("s"); got != followed {
				t.Errorf("Keep = %t, want %t", got, followed)
			}
		})
	}
}

// COD-3: a caller that joins while a follower ends gets the next one, which starts when the one
// before is gone: nobody is joined to a follower that is about to end.
func TestJoinDuringEnd(t *testing.T) {
	for name, end := range map[string]func(w *world, v *view){
		"it has lingered": func(_ *world, v *view) {
			v.Leave()
			time.Sleep(linger)
		},
		"it is finished": func(_ *world, v *view) { go v.Finish() },
		"it is ended": func(w *world, v *view) {
			w.set.End("s")
			v.Leave()
		},
	} {
		each(t, name, func(t *testing.T, w *world) {
			dropping := make(chan struct{})
			release := sync.OnceFunc(func() { close(dropping) })
			defer release()
			w.drop = func() { <-dropping }
			end(w, w.join("s"))
			synctest.Wait()
			if w.set.Keep("s") {
				t.Error("Keep = true for a follower that ends, want false")
			}
			first, second := w.joins(t.Context(), "s"), w.joins(t.Context(), "s")
			impatient, cancel := context.WithCancel(t.Context())
			third := w.joins(impatient, "s")
			w.waits(first)
			w.waits(second)
			cancel()
			if got := <-third; !errors.Is(got.err, context.Canceled) {
				t.Errorf("Join of a client that went = %v, want context.Canceled", got.err)
			}
			w.happened("open 1")
			w.drop = nil
			release()
			a, b := <-first, <-second
			if a.err != nil || b.err != nil || a.v != b.v {
				t.Fatalf("Join = %v, %v and %v, %v; want the same view", a.v, a.err, b.v, b.err)
			}
			w.say("s", "hello")
			time.Sleep(time.Hour)
			w.happened("open 1", "close 1 lost=false", "open 2", "take 2: 2", "flush 2")
		})
	}
}

// COD-3: the same when it is the session that lets go, from that moment on.
func TestJoinWhenTheSessionHasLetGo(t *testing.T) {
	each(t, "before the follower knows", func(t *testing.T, w *world) {
		beating := make(chan struct{})
		release := sync.OnceFunc(func() { close(beating) })
		defer release()
		w.beat = func() { <-beating }
		v := w.join("s")
		time.Sleep(time.Minute / 2) // now the follower is in its first heartbeat
		w.take = func(it session.Item) error {
			if it.Entry.Kind == session.KindMessage {
				return errBroken
			}
			return nil
		}
		w.say("s", "hello")
		synctest.Wait()
		next := w.joins(t.Context(), "s")
		w.waits(next)
		w.happened("open 1")
		release()
		got := <-next
		if got.err != nil || got.v == v {
			t.Errorf("Join = %v, %v; want another view", got.v, got.err)
		}
		w.happened("open 1", "close 1 lost=true", "open 2")
	})
}

var errBroken = errors.New("broken")

// A follower that cannot start is an error to all who wait for it; the next tries again.
func TestFailingStart(t *testing.T) {
	for _, tt := range []struct {
		name string
		fail func(w *world, start func() error)
		want error
		log  []string
	}{
		{"opening", func(w *world, start func() error) { w.open = start }, errBroken, []string{"open 1"}},
		{"attaching", func(w *world, start func() error) { w.attach = start }, errBroken, []string{"open 1", "close 1 lost=false"}},
		{"catching up", func(w *world, start func() error) { w.take = func(session.Item) error { return start() } }, follow.ErrEnded, []string{"open 1", "close 1 lost=true"}},
	} {
		each(t, tt.name, func(t *testing.T, w *world) {
			failing := make(chan struct{})
			release := sync.OnceFunc(func() { close(failing) })
			defer release()
			tt.fail(w, func() error {
				<-failing
				return errBroken
			})
			first, second := w.joins(t.Context(), "s"), w.joins(t.Context(), "s")
			w.waits(first)
			w.waits(second)
			release()
			for _, got := range []joined{<-first, <-second} {
				if !errors.Is(got.err, tt.want) || !errors.Is(got.err, errBroken) {
					t.Errorf("Join = %v, want %v of %v", got.err, tt.want, errBroken)
				}
			}
			w.open, w.attach, w.take = nil, nil, nil
			w.join("s")
			w.happened(append(tt.log, "open 2")...)
		})
	}
}

// A client that goes while the follower starts leaves it to others.
func TestClientGoesDuringStart(t *testing.T) {
	each(t, "one of two", func(t *testing.T, w *world) {
		attaching := make(chan struct{})
		release := sync.OnceFunc(func() { close(attaching) })
		defer release()
		w.attach = func() error {
			<-attaching
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := w.joins(ctx, "s"), w.joins(t.Context(), "s")
		w.waits(gone)
		cancel()
		if got := <-gone; !errors.Is(got.err, context.Canceled) {
			t.Errorf("Join = %v, want context.Canceled", got.err)
		}
		w.waits(stays)
		release()
		got := <-stays
		if got.err != nil {
			t.Fatalf("Join = %v, want nil", got.err)
		}
		time.Sleep(time.Hour)
		w.happened("open 1")
		got.v.Leave()
		time.Sleep(linger)
		w.happened("open 1", "close 1 lost=false")
	})
}

// A projection that is slow, because its disk is, delays its own session alone, and loses
// nothing. That a client is slow is for the surface to see: nothing of it comes here.
func TestSlowProjection(t *testing.T) {
	each(t, "in one session of two", func(t *testing.T, w *world) {
		taken, slow := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(slow) })
		defer release()
		v := w.join("s")
		w.take = func(it session.Item) error {
			if it.Entry.ID == 2 && it.Event.SessionID == "s" {
				close(taken)
				<-slow
			}
			return nil
		}
		w.say("s", "first")
		<-taken
		other := w.join("other")
		w.say("other", "hello")
		if again := w.join("s"); again != v {
			t.Error("Join of the slow session returned another view, want the same")
		}
		w.say("s", "second")
		v.Leave()
		w.happened("open 1", "open 2", "take 2: 2")
		other.Leave()
		time.Sleep(time.Hour) // far longer than a session waits for a reader that is silent
		release()
		time.Sleep(delay)
		w.happened("open 1", "open 2", "take 2: 2", "flush 2", "close 2 lost=false", "take 1: 2", "take 1: 3", "flush 1")
	})
}

// COD-3: a follower whose time is over while its projection takes something holds up
// nobody else: the set does not wait for it.
func TestTimeIsOverDuringTake(t *testing.T) {
	each(t, "while another session is joined", func(_ *testing.T, w *world) {
		taken, slow := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(slow) })
		defer release()
		v := w.join("s")
		w.take = func(it session.Item) error {
			if it.Entry.Kind == session.KindMessage {
				close(taken)
				<-slow
			}
			return nil
		}
		w.say("s", "hello")
		<-taken
		v.Leave()
		time.Sleep(linger)
		w.join("other")
		w.happened("open 1", "open 2")
		release()
		w.happened("open 1", "open 2", "take 1: 2", "close 1 lost=false")
	})
}

// A deferred flush happens once for everything that came in that time, and never after the end.
func TestLater(t *testing.T) {
	each(t, "gathered", func(_ *testing.T, w *world) {
		w.join("s")
		w.say("s", "one")
		time.Sleep(delay - time.Nanosecond)
		w.say("s", "two")
		w.happened("open 1", "take 1: 2", "take 1: 3")
		time.Sleep(time.Nanosecond)
		w.happened("open 1", "take 1: 2", "take 1: 3", "flush 1")
		time.Sleep(time.Hour)
		w.say("s", "three")
		time.Sleep(delay)
		w.happened("open 1", "take 1: 2", "take 1: 3", "flush 1", "take 1: 4", "flush 1")
	})
	each(t, "not after the end", func(_ *testing.T, w *world) {
		v := w.join("s")
		w.say("s", "one")
		w.happened("open 1", "take 1: 2")
		v.Finish()
		v.Lock()
		v.Later(delay)
		v.Unlock()
		time.Sleep(time.Hour)
		w.happened("open 1", "take 1: 2", "close 1 lost=false")
	})
}

// A session that was reset goes on in the same follower, for those who are there and for
// those who come.
func TestReset(t *testing.T) {
	each(t, "while it is followed", func(t *testing.T, w *world) {
		v := w.join("s")
		w.say("s", "before")
		w.happened("open 1", "take 1: 2")
		if _, err := w.session("s").Reset(false); err != nil {
			t.Fatal(err)
		}
		w.happened("open 1", "take 1: 2", "resync 1: epoch")
		if again := w.join("s"); again != v {
			t.Error("Join after a reset returned another view, want the same")
		}
		w.say("s", "after")
		time.Sleep(delay)
		w.happened("open 1", "take 1: 2", "resync 1: epoch", "take 1: 2", "flush 1")
	})
}

// An ask waits for an answer while somebody is there who may give one.
func TestWatch(t *testing.T) {
	each(t, "clients", func(t *testing.T, w *world) {
		v, s := w.join("s"), w.session("s")
		answerable := func(when string, want bool) {
			t.Helper()
			if got := s.Answerable(); got != want {
				t.Errorf("Answerable() = %t %s, want %t", got, when, want)
			}
		}
		answerable("when nobody watches", false)
		may := false
		leaveFirst := v.Watch(func() bool { return may })
		answerable("for a client that may not", false)
		may = true
		answerable("for a client that may now", true)
		leaveSecond := v.Watch(func() bool { return true })
		leaveFirst()
		answerable("for the second client", true)
		leaveSecond()
		answerable("when all have left", false)
	})
	each(t, "the projection's own", func(t *testing.T, w *world) {
		own := true
		w.asks = func() bool { return own }
		v, s := w.join("s"), w.session("s")
		if !s.Answerable() {
			t.Error("Answerable() = false, want true: the projection says so")
		}
		own = false
		if s.Answerable() {
			t.Error("Answerable() = true, want false: nobody is there")
		}
		defer v.Watch(func() bool { return true })()
		if !s.Answerable() {
			t.Error("Answerable() = false, want true: a client is there")
		}
	})
}

// Close ends every follower, whoever holds it, waits for it, and rejects new joins.
func TestClose(t *testing.T) {
	closed := func(t *testing.T, w *world) {
		t.Helper()
		if _, err := w.set.Join(t.Context(), "s"); !errors.Is(err, follow.ErrClosed) {
			t.Errorf("Join after Close = %v, want ErrClosed", err)
		}
	}
	each(t, "with clients", func(t *testing.T, w *world) {
		w.join("s")
		w.say("s", "hello")
		synctest.Wait()
		w.set.Close()
		w.happened("open 1", "take 1: 2", "close 1 lost=false")
		closed(t, w)
	})
	each(t, "while it lingers", func(t *testing.T, w *world) {
		v := w.join("s")
		v.Leave()
		w.set.Close()
		w.set.Close()
		w.happened("open 1", "close 1 lost=false")
		closed(t, w)
	})
	each(t, "while it starts", func(t *testing.T, w *world) {
		attaching := make(chan struct{})
		release := sync.OnceFunc(func() { close(attaching) })
		defer release()
		w.attach = func() error {
			<-attaching
			return nil
		}
		w.take = func(session.Item) error { return errBroken } // it does not catch up
		first := w.joins(t.Context(), "s")
		w.waits(first)
		done := make(chan struct{})
		go func() {
			w.set.Close()
			close(done)
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Close has returned while a follower starts, want that it waits")
		default:
		}
		closed(t, w)
		release()
		<-done
		if got := <-first; !errors.Is(got.err, follow.ErrClosed) {
			t.Errorf("Join = %v, want ErrClosed", got.err)
		}
		w.happened("open 1", "close 1 lost=false")
	})
	each(t, "with nobody", func(t *testing.T, w *world) {
		w.set.Close()
		w.set.End("s")
		closed(t, w)
	})
}
