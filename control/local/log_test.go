package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/controltest"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
)

func TestMain(m *testing.M) {
	if at, dir, ok := strings.Cut(os.Getenv(sealChild), ":"); ok {
		n, err := strconv.Atoi(at)
		if err == nil {
			err = sealingChild(dir, n)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func dataDir(t *testing.T) (string, journal.FS) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return dir, journal.Root(root)
}

func TestLocalContract(t *testing.T) {
	_, fsys := dataDir(t)
	controltest.Log(t, func(t *testing.T, p control.Projection) (control.Log, func()) {
		l, err := local.Open(fsys, local.Options{Projections: []control.Projection{p}})
		if err != nil {
			t.Fatal(err)
		}
		return l, func() {
			if err := l.Close(); err != nil {
				t.Errorf("Close of the log = %v, want no error", err)
			}
		}
	})
}

func TestLoopbackContract(t *testing.T) { controltest.Fanout(t, new(control.Loopback)) }

func open(t *testing.T, fsys journal.FS, p ...control.Projection) *local.Log {
	t.Helper()
	l, err := local.Open(fsys, local.Options{Projections: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

var change = control.Change{Event: "test_event", Actor: "tester", Target: "t"}

// R29, R30: a disk that fails refuses the change, which neither happens now nor
// comes back later; when it works again, so does the log.
func TestFailingDisk(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			_, fsys := dataDir(t)
			var failing atomic.Bool
			faults := &journaltest.Faults{FS: fsys, Before: func(s journaltest.Step) error {
				if failing.Load() && s.Op == op {
					return syscall.ENOSPC
				}
				return nil
			}}
			rec := &controltest.Recorder{}
			l := open(t, faults, rec)
			if _, err := l.Append(t.Context(), change, nil); err != nil {
				t.Fatal(err)
			}
			failing.Store(true)
			for range 2 {
				if _, err := l.Append(t.Context(), change, nil); !errors.Is(err, control.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("a failing %s: %v", op, err)
				}
			}
			if l.State().Last != 1 || len(rec.Entries()) != 1 {
				t.Errorf("the refused change is there: %+v", l.State())
			}
			failing.Store(false)
			e, err := l.Append(t.Context(), change, nil)
			if err != nil || e.Index != 2 {
				t.Errorf("afterwards: %+v, %v", e, err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			again := &controltest.Recorder{}
			open(t, fsys, again)
			if got := again.Entries(); len(got) != 2 {
				t.Errorf("after a restart: %v", got)
			}
		})
	}
}

// An entry that a projection cannot take stops the log, now and on the next start.
func TestUnappliedEntry(t *testing.T) {
	_, fsys := dataDir(t)
	boom := errors.New("boom")
	bad := &controltest.Recorder{Fail: func(e control.Entry) error {
		if e.Event == "bad" {
			return boom
		}
		return nil
	}}
	l := open(t, fsys, bad)
	if _, err := l.Append(t.Context(), control.Change{Event: "bad", Actor: "a"}, nil); !errors.Is(err, boom) {
		t.Errorf("got %v, want %v", err, boom)
	}
	if _, err := l.Append(t.Context(), change, nil); !errors.Is(err, control.ErrUnavailable) {
		t.Errorf("what follows: %v", err)
	}
	l.Close()
	if _, err := local.Open(fsys, local.Options{Projections: []control.Projection{bad}}); !errors.Is(err, boom) {
		t.Errorf("the next start: %v", err)
	}
}

// W-44: the chain shows any change of the file, and one process writes it.
func TestDamageIsNamed(t *testing.T) {
	dir, fsys := dataDir(t)
	l := open(t, fsys)
	for range 5 {
		if _, err := l.Append(t.Context(), change, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := local.Open(fsys, local.Options{}); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	l.Close()
	path := filepath.Join(dir, local.File)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(`"tester"`), []byte(`"teste2"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *journal.DamageError
	if _, err := local.Open(fsys, local.Options{}); !errors.As(err, &damage) || damage.Entry != 1 {
		t.Errorf("opened: %v", err)
	}
	if _, err := local.AuditFile(t.Context(), fsys, control.Query{}); !errors.As(err, &damage) {
		t.Errorf("queried: %v", err)
	}
}

func TestAudit(t *testing.T) {
	_, fsys := dataDir(t)
	if got, err := local.AuditFile(t.Context(), fsys, control.Query{}); err != nil || len(got) != 0 {
		t.Errorf("without a log: %v, %v", got, err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 6_700_000, time.UTC)
	l, err := local.Open(fsys, local.Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []control.Change{
		{Event: "device_approved", Actor: "owner", Target: "phone", Payload: map[string]any{"label": "Phone"}},
		{Event: "device_revoked", Actor: "owner", Target: "phone"},
		{Event: "agent_registered", Actor: "k1", Target: "a1"},
		{Event: "agent_registered", Actor: "k2", Target: "a2"},
	} {
		if _, err := l.Append(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	at := func(n int) time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5+n, 6_000_000, time.UTC)
	}
	for name, tt := range map[string]struct {
		q    control.Query
		want []int64
	}{
		"all":        {control.Query{}, []int64{1, 2, 3, 4}},
		"actor":      {control.Query{Actor: "k2"}, []int64{4}},
		"target":     {control.Query{Target: "phone"}, []int64{1, 2}},
		"event":      {control.Query{Event: "agent_registered"}, []int64{3, 4}},
		"pattern":    {control.Query{Event: "device_*"}, []int64{1, 2}},
		"bad":        {control.Query{Event: "["}, nil},
		"since":      {control.Query{Since: at(3)}, []int64{3, 4}},
		"until":      {control.Query{Until: at(3)}, []int64{1, 2}},
		"after":      {control.Query{After: 3}, []int64{4}},
		"limit":      {control.Query{Limit: 2}, []int64{3, 4}},
		"limit one":  {control.Query{Limit: 1, Event: "device_*"}, []int64{2}},
		"limit many": {control.Query{Limit: 1 << 62}, []int64{1, 2, 3, 4}},
	} {
		fromFile, err := local.AuditFile(t.Context(), fsys, tt.q)
		fromLog, err2 := control.AuditLog(t.Context(), l, tt.q)
		if err != nil || err2 != nil {
			t.Errorf("%s: got %v, %v, want no error", name, err, err2)
		}
		for _, got := range [][]control.Audit{fromFile, fromLog} {
			var indexes []int64
			for _, a := range got {
				indexes = append(indexes, a.Index)
			}
			if len(indexes) != len(tt.want) || (len(indexes) > 0 && (indexes[0] != tt.want[0] || indexes[len(indexes)-1] != tt.want[len(tt.want)-1])) {
				t.Errorf("%s: %v, want %v", name, indexes, tt.want)
			}
		}
	}
	got, err := local.AuditFile(t.Context(), fsys, control.Query{Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	a := got[0] // W-44: the fields of an audit event
	if a.Type != "audit" || a.Event != "device_approved" || a.Actor != "owner" || a.Target != "phone" || a.Index != 1 || string(a.Payload) != `{"label":"Phone"}` || a.Time != "2026-01-02T03:04:06.006Z" {
		t.Errorf("got %+v; want the fields of the first entry, device_approved", a)
	}
}

// W-47: audit events are forwarded in order, and a sink that fails gets again what
// it has not taken.
func TestForward(t *testing.T) {
	_, fsys := dataDir(t)
	l := open(t, fsys)
	for range 5 {
		if _, err := l.Append(t.Context(), change, nil); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	var got []int64
	next, err := control.Forward(t.Context(), l, 1, func(a control.Audit) error {
		if a.Index == 3 {
			return broken
		}
		got = append(got, a.Index)
		return nil
	})
	if !errors.Is(err, broken) || next != 3 {
		t.Fatalf("got %v, %v, want error %v, next 3", next, err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	next, err = control.Forward(ctx, l, next, func(a control.Audit) error {
		if got = append(got, a.Index); a.Index == 5 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || next != 6 || len(got) != 5 || got[2] != 3 || got[4] != 5 {
		t.Errorf("got %v, %v, %v, want error %v, next 6, len(got) 5, got[2] 3, got[4] 5", next, err, got, context.Canceled)
	}
}
