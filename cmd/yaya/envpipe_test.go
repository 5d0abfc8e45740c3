package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/secretfile"
)

// An envFile that is a pipe is read when somebody fills it. Until then the other servers
// start, and the end of yaya does not wait.
func TestEnvFileIsAPipe(t *testing.T) {
	b := newBox(t)
	other, _ := b.recorded("other")
	pipe, seen := filepath.Join(b.dir, "env"), filepath.Join(b.dir, "seen")
	hosttest.Pipe(t, pipe)
	script := `printf %s "$SECRET" > ` + seen + `; exec sh ` + other[1] + ` ` + filepath.Join(b.dir, "x.starts")
	b.edit("mcp.json", fmt.Sprintf(`{"mcpServers": {"a": {"command": "sh", "args": ["-c", %q], "envFile": %q}, "other": {"command": "sh", "args": [%q, %q]}}}`, script, pipe, other[1], other[2]))
	filled := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // when yaya reads it
		if err == nil {
			_, err = f.WriteString("SECRET=from-the-pipe\n")
		}
		if err == nil {
			err = f.Close()
		}
		filled <- err
	}()
	b.serve()
	b.waitStates("a ready\nother ready\n")
	if err := <-filled; err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(seen); err != nil || string(got) != "from-the-pipe" {
		t.Errorf("the server has the variable %q, %v", got, err)
	}
	if out := b.must("reload"); !strings.HasPrefix(out, "Nothing has changed: ") { // nobody fills the pipe for it
		t.Errorf("a pipe that was read counts as changed: %s", out)
	}

	alone := newBox(t)
	command, starts := alone.recorded("other")
	alone.edit("mcp.json", fmt.Sprintf(`{"mcpServers": {"a": {"command": "true", "envFile": %q}, "other": {"command": "sh", "args": [%q, %q]}}}`, pipe, command[1], command[2]))
	p := alone.daemon("serve", "--listen", alone.addr, "--no-open")
	eventually.True(t, "the other server has started", func() bool { return starts() == 1 })
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(secretfile.Patience / 2):
		t.Error("the end of yaya waits for the pipe")
	}
}
