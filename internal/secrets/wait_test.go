package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/hosttest"
)

// A change that waits for the passphrase holds up no look-up.
func TestLookUpsDoNotWaitForAPassphrase(t *testing.T) {
	p := newPlace(t)
	p.set("x", canary)
	p.o.Learn = nil
	p.o.Passphrase = filepath.Join(t.TempDir(), "pipe")
	hosttest.Pipe(t, p.o.Passphrase)
	s := p.store()
	changed := make(chan error, 1)
	go func() {
		_, err := s.Set("y", "another-value")
		changed <- err
	}()
	var pipe *os.File
	eventually.True(t, "the passphrase is read", func() (open bool) {
		var err error
		pipe, err = os.OpenFile(p.o.Passphrase, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	if got, err := s.Get("x"); err != nil || got != canary {
		t.Errorf("Get = %q, %v, want %q", got, err, canary)
	}
	select {
	case err := <-changed:
		t.Errorf("Get waited for Set, which ended with %v", err)
		return
	default:
	}
	_, err := pipe.WriteString("correct horse battery\n")
	p.must(errors.Join(err, pipe.Close()))
	if err := <-changed; err != nil {
		t.Errorf("Set = %v", err)
	}
	if kind, err := s.Kind(); err != nil || kind != "the passphrase" {
		t.Errorf("Kind = %q, %v, want the passphrase", kind, err)
	}
}

// hanging is a keychain that answers when it is let to.
type hanging struct {
	fake

	asked, answer chan struct{}
}

func newHanging() *hanging {
	return &hanging{fake{m: map[string]string{}}, make(chan struct{}, 100), make(chan struct{})}
}

// hangs returns a store of the place as in a new process, whose keychain has the
// content of another one, and does not answer yet.
func (p *place) hangs(has *hanging) (*Store, *hanging) {
	k := newHanging()
	k.m = has.m
	q := *p
	q.o.Keychain = k
	return q.store(), k
}

func (k *hanging) wait(ctx context.Context) error {
	k.asked <- struct{}{}
	select {
	case <-k.answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (k *hanging) Get(ctx context.Context, account string) (string, error) {
	if err := k.wait(ctx); err != nil {
		return "", err
	}
	return k.fake.Get(ctx, account)
}

func (k *hanging) Set(ctx context.Context, account, value string) error {
	if err := k.wait(ctx); err != nil {
		return err
	}
	return k.fake.Set(ctx, account, value)
}

// A change that waits for a keychain holds up no look-up, and those that need the key wait
// for one question.
func TestLookUpsDoNotWaitForAKeychain(t *testing.T) {
	p := newPlace(t)
	k := newHanging()
	p.o.Keychain, p.o.Learn = k, nil
	s := p.store()
	changed := make(chan error, 1)
	go func() {
		_, err := s.Set("x", canary)
		changed <- err
	}()
	<-k.asked
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Errorf("List = %v, %v, want nothing", all, err)
	}
	if _, err := s.Get("x"); !errors.Is(err, ErrNone) {
		t.Errorf("Get = %v, want %v", err, ErrNone)
	}
	close(k.answer)
	if err := <-changed; err != nil {
		t.Fatalf("Set = %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, again := p.hangs(k)
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				if got, err := s.Get("x"); err != nil || got != canary {
					t.Errorf("Get = %q, %v, want %q", got, err, canary)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Load(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Load = %v, want that it ends with its context", err)
		}
		close(again.answer)
		work.Wait()
		if n := len(again.asked); n != 1 {
			t.Errorf("the keychain was asked %d times, want once", n)
		}
	})
}

// Each caller waits for the key until its own context ends, whoever asked first; when
// nobody waits, the request ends.
func TestEachWaitsForItself(t *testing.T) {
	p := newPlace(t)
	k := newHanging()
	close(k.answer)
	p.o.Keychain, p.o.Learn = k, nil
	p.set("x", canary)
	synctest.Test(t, func(t *testing.T) {
		s, again := p.hangs(k)
		short := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := s.Load(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Load = %v, want that it ends with its context", err)
			}
		}
		short()
		synctest.Wait()
		if len(s.fetching) != 0 {
			t.Error("the key is fetched, and nobody waits for it")
		}
		var work sync.WaitGroup
		work.Go(short)
		synctest.Wait()
		work.Go(func() {
			if got, err := s.Get("x"); err != nil || got != canary {
				t.Errorf("Get = %q, %v, want %q", got, err, canary)
			}
		})
		time.Sleep(time.Second) // the first has given up
		close(again.answer)
		work.Wait()
		if n := len(again.asked); n != 2 {
			t.Errorf("the keychain was asked %d times, want twice: nobody waited for the first answer", n)
		}
	})
}

// A lock that is never let go of ends a change with an error that names it.
func TestLockIsNotWaitedForForEver(t *testing.T) {
	p := newPlace(t)
	p.set("x", canary)
	p.o.Learn = nil
	path := filepath.Join(p.data, lockFile)
	lock, err := os.OpenFile(path, os.O_RDWR, 0)
	p.must(err)
	p.must(hostfile.Lock(lock))
	synctest.Test(t, func(t *testing.T) {
		s := p.store()
		begun := time.Now()
		_, err := s.Set("y", "another-value")
		if err == nil || !strings.Contains(err.Error(), path) || time.Since(begun) != lockPatience {
			t.Errorf("Set = %v after %v, want an error that names %s after %v", err, time.Since(begun), path, lockPatience)
		}
		changed := make(chan error, 1)
		go func() {
			_, err := s.Set("y", "another-value")
			changed <- err
		}()
		synctest.Wait()
		if got, err := s.Get("x"); err != nil || got != canary {
			t.Errorf("Get = %q, %v, want %q", got, err, canary)
		}
		p.must(lock.Close())
		if err := <-changed; err != nil {
			t.Errorf("Set after the lock was let go of = %v", err)
		}
	})
}

// All values are learnt at once, because each call rebuilds the finder.
func TestOneLesson(t *testing.T) {
	p := newPlace(t)
	d := newDocument()
	for i := range maxSecrets {
		d.Secrets[fmt.Sprintf("n%d", i)] = secret{Value: fmt.Sprintf("the value %d", i)}
	}
	s := p.store()
	p.set("x", canary)
	_, h, err := s.current(t.Context())
	p.must(err)
	key, err := s.keyOf(t.Context(), *h)
	p.must(err)
	p.must(s.replace(d, *h, key))
	p.learnt, p.lessons = nil, 0
	if _, err := p.store().Get("n7"); err != nil {
		t.Fatal(err)
	}
	if p.lessons != 1 || len(p.learnt) != maxSecrets {
		t.Errorf("%d values were learnt in %d lessons, want %d in one", len(p.learnt), p.lessons, maxSecrets)
	}
}
