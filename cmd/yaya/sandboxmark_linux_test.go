package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// SEC-5: a process that carries the mark of a sandbox is nobody's user, though nothing
// above it is a sandbox's: neither at the port, nor at the socket, nor for MCP.
func TestMarkedIsNotTheOwner(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	const initialize = `-H 'content-type: application/json' -H 'accept: application/json, text/event-stream' -d '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'`
	for _, c := range []struct{ name, request, bare, marked string }{
		{"the port", "http://" + b.addr + "/api/me", `"owner"`, "runs in a sandbox of yaya's"},
		{"the socket", "--unix-socket " + filepath.Join(b.dir, "d", "yaya.sock") + " http://x/api/me", `"owner"`, "runs in a sandbox of yaya's"},
		{"MCP", initialize + " http://" + b.addr + "/mcp", "protocolVersion", "a token is needed"},
	} {
		for _, marked := range []bool{false, true} {
			want := map[bool]string{false: c.bare, true: c.marked}[marked]
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "read -r go; curl -s --noproxy '*' -m 20 "+c.request)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if marked {
				err = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_LOCKS, &unix.Rlimit{}, nil)
			}
			_, werr := in.Write([]byte("go\n"))
			if err := errors.Join(err, werr, cmd.Wait()); err != nil {
				t.Fatalf("%s: curl = %v, %s; want no error", c.name, err, out.String())
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s, marked %v: got %q, want %q in it", c.name, marked, out.String(), want)
			}
		}
	}
}

// SEC-5: a guarded server on Landlock alone leaves nothing, whatever session it is in and
// whatever ends: the first process of its sandbox, or yaya by kill -9.
func TestServersLeaveNothingOnLandlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(b *box, daemon *exec.Cmd)
	}{
		{"its first process is killed", func(b *box, _ *exec.Cmd) { _ = syscall.Kill(b.pidOf("own"), syscall.SIGKILL) }},
		{"yaya is killed", func(_ *box, daemon *exec.Cmd) { _ = daemon.Process.Kill() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := shellServers(t)
			b.settings("[sandbox]\nbackend = \"landlock\"\n")
			daemon := b.serve()
			b.firstStart([]string{"own", "theirs"})
			said, _ := b.sh("own", `env -i setsid sh -c 'sleep 600 >/dev/null 2>&1 & echo pid $!'`)
			_, rest, _ := strings.Cut(said, "pid ")
			pid, err := strconv.Atoi(rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))])
			if err != nil {
				t.Fatalf("got %q, want the id of a process", said)
			}
			if err := syscall.Kill(pid, 0); err != nil {
				t.Fatalf("process %d: %v, want that it lives", pid, err)
			}
			t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			c.end(b, daemon)
			eventually.True(t, "nothing of the server is left", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		})
	}
}
