package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// manager is a service manager that listens to one yaya.
type manager struct {
	mu    sync.Mutex
	said  []map[string]string // messages, without those of the watchdog
	alive int                 // messages of the watchdog
}

// supervise makes the box's yaya tell a service manager; ready is called at each READY.
func (b *box) supervise(watchdog time.Duration, ready func()) *manager {
	b.t.Helper()
	m := new(manager)
	path := filepath.Join(b.dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		b.t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			lines := map[string]string{}
			for line := range strings.Lines(string(buf[:n])) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				lines[name] = value
			}
			if lines["READY"] == "1" {
				ready()
			}
			m.mu.Lock()
			if lines["WATCHDOG"] == "1" {
				m.alive++
			}
			delete(lines, "WATCHDOG")
			if len(lines) > 0 {
				m.said = append(m.said, lines)
			}
			m.mu.Unlock()
		}
	})
	b.t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	b.env = append(b.env, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC="+strconv.FormatInt(watchdog.Microseconds(), 10))
	return m
}

// states are the reports to the manager, in order, without those of the watchdog.
func (m *manager) states() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, lines := range m.said {
		for _, name := range []string{"READY", "RELOADING", "STOPPING"} {
			if lines[name] == "1" {
				out = append(out, name)
			}
		}
	}
	return out
}

// last is the last message.
func (m *manager) last() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said[len(m.said)-1]
}

func (m *manager) beats() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alive
}

// wait waits until the manager has got these states, and fails if it has got others.
func (m *manager) wait(t *testing.T, want ...string) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("the manager gets %q, has %q", want, m.states()), func() bool { return len(m.states()) >= len(want) })
	if got := m.states(); !slices.Equal(got, want) {
		t.Fatalf("the manager got %q, want %q", got, want)
	}
}

// OP-95: the service manager hears READY when yaya answers, RELOADING with the time and READY
// around a reload by SIGHUP and around a restart, STOPPING at the end alone, and the watchdog
// all the time.
func TestServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var answers []string // at each READY
	m := b.supervise(time.Second, func() {
		resp, err := http.Get("http://" + b.addr + "/health") //nolint:noctx // test
		if err != nil {
			answers = append(answers, err.Error())
			return
		}
		_ = resp.Body.Close()
		answers = append(answers, resp.Status)
	})
	p := b.daemon("serve", "--listen", b.addr)
	m.wait(t, "READY")
	if says := m.last()["STATUS"]; !strings.HasPrefix(says, "yaya ") || !strings.Contains(says, "http://"+b.addr) {
		t.Errorf("STATUS=%q, want the version and the address", says)
	}
	eventually.True(t, "the watchdog hears yaya", func() bool { return m.beats() >= 3 })

	var before unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
		t.Fatal(err)
	}
	b.edit("config.toml", "[approval]\ntimeout = \"90s\"\n")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.wait(t, "READY", "RELOADING", "READY")
	m.mu.Lock()
	at, err := strconv.ParseInt(m.said[1]["MONOTONIC_USEC"], 10, 64)
	m.mu.Unlock()
	if err != nil || at < before.Nano()/1000 {
		t.Errorf("MONOTONIC_USEC = %d, %v; want the time of the reload, after %d", at, err, before.Nano()/1000)
	}
	if out := b.must("config", "get", "approval.timeout"); !strings.Contains(out, "90s") {
		t.Errorf("after the reload approval.timeout is %s, want 90s", out)
	}

	b.restarted()
	m.wait(t, "READY", "RELOADING", "READY", "RELOADING", "READY")
	beats := m.beats()
	eventually.True(t, "the watchdog hears yaya after the restart", func() bool { return m.beats() >= beats+3 })

	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	m.wait(t, "READY", "RELOADING", "READY", "RELOADING", "READY", "STOPPING")
	for i, a := range answers {
		if a != "200 OK" {
			t.Errorf("at READY %d yaya answers %s, want 200 OK", i+1, a)
		}
	}
}

// OP-95: while a restart waits for calls, the watchdog hears yaya: the manager would kill it
// otherwise.
func TestWatchdogDuringDrain(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.edit("mcp.json", `{"mcpServers":{`+entryOf(fixture, "one", "")+`}}`)
	m := b.supervise(time.Second, func() {})
	b.serve()
	b.waitStates("one ready\n")
	call := exec.CommandContext(t.Context(), b.bin, b.args("mcp", "call", "one__wait")...)
	call.Env = b.environ()
	if err := call.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = call.Process.Kill()
		_ = call.Wait()
	}()
	eventually.True(t, "the call runs", func() bool { return strings.Contains(b.must("mcp", "call", "one__waits"), "1") })
	done := make(chan error, 1)
	go func() {
		out, err := b.run("restart", "--drain", "50s")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		done <- err
	}()
	m.wait(t, "READY", "RELOADING")
	beats := m.beats()
	eventually.True(t, "the watchdog hears yaya while it drains", func() bool { return m.beats() >= beats+5 })
	m.wait(t, "READY", "RELOADING") // it still drains
	if err := call.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("yaya restart = %v", err)
	}
	m.wait(t, "READY", "RELOADING", "READY")
}

// OP-96: yaya serves on sockets that the service manager passes, by their names, and nothing
// that it starts sees them. Without --listen it does so on whatever address they have, after a
// restart, too.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]bool{"with --listen": true, "without --listen": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socketActivation(t, listen)
		})
	}
}

func socketActivation(t *testing.T, listen bool) {
	b := newBox(t)
	if err := os.MkdirAll(filepath.Join(b.dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(b.dir, "d", "yaya.sock")
	local, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	var files []*os.File
	for _, l := range []interface{ File() (*os.File, error) }{tcp, local} {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	b.addr = tcp.Addr().String()
	// A client that comes before yaya waits.
	early := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + b.addr + "/health") //nolint:noctx // test
		if err != nil {
			early <- err.Error()
			return
		}
		_ = resp.Body.Close()
		early <- resp.Status
	}()
	start := func(names string) (*exec.Cmd, *output) {
		// The number of the process is known only there.
		args := append([]string{"-c", `export LISTEN_PID=$$; exec "$@"`, "sh", b.bin}, b.args("serve")...)
		if listen {
			args = append(args, "--listen", b.addr)
		}
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", args...)
		cmd.ExtraFiles = files
		cmd.Env = append(b.environ(), "LISTEN_FDS=2", "LISTEN_FDNAMES="+names)
		said := new(output)
		cmd.Stdout, cmd.Stderr = said, said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, said
	}
	p, said := start("listen:socket")
	ended := make(chan struct{})
	go func() {
		_ = p.Wait()
		close(ended)
	}()
	defer func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		<-ended
	}()
	select {
	case got := <-early:
		if got != "200 OK" {
			t.Errorf("a client that came before yaya got %s, want 200 OK", got)
		}
	case <-ended:
		t.Fatalf("yaya ended:\n%s", said)
	case <-time.After(eventually.Limit):
		t.Fatalf("a client that came before yaya is not answered:\n%s", said)
	}
	if out := b.must("mcp", "list"); strings.Contains(out, "no yaya runs") {
		t.Errorf("yaya mcp list over the passed socket:\n%s", out)
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.Process.Pid))
	if err != nil || !strings.Contains(string(environ), "LISTEN_FDS=2") {
		t.Fatalf("the test passed no sockets: %v", err)
	}
	b.restarted() // the next program gets them from this one
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ended

	// Names that no flag is for end the start, and say what to do.
	for names, want := range map[string]string{"other:local": "are for no listener"} {
		p, said := start(names)
		if err := p.Wait(); err == nil || !strings.Contains(said.String(), want) {
			t.Errorf("yaya with sockets %s = %v\n%s\nwant %q", names, err, said, want)
		}
	}
}
