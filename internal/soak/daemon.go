//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemon is the running yaya.
type daemon struct {
	bin, dir, addr, config string
	self                   string // this program
	cmd                    *exec.Cmd
	log                    *os.File
}

func (d *daemon) data() string { return filepath.Join(d.dir, "d") }

// pid is yaya's process id, which stays the same through restarts in place.
func (d *daemon) pid() int { return d.cmd.Process.Pid }

func start(ctx context.Context, bin, dir string) (*daemon, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0") // picks a port
	if err != nil {
		return nil, err
	}
	d := &daemon{bin: bin, dir: dir, addr: l.Addr().String(), config: filepath.Join(dir, "mcp.json"), self: self}
	_ = l.Close()
	for _, name := range []string{"c", "w"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	// Calls are recorded up to a bound that a run reaches within its warm-up.
	if err := os.WriteFile(filepath.Join(dir, "c", "config.toml"), []byte("[traffic]\nmax_bytes = 16777216\n"), 0o600); err != nil {
		return nil, err
	}
	if err := d.configure(false); err != nil {
		return nil, err
	}
	if d.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		return nil, err
	}
	d.cmd = exec.Command(bin, "serve", "--listen", d.addr, "--data-dir", d.data(), "--config-dir", filepath.Join(dir, "c"), "--mcp-config", d.config) //nolint:noctx // ended by stop
	d.cmd.Stderr, d.cmd.Stdout = d.log, d.log
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if _, err := d.get(ctx, "/health?ready=1"); err == nil {
			return d, nil
		}
	}
	d.stop()
	return nil, fmt.Errorf("yaya is not ready after a minute: see %s", d.log.Name())
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
	_ = d.log.Close()
}

// configure writes the servers: one that stays, one whose process is killed again and
// again, and, if more, one that a reload adds.
func (d *daemon) configure(more bool) error {
	entry := map[string]any{"command": d.self, "args": []string{"-fixture"}}
	servers := map[string]any{"steady": entry, "fragile": map[string]any{"command": d.self, "args": []string{"-fixture", d.dir}}}
	if more {
		servers["more"] = entry
	}
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return err
	}
	tmp := d.config + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, d.config)
}

// get asks yaya as its user.
func (d *daemon) get(ctx context.Context, path string) ([]byte, error) {
	return d.ask(ctx, http.MethodGet, path, nil)
}

func (d *daemon) ask(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+d.addr+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, out)
	}
	return out, nil
}

// killFragile kills the process of the server "fragile", which this run's folder among
// its arguments identifies.
func (d *daemon) killFragile() (killed int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil {
			continue
		}
		if args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"); slices.Equal(args, []string{d.self, "-fixture", d.dir}) {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
	}
	return killed
}

// size returns the bytes that the files below a folder take.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // files come and go
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return n
}

var (
	rss        = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
	goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
)

// number returns the first group of a match as a number; it is 0 without a match.
func number(re *regexp.Regexp, text []byte) float64 {
	m := re.FindSubmatch(text)
	if m == nil {
		return 0
	}
	f, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return 0
	}
	return f
}

// sample measures the present figures.
func (d *daemon) sample(ctx context.Context, at time.Duration) (sample, error) {
	proc := fmt.Sprintf("/proc/%d/", d.pid())
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return sample{}, err
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		return sample{}, err
	}
	metrics, err := d.get(ctx, "/metrics")
	if err != nil {
		return sample{}, err
	}
	s := sample{at: at}
	s.figures[memory] = number(rss, status) / 1024
	s.figures[descriptors] = float64(len(fds))
	s.figures[routines] = number(goroutines, metrics)
	s.figures[disk] = float64(size(d.data())) / (1 << 20)
	for i, v := range s.figures {
		if v == 0 {
			return s, fmt.Errorf("no figure of %s", names[i])
		}
	}
	return s, nil
}
