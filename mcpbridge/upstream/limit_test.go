package upstream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FID-5: progress extends a call for as long as it comes, and what ends it says the
// true figure and where to change it.
func TestLimit(t *testing.T) {
	const minute = time.Minute
	for name, tc := range map[string]struct {
		times
		progress []time.Duration // since the one before
		pause    time.Duration   // after them
		ends     time.Duration   // 0: it does not, for an hour of progress
		want     string
	}{
		"nothing comes":                  {times: times{silent: minute, silentSetting: "tool_timeout_sec"}, ends: minute, want: "did not answer within 1m0s; raise tool_timeout_sec"},
		"thirteen minutes of progress":   {times: times{silent: minute, silentSetting: "tool_timeout_sec"}, progress: every(50*time.Second, 16), ends: 800*time.Second + minute, want: "reported no progress for 1m0s, after 14m20s in total; raise tool_timeout_sec"},
		"progress within tool_max_sec":   {times: times{silent: minute, silentSetting: "tool_timeout_sec", whole: 2 * minute, wholeSetting: "the setting servers.tool_max_sec"}, progress: every(50*time.Second, 10), ends: 2 * minute, want: "did not finish within 2m0s, although it reported progress; raise or remove the setting servers.tool_max_sec"},
		"nothing comes in tool_max_sec":  {times: times{silent: minute, silentSetting: "tool_timeout_sec", whole: 10 * minute}, ends: minute, want: "did not answer within 1m0s"},
		"tool_max_sec below the timeout": {times: times{silent: minute, silentSetting: "tool_timeout_sec", whole: 10 * time.Second, wholeSetting: "tool_max_sec"}, ends: 10 * time.Second, want: "did not finish within 10s"},
		"a person was asked":             {times: times{silent: minute, silentSetting: "tool_timeout_sec", whole: 90 * time.Second, wholeSetting: "tool_max_sec"}, progress: every(50*time.Second, 1), pause: time.Hour, ends: time.Hour + 90*time.Second, want: "did not finish within 1m30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				l := newLimit(context.Background(), tc.times)
				defer l.stop()
				for _, d := range tc.progress {
					select {
					case <-time.After(d):
						l.extend()
					case <-l.Done():
					}
				}
				if tc.pause > 0 {
					l.pause()
					time.Sleep(tc.pause)
					l.resume()
				}
				<-l.Done()
				cause := context.Cause(l)
				if got := time.Since(begun); got != tc.ends || !errors.Is(cause, errCallTimeout) || !strings.Contains(cause.Error(), tc.want) {
					t.Errorf("ended after %v: %v; want after %v: %s", got, cause, tc.ends, tc.want)
				}
			})
		})
	}
}

func every(d time.Duration, n int) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = d
	}
	return out
}
