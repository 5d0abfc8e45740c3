package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// keeper is a service manager: it holds the sockets of a yaya, and starts the program again
// when it ends.
type keeper struct {
	b     *box
	files []*os.File
	said  *output
	work  sync.WaitGroup
	bin   string // the program that it runs, whatever the test runs meanwhile

	mu      sync.Mutex
	process *os.Process // nil while none runs
	over    bool
}

// keep starts the box's yaya under a service manager.
func (b *box) keep() *keeper {
	b.t.Helper()
	k := &keeper{b: b, bin: b.bin, said: new(output)}
	if err := os.MkdirAll(filepath.Join(b.dir, "d"), 0o700); err != nil {
		b.t.Fatal(err)
	}
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.t.Fatal(err)
	}
	local, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(b.dir, "d", "yaya.sock"), Net: "unix"})
	if err != nil {
		b.t.Fatal(err)
	}
	local.SetUnlinkOnClose(false)
	b.addr = tcp.Addr().String()
	for _, l := range []interface {
		File() (*os.File, error)
		Close() error
	}{tcp, local} {
		f, err := l.File()
		if err := errors.Join(err, l.Close()); err != nil {
			b.t.Fatal(err)
		}
		k.files = append(k.files, f)
	}
	k.work.Go(k.run)
	b.t.Cleanup(k.stop)
	return k
}

// run runs the program until the end of the test.
func (k *keeper) run() {
	for {
		args := append([]string{"-c", `export LISTEN_PID=$$; exec "$@"`, "sh", k.bin}, k.b.args("serve", "--listen", k.b.addr)...)
		cmd := exec.Command("/bin/sh", args...)
		cmd.ExtraFiles = k.files
		cmd.Env = append(k.b.environ(), "LISTEN_FDS=2", "LISTEN_FDNAMES=listen:socket")
		cmd.Stdout, cmd.Stderr = k.said, k.said
		k.mu.Lock()
		if k.over {
			k.mu.Unlock()
			return
		}
		err := cmd.Start()
		k.process = cmd.Process
		k.mu.Unlock()
		if err != nil {
			k.b.t.Errorf("Start of yaya = %v, want no error", err)
			return
		}
		_ = cmd.Wait()
		k.mu.Lock()
		k.process = nil
		k.mu.Unlock()
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	k.over = true
	if k.process != nil {
		_ = k.process.Signal(syscall.SIGTERM)
	}
	k.mu.Unlock()
	k.work.Wait()
	for _, f := range k.files {
		_ = f.Close()
	}
	if k.b.t.Failed() {
		k.b.t.Logf("yaya said:\n%s", k.said)
	}
}

// kill kills the process, as a crash or the manager's watchdog does.
func (k *keeper) kill() {
	k.b.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process == nil {
		k.b.t.Fatal("no process runs")
	}
	if err := k.process.Kill(); err != nil {
		k.b.t.Fatal(err)
	}
}

// writer posts messages to a session, and knows which were acknowledged.
type writer struct {
	mu      sync.Mutex
	acked   []string
	refused []string // connections
}

// write posts until ctx ends. A request that was under way at a crash has no answer; no
// connection may be refused.
func (w *writer) write(ctx context.Context, b *box, id string) {
	for n := 0; ctx.Err() == nil; n++ {
		text := fmt.Sprintf("message-%d-end", n)
		body := fmt.Sprintf(`{"role":"user","id":"m%d","delivery":"queue","parts":[{"type":"text","text":%q}]}`, n, text)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.addr+"/v1/sessions/"+id+"/messages", strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		w.mu.Lock()
		switch {
		case err == nil && resp.StatusCode == http.StatusAccepted:
			w.acked = append(w.acked, text)
		case errors.Is(err, syscall.ECONNREFUSED):
			w.refused = append(w.refused, err.Error())
		}
		w.mu.Unlock()
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

// OP-97: whichever step of a restart the process dies at, and whatever the new program does,
// connections wait for the yaya that comes next, nothing that was acknowledged is lost, and the
// user is told.
func TestRestartCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := newBox(t)
	client := b.bin
	own, other := copyBinary(t, b.bin), copyBinary(t, b.bin)
	b.bin = own
	m := b.supervise(time.Minute, func() {})
	k := b.keep()
	m.wait(t, "READY")
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	status, made := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := made["session_id"].(string)
	if status != http.StatusCreated {
		t.Fatalf("POST /v1/sessions = %d %v", status, made)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := new(writer)
	var work sync.WaitGroup
	work.Go(func() { w.write(ctx, b, id) })
	defer work.Wait()
	defer cancel()

	mark, goOn := filepath.Join(b.dir, "mark"), filepath.Join(b.dir, "go")
	check, next := `[ -n "$`+daemon.CheckEnv+`" ]`, `[ -n "$YAYA_HANDOVER" ]`
	const reached = `{ : >"$MARK"; while [ ! -e "$GO" ]; do sleep 0.05; done; }`
	for _, tt := range []struct {
		name, script string
		done         bool        // yaya restart has come back
		wait         func() bool // until then; nil for the script's mark
		kill         bool
		want         string // in the words of yaya restart; "" if it may succeed
	}{
		{"killed while the new program is checked", "if " + check + "; then " + reached + "; exit 1; fi", false, nil, true, "yaya ended during its restart"},
		{"killed while calls drain", "", false, func() bool { return m.last()["RELOADING"] == "1" }, true, ""},
		{"the new program hangs, and the watchdog kills it", "if " + next + "; then " + reached + "; fi", false, nil, true, "ended during its restart"},
		{"the new program exits", "if " + next + "; then " + reached + "; exit 1; fi", false, nil, false, "ended during its restart"},
		{"the new program is killed at its start", "if " + next + `; then : >"$MARK"; fi`, false, nil, true, ""},
		{"the new program is killed when it serves", "", true, nil, true, ""},
	} {
		before := w.count()
		eventually.True(t, tt.name+": messages are acknowledged before", func() bool { return w.count() > before+2 })
		for _, f := range []string{mark, goOn} {
			if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("%s: Remove = %v, want it removed or not there", tt.name, err)
			}
		}
		spare := own + ".spare"
		if err := os.Rename(own, spare); err != nil {
			t.Fatal(err)
		}
		writeProgram(t, own, fmt.Sprintf("#!/bin/sh\nMARK=%q GO=%q\n%s\nexec %q \"$@\"\n", mark, goOn, tt.script, other))
		said := make(chan string, 1)
		go func() {
			cmd := exec.CommandContext(t.Context(), client, b.args("restart")...)
			cmd.Env = b.environ()
			out, err := cmd.CombinedOutput()
			said <- fmt.Sprintf("%s (%v)", out, err)
		}()
		wait := tt.wait
		if wait == nil {
			wait = func() bool { _, err := os.Stat(mark); return err == nil }
		}
		if tt.done {
			wait = func() bool { return len(said) > 0 }
		}
		eventually.True(t, tt.name+": the step is reached", wait)
		if err := os.Rename(spare, own); err != nil {
			t.Fatal(err)
		}
		if tt.kill {
			k.kill()
		} else if err := os.WriteFile(goOn, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		before = w.count()
		eventually.True(t, tt.name+": messages are acknowledged after", func() bool { return w.count() > before+2 })
		if out := <-said; tt.want != "" && !strings.Contains(out, tt.want) {
			t.Errorf("%s: yaya restart says %s, want %q", tt.name, out, tt.want)
		}
	}
	cancel()
	work.Wait()
	b.bin = client
	b.restarted()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.refused) > 0 {
		t.Errorf("%d connections were refused, want none: %s", len(w.refused), w.refused[0])
	}
	var tape string
	eventually.True(t, "the session has all messages that were acknowledged", func() bool {
		tape = b.must("session", "export", id)
		for _, text := range w.acked {
			if !strings.Contains(tape, text) {
				return false
			}
		}
		return true
	})
	if out, err := b.run("verify"); err != nil {
		t.Errorf("yaya verify = %v\n%s", err, out)
	}
	t.Logf("%d messages were acknowledged", len(w.acked))
}

// OP-98: a restart into a yaya with a newer format of the data directory upgrades it: neither
// the check beside the older one nor the lock that it has keeps it from that.
func TestRestartUpgrades(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := b.serve()
	version := filepath.Join(b.dir, "d", "VERSION")
	if err := os.Remove(version); err != nil { // as yaya 0.1 leaves it
		t.Fatal(err)
	}
	out, err := b.run("restart")
	if err != nil {
		t.Fatalf("yaya restart = %v\n%s\nwant it to upgrade", err, out)
	}
	data, err := os.ReadFile(version)
	if err != nil || !strings.HasPrefix(string(data), fmt.Sprint(daemon.DataFormat)+"\n") || p.ProcessState != nil {
		t.Errorf("VERSION = %q, %v; process %v; want format %d by the same process", data, err, p.ProcessState, daemon.DataFormat)
	}
}
