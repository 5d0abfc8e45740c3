package traffic

import (
	"cmp"
	"os"
	"slices"
	"time"
)

// SeriesOfDays returns a series with one slice for each of the last n days, today last. It
// is made of the daily sums, which are kept longer than records. By groups it as in
// [SeriesQuery].
func SeriesOfDays(root *os.Root, l *Log, q DayQuery, n int, now time.Time) (Series, error) {
	now = now.Local()
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.Local)
	first := today.AddDate(0, 0, 1-n)
	q.From, q.To = first.Format(time.DateOnly), today.Format(time.DateOnly)
	days, err := Daily(root, l, q)
	if err != nil {
		return Series{}, err
	}
	out := Series{Slices: make([]Slice, n), Groups: []Group{}, From: first}
	at := map[string]*Slice{}
	for i := range out.Slices {
		out.Slices[i].Time = first.AddDate(0, 0, i)
		at[out.Slices[i].Time.Format(time.DateOnly)] = &out.Slices[i]
	}
	groups := map[string]*Group{}
	for _, d := range days {
		slice := at[d.Day]
		for i := range d.Rows {
			row := &d.Rows[i]
			if slice != nil {
				slice.sum(row)
			}
			out.Total.sum(row)
			if q.By == ByTotal || q.By == "" {
				continue
			}
			r := Record{Server: row.Server, Tool: row.Tool, Client: row.Client}
			if r.Server != "" {
				r.Name = r.Server + "__" + r.Tool // as clients call it
			}
			group(groups, &r, q.By).sum(row)
		}
	}
	out.settle(groups)
	return out, nil
}

// sum adds a daily sum.
func (t *Totals) sum(s *Sum) {
	t.Calls += int64(s.Calls)   //nolint:gosec // nobody makes so many calls
	t.Errors += int64(s.Errors) //nolint:gosec // the same
	t.In += s.In
	t.Out += s.Out
	for i := range min(len(t.buckets), len(s.Buckets)) {
		t.buckets[i] += s.Buckets[i]
	}
}

// settle estimates the quantiles, and takes over the groups.
func (s *Series) settle(groups map[string]*Group) {
	for i := range s.Slices {
		s.Slices[i].finish()
	}
	s.Total.finish()
	for _, g := range groups {
		g.finish()
		s.Groups = append(s.Groups, *g)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Name, b.Name))
	})
}
