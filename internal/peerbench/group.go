//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// group is a program that was started here, in a process group of its own, with
// everything that it has started.
type group struct {
	cmd    *exec.Cmd
	log    string
	marker string // an entry of the environment, which what it starts inherits
	ended  chan struct{}
	err    error // of its end; read after ended
}

// startGroup starts a program in dir, which is also its home. Of this program's
// environment it gets the search path alone.
func startGroup(dir string, argv, env []string) (*group, error) {
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, err
	}
	g := &group{log: filepath.Join(dir, "log"), marker: "PEERBENCH_GROUP=" + rand.Text(), ended: make(chan struct{})}
	log, err := os.Create(g.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	g.cmd = exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	g.cmd.Dir, g.cmd.Stdout, g.cmd.Stderr = dir, log, log
	g.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + tmp, "LANG=C.UTF-8", g.marker}, env...)
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the program, which stop waits for
		g.err = g.cmd.Wait()
		close(g.ended)
	}()
	return g, nil
}

// members are the program and what it has started, by descent or by the marker.
func (g *group) members() ([]process, error) {
	all, err := processes("/proc")
	if err != nil {
		return nil, err
	}
	out := tree(all, g.cmd.Process.Pid)
	known := map[int]bool{}
	for _, p := range out {
		known[p.pid] = true
	}
	for _, p := range all {
		if !known[p.pid] && g.marked(p.pid) {
			out = append(out, p)
		}
	}
	return out, nil
}

func (g *group) marked(pid int) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false // ended, or not ours to read and so not ours to end
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == g.marker {
			return true
		}
	}
	return false
}

// grace is the time that a program has to end by itself.
const grace = 6 * time.Second

// stop ends the program and all that it has started, and waits for it.
func (g *group) stop() error {
	before, err := g.members()
	err = errors.Join(err, kill(-g.cmd.Process.Pid, syscall.SIGTERM))
	select {
	case <-g.ended:
	case <-time.After(grace):
	}
	// Those that are left, and those that have left the group and lost their parent.
	now, listErr := g.members()
	err = errors.Join(err, listErr, kill(-g.cmd.Process.Pid, syscall.SIGKILL))
	started := map[int]uint64{}
	if all, e := processes("/proc"); e == nil {
		for _, p := range all {
			started[p.pid] = p.started
		}
	}
	for _, p := range append(before, now...) {
		if started[p.pid] == p.started && p.pid != g.cmd.Process.Pid {
			err = errors.Join(err, kill(p.pid, syscall.SIGKILL))
		}
	}
	<-g.ended
	return err
}

// kill sends a signal; that nobody is left to get it is not an error.
func kill(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %d: %w", pid, err)
	}
	return nil
}

// said is the last line of the program's log that has words, for the reason why
// it did not start.
func (g *group) said() string {
	data, err := os.ReadFile(g.log)
	if err != nil {
		return ""
	}
	return lastWords(string(data))
}

// lastWords returns the last line of an output that is not blank, without
// addresses of the network, and cut.
func lastWords(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	words := strings.Fields(lines[len(lines)-1])
	for i, w := range words {
		if strings.Contains(w, "://") {
			words[i] = "(address)"
		}
	}
	line := strings.Join(words, " ")
	if r := []rune(line); len(r) > 160 {
		line = string(r[:160]) + "…"
	}
	return line
}
