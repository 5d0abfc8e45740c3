package admin

import (
	"testing"
	"time"
)

// Longer windows keep fewer readings, and each ends with the newest.
func TestReadingsOfWindows(t *testing.T) {
	l := &Live{readings: newWindows()}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var last Reading
	for i := range 2 * 24 * 60 * 12 { // two days
		last = Reading{Time: at.Add(time.Duration(i) * readEvery), Calls: float64(i)}
		for k := range l.readings {
			l.readings[k].add(last)
		}
	}
	for name, want := range map[string]struct {
		n    int
		from time.Duration
	}{"30m": {360, 30 * time.Minute}, "24h": {121, 24 * time.Hour}, "7d": {36, 48 * time.Hour}, "30d": {9, 48 * time.Hour}} {
		got := l.Readings(name)
		if len(got) != want.n || got[len(got)-1] != last || last.Time.Sub(got[0].Time) > want.from {
			t.Errorf("Readings(%s) = %d from %v on, want %d of the last %v", name, len(got), got[0].Time, want.n, want.from)
		}
	}
}
