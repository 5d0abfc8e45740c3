package feature_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
)

// installer is a provider whose start takes its time and says how it goes, or that
// never answers a list.
type installer struct {
	mock
	takes      time.Duration
	listsNever bool
	starts     atomic.Int32
}

func (*installer) Info() feature.Info {
	return feature.Info{ID: "srv", InstallTimeout: 10 * time.Minute}
}

func (p *installer) Start(ctx context.Context, s feature.Signals) error {
	p.starts.Add(1)
	s.Installing("fetching left-pad")
	select {
	case <-time.After(p.takes / 2):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.Installing("unpacking left-pad")
	select {
	case <-time.After(p.takes / 2):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *installer) Discover(ctx context.Context) ([]feature.Tool, []string, error) {
	if p.listsNever {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return p.mock.Discover(ctx)
}

// FID-9: a start that fetches has ten minutes, whoever asks for it meanwhile, and says
// how far it is; the call that cannot wait so long says so.
func TestInstalling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &installer{mock: mock{tools: []*mockTool{newTool("a")}}, takes: 9 * time.Minute}
		r.install(t, p)
		begun := time.Now()
		synctest.Wait()
		for _, want := range []string{"fetching left-pad", "unpacking left-pad"} {
			st := r.host.Status()[0]
			if st.State != feature.Installing || st.Reason != want || !st.Since.Equal(begun) {
				t.Errorf("status %s %q since %v, want installing %q since the start", st.State, st.Reason, st.Since.Sub(begun), want)
			}
			err := r.host.Do(t.Context(), "srv", func() error { return nil })
			if err == nil || !strings.Contains(err.Error(), `server "srv" is still installing; call again when it is ready (it last said: `+want+")") || strings.Contains(err.Error(), "context deadline") {
				t.Errorf("a call meanwhile: %v", err)
			}
			r.host.Boundary(t.Context())
			time.Sleep(5 * time.Minute)
			synctest.Wait()
		}
		if st := r.host.Status()[0]; st.State != feature.Ready || st.Reason != "" || st.Restarts != 0 || p.starts.Load() != 1 {
			t.Errorf("after 10 minutes: %+v, %d starts; want ready after one start", st, p.starts.Load())
		}
		if err := r.host.Do(t.Context(), "srv", func() error { return nil }); err != nil {
			t.Errorf("a call: %v", err)
		}
	})
}

// FID-9: the ten minutes are a limit, and those of the installation alone.
func TestInstallingEnds(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    *installer
		fail time.Duration
		want string
	}{
		{"never there", &installer{takes: time.Hour}, 10 * time.Minute, "not ready within 10m0s"},
		{"there, and silent", &installer{takes: time.Minute, listsNever: true}, time.Minute + 20*time.Second, "not ready within 20s: list tools"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, allow{})
				r.install(t, tc.p)
				time.Sleep(tc.fail - time.Second)
				synctest.Wait()
				if st := r.host.Status()[0]; st.State.Usable() || st.LastError != "" {
					t.Errorf("a second before: %s %s", st.State, st.LastError)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if st := r.host.Status()[0]; st.State != feature.Failed || !strings.Contains(st.Reason, tc.want) || strings.Contains(st.Reason, "context deadline") {
					t.Errorf("after %v: %s %q, want failed %q", tc.fail, st.State, st.Reason, tc.want)
				}
			})
		})
	}
}

// USE-10: a provider whose names are all taken offers no tools, and does not say that
// it does.
func TestToolsThatAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		r.install(t, &bare{mock{id: "first", tools: []*mockTool{newTool("a"), newTool("b")}}})
		synctest.Wait()
		r.install(t, &bare{mock{id: "second", tools: []*mockTool{newTool("a"), newTool("b"), newTool("c")}}})
		synctest.Wait()
		st := r.host.Status()
		if st[0].Tools != 2 || st[1].Tools != 1 || st[1].State != feature.Degraded {
			t.Errorf("first has %d tools, second %d and is %s; want 2, 1 and degraded", st[0].Tools, st[1].Tools, st[1].State)
		}
	})
}

type bare struct{ mock }

func (b *bare) Info() feature.Info { return feature.Info{ID: b.id, Bare: true} }
