package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func rootOf(t testing.TB, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// opened returns a log with those settings, which the test may change, and its folder.
func opened(t testing.TB, set *Settings) (*Log, *os.Root, *strings.Builder) {
	t.Helper()
	root := rootOf(t, t.TempDir())
	out := new(strings.Builder)
	var mu sync.Mutex
	l := New(Config{Root: root, Settings: func() Settings { mu.Lock(); defer mu.Unlock(); return *set }, Log: zerolog.New(out)})
	t.Cleanup(func() { closed(t, l) })
	return l, root, out
}

func closed(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func all() *Settings { return &Settings{Days: 7, MaxBytes: 256 << 20, Bodies: BodiesAll} }

func call(tool, outcome string) *Call {
	return &Call{
		Start: time.Now(), Took: 12 * time.Millisecond, Origin: "mcp", Client: []byte(`{"name":"claude-code","version":"2.1"}`), Principal: "owner", Session: "mcp_1",
		Method: MethodTool, Server: "srv", Tool: tool, Name: "srv__" + tool, Outcome: outcome, Arguments: []byte(`{"message":"hi"}`), Result: []byte(`{"content":[]}`),
		Trace: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
	}
}

func readAll(t testing.TB, root *os.Root, f Filter) []Record {
	t.Helper()
	out, _, err := Read(t.Context(), root, f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wait waits until a log has written its records.
func wait(t testing.TB, l *Log, root *os.Root, n int) []Record {
	t.Helper()
	for {
		news := l.News()
		if got := readAll(t, root, Filter{}); len(got) >= n {
			return got
		}
		select {
		case <-news:
		case <-t.Context().Done():
			t.Fatal("the records were not written")
		}
	}
}

// USE-3: a call is a record, with all that is known of it, in a file for its owner only.
func TestCallIsRecorded(t *testing.T) {
	l, root, _ := opened(t, all())
	c := call("echo", OutcomeOK)
	c.Approved = true
	l.Add(c)
	got := wait(t, l, root, 1)[0]
	want := Record{
		ID: 1, Time: c.Start.UTC().Round(0), TookMS: 12, Origin: "mcp", Client: "claude-code", ClientVersion: "2.1", Principal: "owner", Session: "mcp_1", Method: MethodTool,
		Server: "srv", Tool: "echo", Name: "srv__echo", Outcome: OutcomeOK, Approval: "person", Trace: "0af7651916cd43dd8448eb211c80319c",
		ArgumentsBytes: 16, ResultBytes: 14, Arguments: `{"message":"hi"}`, Result: `{"content":[]}`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	one, ok, err := Get(t.Context(), root, 1)
	if err != nil || !ok || !reflect.DeepEqual(one, want) {
		t.Errorf("Get = %+v, %v, %v", one, ok, err)
	}
	if _, ok, err := Get(t.Context(), root, 2); ok || err != nil {
		t.Errorf("Get of a record that there is not: %v, %v", ok, err)
	}
	err = filepath.Walk(root.Name(), func(path string, st os.FileInfo, err error) error {
		if err == nil && !st.IsDir() && st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, st.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The hand-written encoding equals that of the standard library.
func TestLineIsJSON(t *testing.T) {
	hostile := "a\"b\\c\n\x00\x1b[31m\x7f\xff\u2028é😀"
	r := Record{ID: 5, Time: time.Now().UTC(), TookMS: 0.125, Origin: "mcp", Client: hostile, Method: "m", Server: hostile, Tool: hostile, Outcome: "ok", Error: hostile, Cut: true, Busy: true}
	line := appendRecord(nil, &r, []byte(hostile), []byte(hostile))
	var got Record
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	clean := strings.ToValidUTF8(hostile, "\ufffd")
	r.Client, r.Server, r.Tool, r.Error, r.Arguments, r.Result = clean, clean, clean, clean, clean, clean
	if !reflect.DeepEqual(got, r) {
		t.Errorf("got  %+v\nwant %+v", got, r)
	}
	if strings.Count(string(line), "\n") != 1 || idOf(line) != 5 {
		t.Errorf("the line is %q with the id %d", line, idOf(line))
	}
	typ := reflect.TypeFor[Record]()
	full := reflect.New(typ).Elem()
	for i := range typ.NumField() { // a member that is added is written, too
		switch f := full.Field(i); f.Kind() { //nolint:exhaustive // the others are the time
		case reflect.String:
			f.SetString("x")
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Float64:
			f.SetFloat(7)
		case reflect.Bool:
			f.SetBool(true)
		}
	}
	want := full.Interface().(Record)
	got = Record{}
	if err := json.Unmarshal(appendRecord(nil, &want, []byte("x"), []byte("x")), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v (%v)\nwant %+v", got, err, want)
	}
}

func TestBodies(t *testing.T) {
	for _, c := range []struct {
		name      string
		bodies    Bodies
		call      *Call
		arguments string
	}{
		{"off", BodiesOff, call("echo", OutcomeOK), ""},
		{"errors, and it succeeded", BodiesErrors, call("echo", OutcomeOK), ""},
		{"errors, and it is one", BodiesErrors, call("echo", "timeout"), `{"message":"hi"}`},
		{"all", BodiesAll, call("echo", OutcomeOK), `{"message":"hi"}`},
		{"bare", BodiesAll, func() *Call { c := call("echo", OutcomeOK); c.Bare = true; return c }(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := all()
			set.Bodies = c.bodies
			l, root, _ := opened(t, set)
			l.Add(c.call)
			got := wait(t, l, root, 1)[0]
			if got.Arguments != c.arguments || (got.Result == "") != (c.arguments == "") || got.ArgumentsBytes != 16 || got.ResultBytes != 14 {
				t.Errorf("got %+v, want the arguments %q", got, c.arguments)
			}
		})
	}
}

// A body is masked before it is cut, so no part of a secret is left at its end.
func TestBodiesAreMaskedAndCut(t *testing.T) {
	root := rootOf(t, t.TempDir())
	const secret = "a-secret-of-thirty-characters!"
	l := New(Config{
		Root: root, Settings: func() Settings { return *all() }, Margin: 100,
		Mask: func(dst, text []byte) []byte { return append(dst, strings.ReplaceAll(string(text), secret, "****")...) },
	})
	defer closed(t, l)
	c := call("echo", "tool")
	c.Error = "it said " + secret
	c.Arguments = []byte(strings.Repeat("x", MaxBody-10) + secret + strings.Repeat("y", 1000))
	c.Result = []byte(strings.Repeat("z", 1<<20))
	l.Add(c)
	wait(t, l, root, 1)
	got, _, err := Get(t.Context(), root, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Arguments) != MaxBody || strings.Contains(got.Arguments, secret[:5]) || !strings.Contains(got.Arguments, "****y") || !got.Cut || got.Error != "it said ****" {
		t.Errorf("arguments of %d bytes end in %q, cut %v, error %q", len(got.Arguments), got.Arguments[MaxBody-20:], got.Cut, got.Error)
	}
	if len(got.Result) != MaxBody || got.ResultBytes != 1<<20 || got.ArgumentsBytes != int64(len(c.Arguments)) {
		t.Errorf("result of %d bytes of %d, arguments of %d", len(got.Result), got.ResultBytes, got.ArgumentsBytes)
	}
}

func TestFilters(t *testing.T) {
	l, root, _ := opened(t, all())
	start := time.Now().Add(-time.Hour)
	for i := range 10 {
		c := call("echo", OutcomeOK)
		c.Start = start.Add(time.Duration(i) * time.Minute)
		if i%2 == 1 {
			c.Tool, c.Name, c.Outcome = "fail", "srv__fail", "timeout"
		}
		if i >= 8 {
			c.Server, c.Client, c.Principal = "other", []byte(`{"name":"Inspector"}`), "device:phone"
		}
		l.Add(c)
	}
	wait(t, l, root, 10)
	for name, c := range map[string]struct {
		f    Filter
		want []int64
		more bool
	}{
		"all":            {Filter{}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false},
		"the last":       {Filter{Limit: 3}, []int64{8, 9, 10}, true},
		"before":         {Filter{Limit: 3, Before: 8}, []int64{5, 6, 7}, true},
		"the first":      {Filter{Limit: 3, Before: 4}, []int64{1, 2, 3}, false},
		"after":          {Filter{Limit: 3, After: 2}, []int64{3, 4, 5}, true},
		"between":        {Filter{After: 2, Before: 5}, []int64{3, 4}, false},
		"server":         {Filter{Server: "other"}, []int64{9, 10}, false},
		"tool":           {Filter{Tool: "fail", Limit: 2}, []int64{8, 10}, true},
		"full name":      {Filter{Tool: "srv__fail", Before: 3}, []int64{2}, false},
		"client":         {Filter{Client: "inspector"}, []int64{9, 10}, false},
		"principal":      {Filter{Principal: "device:phone"}, []int64{9, 10}, false},
		"errors":         {Filter{Errors: true}, []int64{2, 4, 6, 8, 10}, false},
		"errors, server": {Filter{Errors: true, Server: "other"}, []int64{10}, false},
		"since":          {Filter{Since: start.Add(8 * time.Minute)}, []int64{9, 10}, false},
		"until":          {Filter{Until: start.Add(2 * time.Minute)}, []int64{1, 2}, false},
		"nothing":        {Filter{Server: "sr"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, more, err := Read(t.Context(), root, c.f)
			var ids []int64
			for _, r := range got {
				ids = append(ids, r.ID)
			}
			if err != nil || !reflect.DeepEqual(ids, c.want) || more != c.more {
				t.Errorf("Read(%+v) = %v, %v, %v, want %v, %v", c.f, ids, more, err, c.want, c.more)
			}
		})
	}
}

// The ring has its limit, and drops the oldest records.
func TestRing(t *testing.T) {
	set := all()
	set.MaxBytes = 1 << 20
	l, root, _ := opened(t, set)
	last := int64(0)
	for range 15 { // a batch each
		for range 24 {
			c := call("echo", OutcomeOK)
			c.Result = []byte(strings.Repeat("r", MaxBody))
			l.Add(c)
			last++
		}
		for news := l.News(); len(readAll(t, root, Filter{After: last - 1, Limit: 1})) == 0; news = l.News() {
			select {
			case <-news:
			case <-t.Context().Done():
				t.Fatal("nothing was written")
			}
		}
	}
	have, err := segments(root)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, s := range have {
		total += s.size
	}
	got := readAll(t, root, Filter{})
	if total > set.MaxBytes || total < set.MaxBytes/2 || len(have) < 4 {
		t.Errorf("%d segments have %d bytes, want nearly %d", len(have), total, set.MaxBytes)
	}
	if got[len(got)-1].ID != last || got[0].ID != last-int64(len(got))+1 || got[0].ID == 1 {
		t.Errorf("records %d to %d are there, want the last, up to %d", got[0].ID, got[len(got)-1].ID, last)
	}
}

// A crash costs the line that it cut off, and ids go on.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	root := rootOf(t, dir)
	settings := func() Settings { return *all() }
	l := New(Config{Root: root, Settings: settings})
	l.Add(call("one", OutcomeOK))
	l.Add(call("two", OutcomeOK))
	closed(t, l)
	have, err := segments(root)
	if err != nil || len(have) != 1 {
		t.Fatalf("got %v, %v, want len(have) 1", have, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, have[0].name()), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, `{"id":3,"time":"20`)
	f.Close()
	if got := readAll(t, root, Filter{}); len(got) != 2 {
		t.Errorf("%d records are read beside a torn one, want 2", len(got))
	}
	l = New(Config{Root: root, Settings: settings})
	defer closed(t, l)
	l.Add(call("three", OutcomeOK))
	got := wait(t, l, root, 3)
	if len(got) != 3 || got[2].ID != 3 || got[2].Tool != "three" {
		t.Errorf("after the crash: %+v", got)
	}
}

// Two processes share a directory: no id is given twice, and no line is torn.
func TestTwoWriters(t *testing.T) {
	root := rootOf(t, t.TempDir())
	var logs []*Log
	for range 2 {
		logs = append(logs, New(Config{Root: root, Settings: func() Settings { return *all() }}))
	}
	for i := range 100 {
		logs[i%2].Add(call("echo", OutcomeOK))
	}
	closed(t, logs[0])
	logs[1].Add(call("echo", OutcomeOK))
	closed(t, logs[1])
	got := readAll(t, root, Filter{})
	if len(got) != 101 {
		t.Fatalf("%d records, want 101", len(got))
	}
	for i, r := range got {
		if r.ID != int64(i)+1 {
			t.Fatalf("record %d has the id %d", i, r.ID)
		}
	}
	days, err := Daily(root, nil, DayQuery{By: ByTotal})
	if err != nil || len(days) != 1 || len(days[0].Rows) != 1 || days[0].Rows[0].Calls != 101 {
		t.Errorf("Daily = %+v, %v, want 101 calls", days, err)
	}
}

// A folder that cannot be written to costs records, is reported once, and is tried again.
func TestFailingDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "traffic"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root := rootOf(t, dir)
	out := new(strings.Builder)
	l := New(Config{Root: root, Settings: func() Settings { return *all() }, Log: zerolog.New(out)})
	for want := uint64(1); want <= 3; want++ {
		news := l.News()
		l.Add(call("echo", OutcomeOK))
		<-news
		if got := l.Lost().Failed; got != want {
			t.Errorf("%d calls are counted as lost, want %d", got, want)
		}
	}
	if err := os.Remove(filepath.Join(dir, "traffic")); err != nil {
		t.Fatal(err)
	}
	l.Add(call("echo", OutcomeOK))
	wait(t, l, root, 1)
	closed(t, l)
	if n := strings.Count(out.String(), "cannot be recorded"); n != 1 || !strings.Contains(out.String(), "recorded again") {
		t.Errorf("told %d times, want once: %s", n, out)
	}
}

// The queue is bounded: first bodies are dropped, then records, and both are counted.
func TestBusy(t *testing.T) {
	l, root, _ := opened(t, all())
	release := make(chan struct{})
	other := &store{root: root} // another process, that does not let go
	defer other.close()
	unlock, err := other.lock()
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-release; unlock() }()
	l.Add(call("first", OutcomeOK))
	for { // until the writer has taken it, and waits for the lock
		l.mu.Lock()
		n := len(l.queue)
		l.mu.Unlock()
		if n == 0 {
			break
		}
	}
	big := call("echo", OutcomeOK)
	big.Result = []byte(strings.Repeat("r", MaxBody))
	const n = maxQueued + 100
	for range n {
		l.Add(big)
	}
	l.mu.Lock()
	size := len(l.bodies)
	l.mu.Unlock()
	lost := l.Lost()
	close(release)
	if size > maxBodies+maxQueued*maxClient || lost.Busy != 100 || lost.Bare == 0 || lost.Failed != 0 {
		t.Errorf("%d bytes wait, lost %+v, want 100 records", size, lost)
	}
	news := l.News()
	for len(readAll(t, root, Filter{After: maxQueued, Limit: 1})) == 0 {
		<-news
		news = l.News()
	}
	got := readAll(t, root, Filter{After: maxQueued, Limit: 1})[0]
	if !got.Busy || got.Arguments != "" || got.ArgumentsBytes == 0 {
		t.Errorf("got %+v, want a record without bodies that says why", got)
	}
}

func TestFollow(t *testing.T) {
	set := all()
	set.MaxBytes = 1 << 20 // small segments
	l, root, _ := opened(t, set)
	from0, err := Follow(root, Filter{})
	if err != nil {
		t.Fatal(err)
	}
	l.Add(call("zero", OutcomeOK))
	wait(t, l, root, 1)
	tail, err := Follow(root, Filter{Errors: true})
	if err != nil {
		t.Fatal(err)
	}
	back, err := Follow(root, Filter{After: 1})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []int64
	for i := range 40 {
		news := l.News()
		c := call("echo", OutcomeOK)
		c.Arguments = []byte(strings.Repeat("a", 8000))
		if i%10 == 0 {
			c.Outcome = "timeout"
			want = append(want, int64(i)+2)
		}
		l.Add(c)
		if i%8 == 7 {
			<-news
			recs, lost, err := tail.Next()
			if err != nil || lost {
				t.Fatalf("Next: lost %v, %v", lost, err)
			}
			for _, r := range recs {
				got = append(got, r.ID)
			}
		}
	}
	wait(t, l, root, 41)
	recs, _, err := tail.Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		got = append(got, r.ID)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("followed %v, want %v", got, want)
	}
	for name, c := range map[string]struct {
		t *Tail
		n int
	}{"from before the first": {from0, 41}, "after an id": {back, 40}} {
		recs, lost, err := c.t.Next()
		if err != nil || lost || len(recs) != c.n {
			t.Errorf("%s: %d records, lost %v, %v, want %d", name, len(recs), lost, err, c.n)
		}
		if recs, _, _ := c.t.Next(); len(recs) != 0 {
			t.Errorf("%s: %d records come twice", name, len(recs))
		}
	}
}

// Retention goes by age, but a clock that was set removes nothing until it has held
// for an hour, and what it has dated into the future goes in its turn.
func TestExpire(t *testing.T) {
	now := time.Now()
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		ages   []time.Duration // of segments 1, 11, 21 …
		steady bool
		left   []int64
	}{
		"nothing is old":          {[]time.Duration{2 * day, day, 0}, true, []int64{1, 11, 21}},
		"the oldest":              {[]time.Duration{9 * day, 8 * day, day}, true, []int64{21}},
		"all, and ids go on":      {[]time.Duration{20 * day, 19 * day}, true, []int64{21}},
		"all, after a clock jump": {[]time.Duration{20 * day, 19 * day}, false, []int64{1, 11}},
		"old when it was written": {[]time.Duration{30 * day, 19 * day}, false, []int64{11}},
		"from the future":         {[]time.Duration{-5000 * day, 8 * day, day}, true, []int64{21}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root := rootOf(t, dir)
			if err := root.MkdirAll("traffic/days", 0o700); err != nil {
				t.Fatal(err)
			}
			for i, age := range c.ages {
				seg := segment{first: int64(i)*10 + 1}
				r := Record{ID: seg.first + 9, Time: now.Add(-age)}
				path := filepath.Join(dir, seg.name())
				if err := os.WriteFile(path, appendRecord(nil, &r, nil, nil), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
			for _, d := range []string{now.AddDate(-2, 0, 0).Format(time.DateOnly), now.Format(time.DateOnly)} {
				if err := os.WriteFile(filepath.Join(dir, dayFile(d)), []byte(`{"day":"`+d+`","rows":[{"calls":1}]}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			l := &Log{cfg: Config{Root: root}, sums: newSums(root)}
			w := writer{l: l, store: store{root: root}}
			defer w.store.close()
			if err := w.expire(*all(), now, c.steady); err != nil {
				t.Fatal(err)
			}
			have, err := segments(root)
			if err != nil {
				t.Fatal(err)
			}
			var left []int64
			for _, s := range have {
				left = append(left, s.first)
			}
			if !reflect.DeepEqual(left, c.left) {
				t.Errorf("segments %v are left, want %v", left, c.left)
			}
			if w.store.next != int64(len(c.ages))*10+1 {
				t.Errorf("the next id is %d, want %d", w.store.next, len(c.ages)*10+1)
			}
			days, err := Daily(root, nil, DayQuery{By: ByTotal})
			if err != nil || len(days) != 1 {
				t.Errorf("%d days are left (%v), want the one of this year", len(days), err)
			}
		})
	}
}

func TestDaily(t *testing.T) {
	l, root, _ := opened(t, all())
	for i := range 2000 { // more tools than a day has room for
		c := call(fmt.Sprint("tool", i), OutcomeOK)
		c.Bare = true
		if i%100 == 0 {
			c.Outcome = "timeout"
		}
		l.Add(c)
	}
	for i := range 50 {
		c := call(fmt.Sprint("file:///", i), OutcomeOK)
		c.Method = "resources/read"
		l.Add(c)
	}
	eventually.True(t, "all calls are written", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.tried == 2050
	})
	check := func(l *Log) {
		t.Helper()
		days, err := Daily(root, l, DayQuery{By: ByTotal})
		if err != nil || len(days) != 1 || len(days[0].Rows) != 1 {
			t.Fatalf("Daily = %+v, %v", days, err)
		}
		sum := days[0].Rows[0]
		if sum.Calls != 2050 || sum.Errors != 20 || sum.MaxMS != 12 || sum.Buckets[4] != 2050 || sum.In != 2050*16 {
			t.Errorf("the sum is %+v", sum)
		}
		days, err = Daily(root, l, DayQuery{By: ByTool})
		if err != nil || len(days[0].Rows) > maxRows {
			t.Errorf("%d rows, want at most %d (%v)", len(days[0].Rows), maxRows, err)
		}
		if days, err = Daily(root, l, DayQuery{By: ByClient, Client: "nobody"}); err != nil || len(days) != 0 {
			t.Errorf("Daily of nobody = %+v, %v", days, err)
		}
	}
	check(l)
	closed(t, l)
	check(nil)
}

// A log that is off records nothing, and goes on when it is switched on.
func TestOff(t *testing.T) {
	var mu sync.Mutex
	set := *all()
	set.Days = 0
	root := rootOf(t, t.TempDir())
	l := New(Config{Root: root, Settings: func() Settings { mu.Lock(); defer mu.Unlock(); return set }})
	defer closed(t, l)
	l.Add(call("unseen", OutcomeOK))
	mu.Lock()
	set.Days = 7
	mu.Unlock()
	l.Refresh()
	l.Add(call("seen", OutcomeOK))
	if got := wait(t, l, root, 1); got[0].Tool != "seen" {
		t.Errorf(`got %+v, want the call of "seen"`, got)
	}
	var off *Log
	off.Add(call("nowhere", OutcomeOK))
}

func BenchmarkAdd(b *testing.B) {
	root := rootOf(b, b.TempDir())
	l := New(Config{Root: root, Settings: func() Settings { return *all() }})
	defer closed(b, l)
	c := call("echo", OutcomeOK)
	c.Result = []byte(strings.Repeat("r", 300))
	b.ReportAllocs()
	for b.Loop() {
		l.Add(c)
	}
	lost := l.Lost()
	b.ReportMetric(float64(lost.Busy)/float64(b.N), "dropped/op")
}

// BenchmarkWrite measures the cost of a record off the path of the call.
func BenchmarkWrite(b *testing.B) {
	root := rootOf(b, b.TempDir())
	l := &Log{cfg: Config{Root: root, Settings: func() Settings { return *all() }}, sums: newSums(root), news: make(chan struct{})}
	w := writer{l: l, store: store{root: root}, clients: map[string]client{}}
	l.configure()
	defer w.store.close()
	c := call("echo", OutcomeOK)
	c.Result = []byte(strings.Repeat("r", 300))
	l.wake = make(chan struct{}, 1)
	b.ReportAllocs()
	const batch = 2000
	for b.Loop() {
		for range batch {
			l.Add(c)
		}
		w.flush()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/record")
}

// USE-3: a client that makes a call and then queries the record finds it.
func TestSettle(t *testing.T) {
	l, root, _ := opened(t, all())
	for n := range 5 {
		l.Add(call("echo", OutcomeOK))
		l.Settle(t.Context())
		if got := readAll(t, root, Filter{Limit: 50}); len(got) != n+1 {
			t.Fatalf("after call %d: %d records", n+1, len(got))
		}
	}
	closed(t, l)
	l.Settle(t.Context())
	(*Log)(nil).Settle(t.Context())
}
