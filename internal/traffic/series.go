package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Bounds of a [Series].
const (
	MaxSlices = 240
	maxGroups = 100     // of a series; the calls of further ones count as those of [Other]
	maxSummed = 200_000 // records that a series reads
)

// SeriesQuery selects the calls of a [Series]: those of the filter from Since on, until
// Until, in slices of length Step. By groups them, too, unless it is [ByTotal].
type SeriesQuery struct {
	Filter
	Step time.Duration
	By   By

	most int // records; 0 is maxSummed
}

// Slice sums up the calls that began in a part of the time of a series.
type Slice struct {
	Time time.Time `json:"ts" doc:"its beginning"`
	Totals
}

// Group sums up the calls of one server, tool or client in the time of a series.
type Group struct {
	Name string `json:"name" doc:"of the server, tool or client; empty for yaya itself, or a client without a name"`
	Totals
}

// Totals sums up calls.
type Totals struct {
	Calls  int64   `json:"calls"`
	Errors int64   `json:"errors"`
	P50MS  float64 `json:"p50_ms" doc:"estimated from a histogram; 0 without calls"`
	P95MS  float64 `json:"p95_ms"`
	P99MS  float64 `json:"p99_ms"`
	In     int64   `json:"arguments_bytes" doc:"of all calls"`
	Out    int64   `json:"result_bytes"`

	buckets [16]uint64
}

// Series has calls by time, and by server, tool or client.
type Series struct {
	Slices []Slice `json:"slices" doc:"oldest first, without gaps"`
	Groups []Group `json:"groups" doc:"those with the most calls first"`
	Total  Totals  `json:"total"`
	// Partial reports that there were more than maxSummed records: those before the time in
	// From are missing.
	Partial bool      `json:"partial,omitempty" doc:"there were too many calls to read all of them"`
	From    time.Time `json:"from" doc:"the beginning, or the first call that was read if the series is partial"`
}

func (t *Totals) add(r *Record) {
	t.Calls++
	if r.Failed() {
		t.Errors++
	}
	t.In += r.ArgumentsBytes
	t.Out += r.ResultBytes
	i, _ := slices.BinarySearch(Buckets, r.TookMS)
	t.buckets[i]++
}

func (t *Totals) finish() {
	t.P50MS, t.P95MS, t.P99MS = t.quantile(.5), t.quantile(.95), t.quantile(.99)
}

// quantile estimates a quantile within its bucket, as if its calls were spread evenly. Of
// the last bucket, which has no end, it returns the beginning.
func (t *Totals) quantile(q float64) float64 {
	rank, below, lower := q*float64(t.Calls), 0.0, 0.0
	for i, n := range t.buckets {
		if n > 0 && below+float64(n) >= rank {
			if i == len(Buckets) {
				return lower
			}
			return lower + (Buckets[i]-lower)*(rank-below)/float64(n)
		}
		below += float64(n)
		if i < len(Buckets) {
			lower = Buckets[i]
		}
	}
	return 0
}

// scanned has the members of a record that a series reads.
type scanned struct {
	Time      time.Time `json:"time"`
	TookMS    float64   `json:"took_ms"`
	Client    string    `json:"client"`
	Principal string    `json:"principal"`
	Server    string    `json:"server"`
	Tool      string    `json:"tool"`
	Name      string    `json:"name"`
	Outcome   string    `json:"outcome"`
	In        int64     `json:"arguments_bytes"`
	Out       int64     `json:"result_bytes"`
}

func (r *scanned) record() Record {
	return Record{Time: r.Time, TookMS: r.TookMS, Client: r.Client, Principal: r.Principal, Server: r.Server, Tool: r.Tool, Name: r.Name, Outcome: r.Outcome, ArgumentsBytes: r.In, ResultBytes: r.Out}
}

// SumUp returns the series of a query. It works beside a log that writes, and reads the
// newest records first.
func SumUp(ctx context.Context, root *os.Root, q SeriesQuery) (Series, error) {
	n := int(q.Until.Sub(q.Since) / max(q.Step, 1))
	if q.Step < time.Second || n < 1 || n > MaxSlices {
		return Series{}, fmt.Errorf("traffic: a series has 1 to %d slices of a second or more, not %d of %v", MaxSlices, n, q.Step)
	}
	out := Series{Slices: make([]Slice, n), Groups: []Group{}, From: q.Since}
	for i := range out.Slices {
		out.Slices[i].Time = q.Since.Add(time.Duration(i) * q.Step)
	}
	have, err := segments(root)
	if err != nil {
		return Series{}, err
	}
	slices.Reverse(have)
	groups, s, read := map[string]*Group{}, q.sieve(), 0
scan:
	for _, seg := range have {
		if ctx.Err() != nil {
			return Series{}, ctx.Err()
		}
		if seg.last.Before(q.Since) { // nothing that began later is in it
			continue
		}
		lines, err := load(root, seg)
		if err != nil {
			return Series{}, err
		}
		for _, line := range slices.Backward(lines) {
			var r scanned
			if !s.pass(line) || json.Unmarshal(line, &r) != nil {
				continue
			}
			x := r.record()
			i := int(x.Time.Sub(q.Since) / q.Step)
			if !q.matches(&x) || i < 0 || i >= n {
				continue
			}
			if read == cmp.Or(q.most, maxSummed) {
				out.Partial = true
				break scan
			}
			read++
			out.From = x.Time
			out.Slices[i].add(&x)
			out.Total.add(&x)
			if q.By != ByTotal && q.By != "" {
				group(groups, &x, q.By).add(&x)
			}
		}
	}
	if !out.Partial {
		out.From = q.Since
	}
	out.settle(groups)
	return out, nil
}

// group returns the group of a record.
func group(all map[string]*Group, r *Record, by By) *Group {
	name := map[By]string{ByServer: r.Server, ByTool: cmp.Or(r.Name, r.Tool), ByClient: r.Client}[by]
	if g := all[name]; g != nil {
		return g
	}
	if len(all) >= maxGroups-1 {
		if name = Other; all[name] != nil {
			return all[name]
		}
	}
	g := &Group{Name: name}
	all[name] = g
	return g
}
