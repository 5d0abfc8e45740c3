package traffic

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Bounds of the daily sums.
const (
	daysKept = 366
	maxRows  = 500 // of a day; further ones are summed as "other"
	maxDay   = 4 << 20
)

// Other stands for the servers, tools and clients for which a day has no room.
const Other = "other"

// Buckets are the upper bounds of the histogram of durations, in milliseconds; the
// last bucket has none.
var Buckets = []float64{1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000}

// Sum is the daily sum of the calls of one server, tool and client.
type Sum struct {
	Server  string   `json:"server,omitempty" doc:"empty for yaya itself"`
	Tool    string   `json:"tool,omitempty" doc:"of other requests, their method"`
	Client  string   `json:"client,omitempty"`
	Calls   uint64   `json:"calls"`
	Errors  uint64   `json:"errors"`
	TookMS  float64  `json:"took_ms" doc:"all calls together"`
	MaxMS   float64  `json:"max_ms"`
	In      int64    `json:"arguments_bytes"`
	Out     int64    `json:"result_bytes"`
	Buckets []uint64 `json:"buckets" doc:"calls by duration, up to 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000 ms, and longer"`
}

// Day has the sums of a day, by the machine's clock.
type Day struct {
	Day  string `json:"day" doc:"as in 2006-01-02"`
	Rows []Sum  `json:"rows"`
}

type rowKey struct{ server, tool, client string }

func (s *Sum) key() rowKey { return rowKey{s.Server, s.Tool, s.Client} }

func (s *Sum) plus(o *Sum) {
	s.Calls, s.Errors, s.TookMS, s.MaxMS, s.In, s.Out = s.Calls+o.Calls, s.Errors+o.Errors, s.TookMS+o.TookMS, max(s.MaxMS, o.MaxMS), s.In+o.In, s.Out+o.Out
	if len(s.Buckets) != len(Buckets)+1 {
		s.Buckets = make([]uint64, len(Buckets)+1)
	}
	for i := range min(len(s.Buckets), len(o.Buckets)) {
		s.Buckets[i] += o.Buckets[i]
	}
}

// table is rows by key, of which there are at most maxRows.
type table map[rowKey]*Sum

func (t table) row(k rowKey) *Sum {
	if s := t[k]; s != nil {
		return s
	}
	if len(t) >= maxRows-1 {
		k = rowKey{Other, Other, Other}
		if s := t[k]; s != nil {
			return s
		}
	}
	s := &Sum{Server: k.server, Tool: k.tool, Client: k.client, Buckets: make([]uint64, len(Buckets)+1)}
	t[k] = s
	return s
}

func (t table) rows() []Sum {
	out := make([]Sum, 0, len(t))
	for _, s := range t {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Sum) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Client, b.Client))
	})
	return out
}

// sums collects the counts that have not reached the daily files.
type sums struct {
	root *os.Root

	mu   sync.Mutex
	days map[string]table
	// The day of the last record: most have the same.
	from, to time.Time
	day      string
}

func newSums(root *os.Root) *sums { return &sums{root: root, days: map[string]table{}} }

// add counts a record. It is for the writer.
func (s *sums) add(r *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Time.Before(s.from) || !r.Time.Before(s.to) || s.day == "" {
		at := r.Time.Local()
		s.from = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.Local)
		s.to, s.day = s.from.AddDate(0, 0, 1), at.Format(time.DateOnly)
	}
	t := s.days[s.day]
	if t == nil {
		t = table{}
		s.days[s.day] = t
	}
	k := rowKey{r.Server, r.Tool, r.Client}
	switch {
	case r.Method != MethodTool:
		k.tool = r.Method // the number of URIs is unbounded
	case r.Outcome == "not_found":
		k.tool = "(unknown)"
	}
	row := t.row(k)
	row.Calls++
	if r.Failed() {
		row.Errors++
	}
	row.TookMS += r.TookMS
	row.MaxMS = max(row.MaxMS, r.TookMS)
	row.In += r.ArgumentsBytes
	row.Out += r.ResultBytes
	i, _ := slices.BinarySearch(Buckets, r.TookMS)
	row.Buckets[i]++
}

func dayFile(day string) string { return dir + "/days/" + day + ".json" }

// readDay returns the rows of a day's file; none if the file is missing, or is
// damaged.
func readDay(root *os.Root, day string) (table, error) {
	f, err := openRegular(root, dayFile(day), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return table{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() > maxDay {
		return nil, errors.Join(fmt.Errorf("%s is larger than yaya writes it", dayFile(day)), err)
	}
	data, err := read(f, 0)
	if err != nil {
		return nil, err
	}
	var d Day
	t := table{}
	if json.Unmarshal(data, &d) != nil { // a lost power supply leaves such files
		return t, nil
	}
	for i := range d.Rows {
		t.row(d.Rows[i].key()).plus(&d.Rows[i])
	}
	return t, nil
}

// save adds the collected counts to the files. The directory is locked.
func (s *sums) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for day, t := range s.days {
		have, err := readDay(s.root, day)
		if err != nil {
			return err
		}
		for _, row := range t {
			have.row(row.key()).plus(row)
		}
		data, err := json.Marshal(Day{day, have.rows()})
		if err != nil {
			return err
		}
		if err := replace(s.root, dayFile(day), append(data, '\n')); err != nil {
			return err
		}
		delete(s.days, day)
	}
	return nil
}

// replace writes a file atomically.
func replace(root *os.Root, name string, data []byte) error {
	tmp := name + ".tmp"
	f, err := openRegular(root, tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = hostfile.Rename(root, tmp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	return nil
}

// maxUnsaved bounds the days that wait for a disk that fails.
const maxUnsaved = 7

func (w *writer) save() {
	s := w.l.sums
	s.mu.Lock()
	n := len(s.days)
	s.mu.Unlock()
	if n == 0 {
		return
	}
	unlock, err := w.store.lock()
	if err == nil {
		err = s.save()
		unlock()
	}
	if err == nil {
		return
	}
	if !w.failing {
		w.l.cfg.Log.Error().Err(err).Msg("the daily sums of calls cannot be written")
	}
	w.failing = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.days) > maxUnsaved {
		clear(s.days)
	}
}

// dayNames lists the days that have a file, oldest first.
func dayNames(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), dir+"/days")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if _, err := time.Parse(time.DateOnly, name); ok && err == nil {
			out = append(out, name)
		}
	}
	return out, nil // ReadDir has sorted them
}

// expire removes the days that are older than a year, and all but the last 366 in any
// case.
func (s *sums) expire(now time.Time) error {
	names, err := dayNames(s.root)
	if err != nil {
		return err
	}
	oldest := now.Local().AddDate(-1, 0, 0).Format(time.DateOnly)
	var errs []error
	for i, name := range names {
		if name < oldest || i < len(names)-daysKept {
			errs = append(errs, s.root.Remove(dayFile(name)))
		}
	}
	return errors.Join(errs...)
}

// By selects the grouping of daily sums.
type By string

// The groupings of [Daily].
const (
	ByTotal  By = "total"
	ByServer By = "server"
	ByTool   By = "tool" // of each server
	ByClient By = "client"
)

// DayQuery asks for daily sums. From and To are days, "" means unbounded; the other
// fields select one server, tool or client, "" all.
type DayQuery struct {
	From, To             string
	Server, Tool, Client string
	By                   By
}

// Daily returns the existing daily sums, oldest first, including counts that have not
// reached the files yet. A nil log has none.
func Daily(root *os.Root, l *Log, q DayQuery) ([]Day, error) {
	names, err := dayNames(root)
	if err != nil {
		return nil, err
	}
	waiting := map[string]table{}
	if l != nil {
		l.sums.mu.Lock()
		defer l.sums.mu.Unlock()
		waiting = l.sums.days
		for day := range waiting {
			if !slices.Contains(names, day) {
				names = append(names, day)
			}
		}
		slices.Sort(names)
	}
	out := []Day{}
	for _, name := range names {
		if q.From != "" && name < q.From || q.To != "" && name > q.To {
			continue
		}
		t, err := readDay(root, name)
		if err != nil {
			return nil, err
		}
		sum := table{}
		for _, from := range []table{t, waiting[name]} {
			for k, row := range from {
				if q.Server != "" && k.server != q.Server || q.Tool != "" && k.tool != q.Tool || q.Client != "" && k.client != q.Client {
					continue
				}
				sum.row(q.By.key(k)).plus(row)
			}
		}
		if len(sum) > 0 {
			out = append(out, Day{name, sum.rows()})
		}
	}
	return out, nil
}

func (b By) key(k rowKey) rowKey {
	switch b {
	case ByTotal:
		return rowKey{}
	case ByServer:
		return rowKey{server: k.server}
	case ByClient:
		return rowKey{client: k.client}
	case ByTool:
	}
	return rowKey{server: k.server, tool: k.tool}
}
