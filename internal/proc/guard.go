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
// kill; main returns then. The same holds for the process that [StartForUser] puts
// between.
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

// guard reads "+pgid marker" and "-pgid" lines until its input ends, and then
// kills what is still registered.
func guard(in io.Reader) {
	live := map[int]string{}
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
		if line[0] == '+' {
			live[pgid] = marker
		} else {
			delete(live, pgid)
		}
	}
	// A process may fork between two looks, so look again until none is found.
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
