package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/kernel/config"
)

// OP-18, REL-7: the janitor removes what is older than its setting says, every hour from
// an hour after the start, and nothing for a setting of 0; a chore that fails does not keep
// the others from being done, and the end of yaya ends it.
func TestJanitor(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	settings, err := config.Open(config.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	if got := trafficDays(settings); got != 7 {
		t.Errorf("calls are kept for %d days, want 7", got)
	}
	if err := settings.Set("retention.traffic", json.RawMessage("3")); err != nil {
		t.Fatal(err)
	}
	if got := trafficDays(settings); got != 3 {
		t.Errorf("calls are kept for %d days, want 3", got)
	}
	synctest.Test(t, func(t *testing.T) {
		start, swept := time.Now(), 0
		var mu sync.Mutex // synctest.Wait orders what came before it, and not what follows
		done := map[string][]time.Duration{}
		var rests []string // with a setting of 0
		job := func(key string, err error) chore {
			return chore{key, key, func(_ context.Context, before time.Time) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				done[key] = append(done[key], start.Sub(before).Round(time.Hour))
				return 1, err
			}, func() error { mu.Lock(); defer mu.Unlock(); rests = append(rests, key); return nil }}
		}
		j := &janitor{sweep: func() error { mu.Lock(); defer mu.Unlock(); swept++; return nil }, settings: settings, log: zerolog.Nop(), chores: []chore{
			job("retention.archives", errors.New("the disk is broken")), job("retention.sessions", nil), job("retention.artifacts", nil), job("retention.memory", nil),
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go j.run(ctx)
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		mu.Lock()
		if swept != 1 || len(done) != 0 {
			t.Errorf("within an hour: swept %d times, did %v, want once and nothing", swept, done)
		}
		mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if err := settings.Set("retention.sessions", json.RawMessage("7")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		mu.Lock()
		day := 24 * time.Hour
		want := map[string]time.Duration{"retention.archives": 90 * day, "retention.artifacts": 30 * day, "retention.sessions": 7 * day}
		for key, age := range want {
			last := done[key]
			if len(last) == 0 || (last[len(last)-1]-age).Abs() > 3*time.Hour {
				t.Errorf("%s: got %v, want about %v at the end", key, last, age)
			}
		}
		if len(done["retention.sessions"]) != 1 || len(done["retention.archives"]) != 2 || len(done["retention.memory"]) != 0 {
			t.Errorf("got %v, want sessions once, archives twice, memories never", done)
		}
		if want := []string{"retention.sessions", "retention.memory", "retention.memory"}; !slices.Equal(rests, want) {
			t.Errorf("got the rest of %q, want of %q", rests, want)
		}
		mu.Unlock()
		cancel()
		synctest.Wait()
	})
}
