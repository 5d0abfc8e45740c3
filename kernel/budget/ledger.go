package budget

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// The settings with the limits, in US cents.
const (
	SessionKey = "budget.session_cents"
	DayKey     = "budget.day_cents"
)

const (
	file     = "spent.json"
	lockFile = "spent.lock"

	nano    = 1e9                     // of a dollar, in which sums are kept: they do not drift
	cent    = nano / 100              //
	maxCall = 100_000 * int64(nano)   // one call costs no more, whatever a plugin says
	maxSum  = math.MaxInt64 - maxCall // a sum stays there
)

// Config assembles a [Ledger]. All fields but Saved and Now are required.
type Config struct {
	Data     *os.Root // for the sum of the day
	Sessions *os.Root // for those of sessions, each in the folder of its session
	// Saved is called with the session and the name of a file that was written, below the data directory.
	Saved func(id, name string)
	// Limit returns a limit in US cents, 0 for none.
	Limit func(key string) int
	Now   func() time.Time
}

// Ledger has the sums. See [New].
type Ledger struct {
	cfg Config
	day sum

	mu       sync.Mutex
	sessions map[string]*sum
}

// New returns a ledger.
func New(cfg Config) *Ledger {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Saved == nil {
		cfg.Saved = func(string, string) {}
	}
	return &Ledger{cfg: cfg, day: sum{root: cfg.Data, name: file, lock: lockFile}, sessions: map[string]*sum{}}
}

// of returns the sum of the session that a session belongs to.
func (l *Ledger) of(root string) *sum {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions[root]
	if s == nil {
		folder := event.Folder(root)
		s = &sum{root: l.cfg.Sessions, name: path.Join(folder, file), folder: folder}
		l.sessions[root] = s
	}
	return s
}

// Forget drops what is in memory of a session; its file stays. A sum that could not be written is
// kept: nothing else has it, and the next [Ledger.Allow] of the session tries again.
func (l *Ledger) Forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[session]; s != nil && s.written() {
		delete(l.sessions, session)
	}
}

func (l *Ledger) today() string { return l.cfg.Now().UTC().Format(time.DateOnly) }

// Allow returns why a session, or its sub-agent, cannot call a model now.
func (l *Ledger) Allow(session string) error {
	if cents := l.cfg.Limit(SessionKey); cents > 0 {
		at, err := l.of(event.Root(session)).now("")
		if err != nil {
			return fmt.Errorf("nobody knows what this session has cost, which %s limits: %w", SessionKey, err)
		}
		if at.Nanos >= int64(cents)*cent {
			return fmt.Errorf("this session has cost %s, and %s allows %s: start another one, or raise the limit (yaya config set %s %d)", dollars(at.Nanos), SessionKey, dollars(int64(cents)*cent), SessionKey, enough(at.Nanos, cents))
		}
	}
	if cents := l.cfg.Limit(DayKey); cents > 0 {
		at, err := l.day.now(l.today())
		if err != nil {
			return fmt.Errorf("nobody knows what all sessions have cost today, which %s limits: %w", DayKey, err)
		}
		if at.Nanos >= int64(cents)*cent {
			return fmt.Errorf("all sessions together have cost %s on %s (UTC), and %s allows %s a day: wait for the next day, or raise the limit (yaya config set %s %d)", dollars(at.Nanos), at.Day, DayKey, dollars(int64(cents)*cent), DayKey, enough(at.Nanos, cents))
		}
	}
	return nil
}

// enough is a limit in cents that lets a sum double: of what was spent, or of the limit that was
// reached. One call can cost many times the limit.
func enough(spent int64, limit int) int64 {
	return 2 * max((spent+cent-1)/cent, int64(limit))
}

func dollars(nanos int64) string { return fmt.Sprintf("$%.2f", float64(nanos)/nano) }

// Today returns what all sessions that use a data directory have cost today, in US dollars. It needs no
// ledger: another process may have it.
func Today(data *os.Root, now time.Time) (usd float64, err error) {
	s := sum{root: data, name: file}
	at, err := s.read()
	return float64(at.on(now.UTC().Format(time.DateOnly)).Nanos) / nano, err
}

// Limited reports whether there is a limit, and returns the name of its setting.
func (l *Ledger) Limited() (key string, ok bool) {
	for _, key := range []string{SessionKey, DayKey} {
		if l.cfg.Limit(key) > 0 {
			return key, true
		}
	}
	return "", false
}

// Spent adds the cost of a call in US dollars. An error means that a sum is not on the disk, which
// [Ledger.Allow] tries again.
func (l *Ledger) Spent(session string, usd float64) error {
	if !(usd > 0) { // nor is it a number
		return nil
	}
	n := maxCall
	if usd < float64(maxCall)/nano {
		n = int64(math.Ceil(usd * nano)) // or many small calls would cost nothing
	}
	root := event.Root(session)
	s := l.of(root)
	err := s.add(n, "")
	if err == nil {
		l.cfg.Saved(root, path.Join("sessions", s.name))
	}
	return errors.Join(err, l.day.add(n, l.today()))
}
