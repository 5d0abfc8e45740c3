//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Linux gives no process a time of day of its own, and programs in Go ask no library that could be
// exchanged. So the fault that steps clocks runs programs that were built with another package
// time: go build -overlay puts it beside the source that everybody builds, which stays as it is.

// clockEnv names the file with the seconds by which such a program is off.
const clockEnv = "CLUSTERBENCH_CLOCK"

// clockSource is the addition to package time. A goroutine reads the file ten times a second, because
// Now runs where nothing may be asked of the system.
const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
)

var clockOff atomic.Int64

func init() {
	if name, _ := syscall.Getenv("` + clockEnv + `"); name != "" {
		go func() {
			for ; ; Sleep(100 * Millisecond) {
				clockOff.Store(clockIn(name))
			}
		}()
	}
}

func clockIn(name string) (off int64) {
	fd, err := open(name)
	if err != nil {
		return 0
	}
	defer closefd(fd)
	var text [16]byte
	n, _ := read(fd, text[:])
	sign := int64(1)
	for _, c := range text[:max(n, 0)] {
		if c == '-' {
			sign = -1
		} else if c >= '0' && c <= '9' {
			off = off*10 + int64(c-'0')
		}
	}
	return sign * off
}
`

// writeOverlay writes the overlay for go build: overlay FOLDER.
func writeOverlay(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: overlay FOLDER")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	raw, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return err
	}
	begin, rest, found := bytes.Cut(raw, []byte("\nfunc Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"))
	if !found {
		return errors.New("time.Now of this version of Go is not the one that the overlay changes: change clock.go")
	}
	changed := slices.Concat(begin, []byte("\nfunc Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += clockOff.Load()\n"), rest)
	replace := map[string]string{filepath.Join(source, "time.go"): filepath.Join(dir, "time.go"), filepath.Join(source, "clockstep.go"): filepath.Join(dir, "clockstep.go")}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	err = os.MkdirAll(dir, 0o700)
	for name, data := range map[string][]byte{"time.go": changed, "clockstep.go": []byte(clockSource), "overlay.json": list} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return err
}

// cannotStep returns why clocks cannot be stepped, "" if they can: yaya and this program, which the
// NATS servers run, need the other package time.
func cannotStep(bin string) string {
	self, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	for _, name := range []string{bin, self} {
		out, err := exec.CommandContext(context.Background(), "go", "tool", "nm", name).Output() //nolint:gosec // a program of this run
		if err != nil || !bytes.Contains(out, []byte(" time.clockOff\n")) {                      // yaya as it is installed has no symbols
			return filepath.Base(name) + " has the usual package time (make cluster-bench builds others)"
		}
	}
	return ""
}

// clockFile is that of a machine.
func (m *machine) clockFile() string { return filepath.Join(m.g.dir, fmt.Sprint("clock", m.i)) }

// step sets the clocks of a machine's programs off, and waits until yaya's is.
func (m *machine) step(ctx context.Context, by time.Duration) error {
	if err := os.WriteFile(m.clockFile(), fmt.Append(nil, int64(by.Seconds())), 0o600); err != nil {
		return err
	}
	return until(ctx, fmt.Sprint("the clock of ", m.name, " is off by ", by), func() bool {
		a, err := m.send(ctx, http.MethodGet, "/health", "", nil)
		return err == nil && (time.Until(a.date)-by).Abs() < time.Minute
	})
}

// stepClock sets the clock of a machine an hour ahead, and then an hour behind.
func stepClock(ctx context.Context, r *round, i int) (heal, error) {
	m := r.m[i]
	if err := m.step(ctx, time.Hour); err != nil {
		return nil, err
	}
	if err := r.wait(ctx, r.lasts); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return m.step(ctx, 0) }, m.step(ctx, -time.Hour)
}
