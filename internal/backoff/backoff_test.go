package backoff

import (
	"math"
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		first, most time.Duration
		before      int
		want        time.Duration
	}{
		"the first":           {s, 60 * s, 0, s},
		"the second":          {s, 60 * s, 1, 2 * s},
		"the sixth":           {s, 60 * s, 5, 32 * s},
		"the longest":         {s, 60 * s, 6, 60 * s},
		"as long as can be":   {s, 64 * s, 6, 64 * s},
		"ever after":          {s, 60 * s, math.MaxInt, 60 * s},
		"no bound that shows": {s, math.MaxInt64, math.MaxInt, math.MaxInt64},
		"first is the most":   {s, s, 0, s},
		"first is too much":   {2 * s, s, 0, s},
		"none":                {0, s, math.MaxInt, 0},
		"no failure at all":   {s, 60 * s, -1, s},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Pause(c.first, c.most, c.before); got != c.want {
				t.Errorf("Pause(%v, %v, %d) = %v, want %v", c.first, c.most, c.before, got, c.want)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct{ least, most float64 }{{0.8, 1.2}, {0.5, 1}, {1, 1.5}, {1, 1}} {
		low, high := time.Duration(math.MaxInt64), time.Duration(0)
		for range 1000 {
			d := Spread(time.Minute, c.least, c.most)
			low, high = min(low, d), max(high, d)
		}
		from, to := time.Duration(c.least*float64(time.Minute)), time.Duration(c.most*float64(time.Minute))
		if low < from || high > to || high-low < (to-from)/2 {
			t.Errorf("Spread(1m, %v, %v) gave %v to %v, want all of %v to %v", c.least, c.most, low, high, from, to)
		}
	}
}
