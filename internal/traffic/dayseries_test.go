package traffic

import (
	"testing"
	"time"
)

// A series of days has every day, those without calls as well, and groups across days.
func TestSeriesOfDays(t *testing.T) {
	l, root, _ := opened(t, all())
	now := time.Now()
	noon := time.Date(now.Year(), now.Month(), now.Day(), 12, 0, 0, 0, time.Local)
	put := func(ago int, server, outcome string, took time.Duration) {
		c := call("x", outcome)
		c.Start, c.Took, c.Server, c.Name = noon.AddDate(0, 0, -ago), took, server, server+"__x"
		c.Arguments, c.Result = []byte(`{"a":1}`), []byte(`{"answer":2}`)
		l.Add(c)
	}
	for range 9 {
		put(2, "a", OutcomeOK, 4*time.Millisecond)
	}
	put(2, "a", OutcomeError, 700*time.Millisecond)
	put(0, "a", OutcomeOK, time.Millisecond)
	put(0, "b", OutcomeOK, time.Millisecond)
	put(3, "a", OutcomeOK, time.Millisecond) // before
	wait(t, l, root, 13)

	s, err := SeriesOfDays(root, l, DayQuery{By: ByServer}, 3, noon)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Slices) != 3 || s.Slices[0].Calls != 10 || s.Slices[0].Errors != 1 || s.Slices[1].Calls != 0 || s.Slices[2].Calls != 2 || s.Total.Calls != 12 {
		t.Errorf("SeriesOfDays = %+v in total, %+v, want 10 calls with an error, none, and 2", s.Total, s.Slices)
	}
	if x := s.Slices[0]; x.P50MS < 2.5 || x.P50MS > 5 || x.P95MS < 500 || x.P95MS > 1000 {
		t.Errorf("the first day is %+v, want p50 in 2.5 to 5 ms, p95 in 500 to 1000 ms", x)
	}
	if x := s.Slices[0]; x.P99MS < x.P95MS || x.P99MS > 1000 || x.In != 10*7 || x.Out != 10*12 {
		t.Errorf("the first day is %+v, want p99 above p95 in the same bucket, 70 bytes of arguments, 120 of results", x)
	}
	if len(s.Groups) != 2 || s.Groups[0].Name != "a" || s.Groups[0].Out != 11*12 || s.Groups[0].Calls != 11 || s.Groups[1].Name != "b" || s.Groups[1].Calls != 1 {
		t.Errorf("the groups are %+v, want 11 calls of a, and 1 of b", s.Groups)
	}
	if s, err = SeriesOfDays(root, l, DayQuery{By: ByTool, Server: "b"}, 3, noon); err != nil || len(s.Groups) != 1 || s.Groups[0].Name != "b__x" || s.Groups[0].Calls != 1 {
		t.Errorf("SeriesOfDays of b = %+v, %v, want 1 call of b__x", s.Groups, err)
	}
}
