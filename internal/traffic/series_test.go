package traffic

import (
	"fmt"
	"testing"
	"time"
)

// A series has all slices, and counts calls where they began.
func TestSeries(t *testing.T) {
	l, root, _ := opened(t, all())
	from := time.Now().Add(-time.Hour).Truncate(time.Minute)
	put := func(minute int, server, outcome string, took time.Duration) {
		c := call("x", outcome)
		c.Start, c.Took, c.Server, c.Name = from.Add(time.Duration(minute)*time.Minute), took, server, server+"__x"
		c.Arguments, c.Result = []byte(`{"a":1}`), []byte(`{"answer":2}`)
		l.Add(c)
	}
	for range 9 {
		put(3, "a", OutcomeOK, 4*time.Millisecond)
	}
	put(3, "a", OutcomeError, 700*time.Millisecond)
	put(59, "b", OutcomeOK, time.Millisecond)
	put(-1, "a", OutcomeOK, time.Millisecond) // before
	put(60, "b", OutcomeOK, time.Millisecond) // after
	wait(t, l, root, 13)

	q := SeriesQuery{Filter: Filter{Since: from, Until: from.Add(time.Hour)}, Step: time.Minute, By: ByServer}
	s, err := SumUp(t.Context(), root, q)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Slices) != 60 || s.Total.Calls != 11 || s.Total.Errors != 1 || s.Partial || !s.From.Equal(from) {
		t.Errorf("SumUp = %d slices, %+v, partial %v from %v; want 60, 11 calls, 1 error, all from %v", len(s.Slices), s.Total, s.Partial, s.From, from)
	}
	if x := s.Slices[3]; x.Calls != 10 || x.Errors != 1 || !x.Time.Equal(from.Add(3*time.Minute)) || x.P50MS < 2.5 || x.P50MS > 5 || x.P95MS < 500 || x.P95MS > 1000 {
		t.Errorf("the fourth minute is %+v, want 10 calls, 1 error, p50 in 2.5 to 5 ms, p95 in 500 to 1000 ms", x)
	}
	if x := s.Slices[3]; x.P99MS < x.P95MS || x.P99MS > 1000 || x.In != 10*7 || x.Out != 10*12 {
		t.Errorf("the fourth minute is %+v, want p99 above p95 in the same bucket, 70 bytes of arguments, 120 of results", x)
	}
	if len(s.Groups) != 2 || s.Groups[0].Name != "a" || s.Groups[0].Out != 120 || s.Groups[1].In != 7 || s.Groups[0].Calls != 10 || s.Groups[1].Name != "b" || s.Groups[1].Calls != 1 {
		t.Errorf("the groups are %+v, want 10 calls of a, and 1 of b", s.Groups)
	}

	q.Server = "b"
	if s, err = SumUp(t.Context(), root, q); err != nil || s.Total.Calls != 1 || s.Slices[59].Calls != 1 {
		t.Errorf("SumUp of b = %+v, %v, want 1 call in the last minute", s.Total, err)
	}
	q.Server, q.Errors = "", true
	if s, err = SumUp(t.Context(), root, q); err != nil || s.Total.Calls != 1 || s.Total.Errors != 1 {
		t.Errorf("SumUp of failed calls = %+v, %v, want 1", s.Total, err)
	}
}

// A series reads a bounded number of records, and says from when on it has all of them.
func TestSeriesIsBounded(t *testing.T) {
	l, root, _ := opened(t, all())
	from := time.Now().Add(-time.Hour).Truncate(time.Minute)
	for i := range maxGroups + 10 {
		c := call("x", OutcomeOK)
		c.Start, c.Server = from.Add(time.Duration(i)*time.Second), fmt.Sprint("s", i)
		l.Add(c)
	}
	wait(t, l, root, maxGroups+10)
	q := SeriesQuery{Filter: Filter{Since: from, Until: from.Add(time.Hour)}, Step: time.Minute, By: ByServer}
	s, err := SumUp(t.Context(), root, q)
	if err != nil || len(s.Groups) != maxGroups || s.Groups[0].Name != Other || s.Groups[0].Calls != 11 {
		t.Errorf("SumUp = %d groups, the first %+v, %v, want %d, and 11 calls of others first", len(s.Groups), s.Groups[0], err, maxGroups)
	}
	q.most = 10
	s, err = SumUp(t.Context(), root, q)
	if want := from.Add((maxGroups) * time.Second); err != nil || !s.Partial || s.Total.Calls != 10 || !s.From.Equal(want) {
		t.Errorf("SumUp of 10 records = %d calls, partial %v from %v, %v, want 10, partial from %v", s.Total.Calls, s.Partial, s.From, err, want)
	}
	for _, step := range []time.Duration{0, time.Millisecond, 2 * time.Hour, time.Second} {
		q.Step = step
		if _, err := SumUp(t.Context(), root, q); err == nil {
			t.Errorf("SumUp with slices of %v = no error, want one", step)
		}
	}
}
