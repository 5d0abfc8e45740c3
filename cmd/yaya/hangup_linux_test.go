package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// USE-2: SIGHUP reloads, and a daemon whose terminal is closed ends as it always has:
// nobody is left with one that they cannot see.
func TestClosedTerminalEndsTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	cmd := exec.CommandContext(t.Context(), b.bin, b.args("serve", "--no-open", "--listen", b.addr)...)
	cmd.Env = b.environ()
	cmd.Stdin = slave // what it says goes nowhere: nobody reads this terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	// If the tests run with SIGHUP ignored, as under nohup, yaya would inherit that and stay.
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	defer signal.Stop(hups)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ready := func() bool {
		resp, err := http.Get("http://" + b.addr + "/health?ready=1") //nolint:noctx // test
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	eventually.True(t, "yaya is ready", ready)
	b.edit("config.toml", "provider = \"one\"\n")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "SIGHUP on a terminal is taken", func() bool { return len(b.audited("config_reloaded")) == 1 })
	if !ready() {
		t.Fatal("SIGHUP has ended it although its terminal is open")
	}
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v, want as on every signal that stops it", err)
		}
	case <-time.After(eventually.Limit):
		t.Error("it goes on although its terminal was closed")
	}
}

// REL-12, USE-2: SIGHUP takes over what has changed in config.toml and mcp.json, however often it
// comes; a file with a mistake is refused, and neither stops the daemon.
func TestHangupReloadsAndStopsNothing(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	p := b.serve()
	hangup := func() {
		t.Helper()
		for range 20 {
			if err := p.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatalf("the daemon is gone: %v", err)
			}
		}
	}
	hangup() // nothing has changed
	b.edit("mcp.json", `{"mcpServers": {`+entryOf(fixture, "one", "")+`}}`)
	b.edit("config.toml", "[approval]\ntimeout = \"90s\"\n")
	hangup()
	b.waitStates("one ready\n")
	eventually.True(t, "config.toml is in force", func() bool { return strings.Contains(b.must("config", "get", "approval.timeout"), "90s") })
	refused := len(b.audited("config_refused"))
	b.edit("config.toml", "[approval\n")
	b.edit("mcp.json", "{")
	hangup()
	eventually.True(t, "both mistakes are refused", func() bool { return len(b.audited("config_refused"))-refused >= 2 })
	hangup()
	if got := b.serverStates(); got != "one ready\n" {
		t.Errorf("after two files with mistakes the servers are\n%s\nwant them as they were", got)
	}
}

// REL-12: SIGHUP ends nothing while yaya restarts either, such as the one of systemctl
// reload: the program that goes on in the process has no handler yet for a moment.
func TestHangupDuringRestart(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := b.serve()
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		sent := 0
		defer func() { done <- sent }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if p.Process.Signal(syscall.SIGHUP) != nil {
				return
			}
			sent++
			time.Sleep(200 * time.Microsecond)
		}
	}()
	for range 3 {
		b.restarted()
	}
	close(stop)
	if sent := <-done; sent < 100 {
		t.Errorf("only %d signals were sent, want them during all of the restarts", sent)
	}
	b.edit("config.toml", "[approval]\ntimeout = \"90s\"\n")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatalf("yaya is gone: %v", err)
	}
	eventually.True(t, "SIGHUP still reloads", func() bool { return strings.Contains(b.must("config", "get", "approval.timeout"), "90s") })
}
