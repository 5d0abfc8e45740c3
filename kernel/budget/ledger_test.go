package budget_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a data directory, its limits and its clock.
type world struct {
	t              *testing.T
	data, sessions *os.Root
	limits         map[string]int
	now            time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, limits: map[string]int{}, now: time.Date(2026, 11, 29, 23, 59, 0, 0, time.UTC)}
	w.data, w.sessions = root(t, t.TempDir()), root(t, t.TempDir())
	return w
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// open returns a ledger, as another process or after a restart.
func (w *world) open() *budget.Ledger {
	return budget.New(budget.Config{Data: w.data, Sessions: w.sessions, Limit: func(key string) int { return w.limits[key] }, Now: func() time.Time { return w.now }})
}

func (w *world) spend(l *budget.Ledger, session string, usd float64) {
	w.t.Helper()
	if err := l.Spent(session, usd); err != nil {
		w.t.Fatalf("Spent(%q, %v) = %v, want no error", session, usd, err)
	}
}

// refuses checks that a session is refused with these words, or allowed without any.
func (w *world) refuses(l *budget.Ledger, session string, words ...string) {
	w.t.Helper()
	err := l.Allow(session)
	if len(words) == 0 {
		if err != nil {
			w.t.Errorf("Allow(%q) = %v, want no error", session, err)
		}
		return
	}
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			w.t.Errorf("Allow(%q) = %v, want an error with %q", session, err, word)
		}
	}
}

const agent = "s1" + event.AgentSeparator + "a1" + event.AgentSeparator + "b1"

// The limit that a refusal names is above what was spent, even if one call has cost many times the
// limit.
func TestTheLimitToSet(t *testing.T) {
	for name, c := range map[string]struct {
		key   string
		limit int
		spent float64
		want  string
	}{
		"a session at its limit": {budget.SessionKey, 50, 0.50, "budget.session_cents 100)"},
		"far beyond it":          {budget.SessionKey, 1, 0.3601, "budget.session_cents 74)"},
		"a day":                  {budget.DayKey, 1, 2, "budget.day_cents 400)"},
	} {
		w := newWorld(t)
		w.limits[c.key] = c.limit
		l := w.open()
		w.spend(l, "s1", c.spent)
		err := l.Allow("s1")
		if err == nil || !strings.HasSuffix(err.Error(), "raise the limit (yaya config set "+c.want) {
			t.Errorf("%s: Allow = %v, want an error that ends with %q", name, err, c.want)
		}
	}
}

// A session is refused once it and its sub-agents have cost as much as the limit, and no other is. The sum
// outlives the ledger.
func TestSession(t *testing.T) {
	w := newWorld(t)
	w.limits[budget.SessionKey] = 50
	l := w.open()
	w.spend(l, "s1", 0.25)
	w.spend(l, "s1", 0)
	w.spend(l, "s1", -1)
	w.spend(l, "s1", math.NaN())
	w.spend(l, agent, 0.2499)
	w.refuses(l, "s1")
	w.refuses(l, agent)
	w.spend(l, agent, 0.0001)
	for _, l := range []*budget.Ledger{l, w.open()} {
		for _, session := range []string{"s1", agent} {
			w.refuses(l, session, "this session has cost $0.50", "budget.session_cents allows $0.50", "yaya config set budget.session_cents 100")
		}
		w.refuses(l, "s2")
	}
	l.Forget("s1")
	w.refuses(l, "s1", "$0.50")
	w.limits[budget.SessionKey] = 51
	w.refuses(l, "s1")
	delete(w.limits, budget.SessionKey)
	w.spend(l, "s1", math.Inf(1))
	w.spend(l, "s1", 1e300)
	w.refuses(l, "s1")
}

// The limit of a day is on all sessions together, ends with the day (UTC), and does not end when
// the clock is set back.
func TestDay(t *testing.T) {
	w := newWorld(t)
	w.limits[budget.DayKey] = 100
	l := w.open()
	w.spend(l, "s1", 0.6)
	w.refuses(l, "s2")
	w.spend(l, "s2", 0.4)
	for _, l := range []*budget.Ledger{l, w.open()} {
		w.refuses(l, "s3", "all sessions together have cost $1.00 on 2026-11-29 (UTC)", "budget.day_cents allows $1.00 a day", "yaya config set budget.day_cents 200")
	}
	w.now = w.now.Add(time.Minute)
	w.refuses(l, "s3")
	w.spend(l, "s3", 1)
	w.now = w.now.Add(-48 * time.Hour)
	for _, l := range []*budget.Ledger{l, w.open()} {
		w.refuses(l, "s3", "on 2026-11-30")
	}
}

// The cost of today is known without a ledger.
func TestToday(t *testing.T) {
	w := newWorld(t)
	check := func(want float64) {
		t.Helper()
		if got, err := budget.Today(w.data, w.now); err != nil || got != want {
			t.Errorf("Today() = %v, %v, want %v", got, err, want)
		}
	}
	check(0)
	w.spend(w.open(), "a", 1.5)
	w.spend(w.open(), "b", 0.25)
	check(1.75)
	w.now = w.now.Add(time.Hour) // another day
	check(0)
}

// Nothing is lost or counted twice when many sessions, and several processes, spend at once.
func TestAtOnce(t *testing.T) {
	w := newWorld(t)
	var work sync.WaitGroup
	for p := range 2 {
		l := w.open()
		for i := range 8 {
			work.Go(func() {
				for range 10 {
					for _, session := range []string{fmt.Sprintf("p%d-s%d", p, i%4), fmt.Sprintf("p%d-s%d%sa", p, i%4, event.AgentSeparator)} {
						if err := l.Spent(session, 0.01); err != nil {
							t.Errorf("Spent(%q) = %v, want no error", session, err)
						}
						if err := l.Allow(session); err != nil {
							t.Errorf("Allow(%q) = %v, want no error", session, err)
						}
					}
				}
			})
		}
	}
	work.Wait()
	l := w.open()
	w.limits[budget.DayKey] = 320
	w.refuses(l, "s", "$3.20")
	w.limits[budget.DayKey] = 321
	w.refuses(l, "s")
	w.limits[budget.SessionKey] = 40
	w.refuses(l, "p1-s3", "$0.40")
	w.limits[budget.SessionKey] = 41
	w.refuses(l, "p1-s3")
}

// A sum that cannot be read or written refuses the calls that it limits, and no others. A cost that could
// not be written is written later.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	l := w.open()
	w.spend(l, "s1", 0.3)
	for name, text := range map[string]string{"not JSON": "{", "negative": `{"usd_nanos":-1}`, "no day": `{"day":"x","usd_nanos":1}`, "too long": strings.Repeat(" ", 5000), "too much": `{"usd_nanos":9223372036854775807}`} {
		if err := w.data.WriteFile("spent.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.limits[budget.DayKey] = 50
		w.refuses(l, "s1", "budget.day_cents", "spent.json is damaged (remove it to begin at $0)")
		w.limits = map[string]int{budget.SessionKey: 31}
		w.refuses(l, name)
		w.refuses(l, "s1")
	}
	if err := l.Spent("s1", 0.2); err == nil {
		t.Error("Spent with a damaged sum of the day = nil, want an error")
	}
	w.refuses(l, "s1", "$0.50")
	if err := w.data.Remove("spent.json"); err != nil {
		t.Fatal(err)
	}
	w.limits = map[string]int{budget.DayKey: 20}
	w.refuses(l, "s1", "$0.20")
	w.refuses(w.open(), "s1", "$0.20")
}

// Each file that is written is told, for the copies of a cluster.
func TestSaved(t *testing.T) {
	w := newWorld(t)
	var told []string
	l := budget.New(budget.Config{Data: w.data, Sessions: w.sessions, Limit: func(string) int { return 0 }, Saved: func(id, name string) { told = append(told, id+" "+name) }})
	w.spend(l, agent, 1)
	if got := strings.Join(told, ", "); got != "s1 sessions/s1/spent.json" {
		t.Errorf("told %q, want the file of the session", got)
	}
}

// Forget keeps a sum that could not be written.
func TestForgetKeepsWhatIsNotWritten(t *testing.T) {
	w := newWorld(t)
	w.limits[budget.SessionKey] = 50
	l := w.open()
	if err := w.sessions.Mkdir("s1", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.sessions.Mkdir("s1/spent.json", 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	if err := l.Spent("s1", 0.5); err == nil {
		t.Fatal("Spent = nil, want an error: the file cannot be written")
	}
	l.Forget("s1")
	if err := w.sessions.Remove("s1/spent.json"); err != nil {
		t.Fatal(err)
	}
	w.refuses(l, "s1", "this session has cost $0.50")
	l.Forget("s1")
	w.refuses(w.open(), "s1", "this session has cost $0.50")
}
