//go:build unix

package proc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// guardEnv turns the program into the guard when it is set in its environment.
const guardEnv = "YAYA_PROCESS_GUARD"

// GuardMain must be the first call of main. In an ordinary process it returns
// false at once. In a process that a [Manager] started as its guard it does the
// guard's work and returns true when the owner is gone and nothing is left to
// kill; main returns then. The same holds for the process that [StartForUser]
// inserts between yaya and the program.
func GuardMain() bool {
	if os.Getenv(openerEnv) != "" {
		if err := opener(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, "yaya:", err)
		}
		return true
	}
	if os.Getenv(guardEnv) == "" {
		return false
	}
	// The guard must outlive the signals that end its owner.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	guard(os.Stdin)
	return true
}

// How a group is registered with the guard.
const (
	guardKills = '+' // it is killed at once
	guardWaits = '*' // its first process ends with the owner, after everything below it
	guardDrops = '-' // it has ended
)

// guarded is how the guard treats a process. The first one of a sandbox sees the owner's
// end itself, and must not be killed before it has ended what is below: orphans would
// leave the sandbox alive.
func guarded(p *Process) rune {
	if p.sandbox.Keeps() {
		return guardWaits
	}
	return guardKills
}

// guardPatience bounds how long the guard waits for the first processes of sandboxes.
const guardPatience = 5 * time.Second

// guard reads "+pgid marker", "*pgid marker" and "-pgid" lines until its input ends, and
// then kills what is still registered.
func guard(in io.Reader) {
	live, boxed := map[int]string{}, map[int]string{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if len(line) < 2 {
			continue
		}
		id, marker, _ := strings.Cut(line[1:], " ")
		pgid, err := strconv.Atoi(id)
		if err != nil || pgid <= 1 {
			continue
		}
		switch line[0] {
		case guardKills:
			live[pgid] = marker
		case guardWaits:
			boxed[pgid] = marker
		case guardDrops:
			delete(live, pgid)
			delete(boxed, pgid)
		}
	}
	killAll(live)
	for until := time.Now().Add(guardPatience); anyLives(boxed) && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	killAll(boxed)
}

// anyLives reports whether one of the groups has a process.
func anyLives(groups map[int]string) bool {
	for pgid := range groups {
		if syscall.Kill(-pgid, 0) == nil {
			return true
		}
	}
	return false
}

// killAll kills groups and processes with their markers. One may fork between two looks,
// so it looks again until none is found.
func killAll(live map[int]string) {
	for range 50 {
		found := 0
		for pgid, marker := range live {
			if syscall.Kill(-pgid, syscall.SIGKILL) == nil {
				found++
			}
			found += killMarked(marker)
		}
		if found == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// guardHandle is the owner's end of the guard.
type guardHandle struct {
	mu   sync.Mutex
	pipe *os.File
	cmd  *exec.Cmd
}

func startGuard() (*guardHandle, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("process guard: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("process guard: %w", err)
	}
	cmd := exec.CommandContext(context.Background(), self) //nolint:gosec // our own binary
	cmd.Env = []string{guardEnv + "=1", "GOMAXPROCS=1", "GOGC=20"}
	cmd.Dir = "/"
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("process guard: %w", err)
	}
	return &guardHandle{pipe: w, cmd: cmd}, nil
}

func (g *guardHandle) tell(line string) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := g.pipe.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("process guard: %w", err)
	}
	return nil
}

func (g *guardHandle) close() {
	if g == nil {
		return
	}
	_ = g.pipe.Close()
	_ = g.cmd.Wait()
}
