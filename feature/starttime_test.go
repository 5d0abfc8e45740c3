package feature_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
)

// computing is a provider whose start takes its time, and computes for a part of it.
type computing struct {
	mock
	begun           time.Time
	takes, computes time.Duration
	limit           time.Duration
}

func (p *computing) Info() feature.Info {
	return feature.Info{ID: "srv", StartTimeout: p.limit}
}

func (p *computing) Worked() time.Duration { return min(time.Since(p.begun), p.computes) / 20 }

func (p *computing) Start(ctx context.Context, _ feature.Signals) error {
	select {
	case <-time.After(p.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A server gets a small part of a busy machine: its start is not over as long as it
// computes, unless its configuration has a limit, or it never ends.
func TestStartsThatCompute(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    *computing
		end  time.Duration
		want string // the error; none for ready
	}{
		{"to the end", &computing{takes: 90 * time.Second, computes: 80 * time.Second}, 90 * time.Second, ""},
		{"not at all", &computing{takes: time.Hour}, 20 * time.Second, "not ready within 20s"},
		{"and then hangs", &computing{takes: time.Hour, computes: 60 * time.Second}, 80 * time.Second, "not ready after 1m20s, and it did nothing for the last 20s"},
		{"forever", &computing{takes: time.Hour, computes: time.Hour}, 5 * time.Minute, "not ready within 5m0s"},
		{"beyond the limit that is set", &computing{takes: time.Hour, computes: time.Hour, limit: 30 * time.Second}, 30 * time.Second, "not ready within 30s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, allow{})
				tc.p.begun = time.Now()
				r.install(t, tc.p)
				time.Sleep(tc.end - time.Second)
				synctest.Wait()
				if st := r.host.Status()[0]; st.State != feature.Starting || st.LastError != "" {
					t.Errorf("a second before: %s %q, want starting", st.State, st.LastError)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				st := r.host.Status()[0]
				switch {
				case tc.want == "" && (st.State != feature.Ready || st.Restarts != 0):
					t.Errorf("after %v: %s %q with %d restarts, want ready at the first start", tc.end, st.State, st.LastError, st.Restarts)
				case tc.want != "" && (st.State != feature.Failed || st.Reason != tc.want):
					t.Errorf("after %v: %s %q, want failed %q", tc.end, st.State, st.Reason, tc.want)
				}
			})
		})
	}
}
