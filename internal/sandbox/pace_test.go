package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One sandbox's proxy answers a burst at once, and spreads later requests.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name     string
		host     string // where the requests want to go
		requests int
		want     time.Duration // until the last has its answer
		told     int
	}{
		{"64 connections at once", "no host", 64, 0, 0},
		{"a burst of connections", "no host", 512, 0, 0},
		{"a flood of connections", "no host", 712, time.Second, 0},
		{"a few refused hosts", "evil.example:443", 64, 0, 64},
		{"a flood of refused hosts", "evil.example:443", 84, time.Second, 84},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pt := &proxyTest{}
				p := newProxy(Net{Mode: Hosts, Denied: pt.denied})
				begun := time.Now()
				var work sync.WaitGroup
				for range c.requests / 4 {
					work.Go(func() {
						for range 4 {
							w := httptest.NewRecorder()
							p.ServeHTTP(w, &http.Request{Method: http.MethodConnect, Host: c.host})
							if w.Code != http.StatusForbidden {
								t.Errorf("answer %d, want 403", w.Code)
							}
						}
					})
				}
				work.Wait()
				if took := time.Since(begun); took != c.want || len(pt.denials) != c.told {
					t.Errorf("took %v, and %d denials were reported; want %v, %d", took, len(pt.denials), c.want, c.told)
				}
			})
		})
	}
}

// A waiting event is released when the sandbox ends.
func TestPaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{every: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		p.wait(ctx)
		if took := fmt.Sprint(time.Since(begun)); took != "1s" {
			t.Errorf("waited %s, want 1s", took)
		}
	})
}
