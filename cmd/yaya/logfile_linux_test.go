package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// OP-60, OP-62: a daemon whose log file was renamed goes on in a new one after SIGHUP and after
// yaya reload. At level debug the log has the requests. A file that cannot be used is refused,
// and one that became so is said by the doctor.
func TestLogFileOfADaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	p := b.daemon("serve", "--listen", b.addr, "--no-open")
	eventually.True(t, "yaya serves", func() bool { return strings.Contains(p.said.String(), "MCP endpoint") })
	logs := filepath.Join(b.dir, "logs")
	if err := os.Mkdir(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	path, other := filepath.Join(logs, "yaya.log"), filepath.Join(logs, "other.conf")
	if err := os.WriteFile(other, []byte("user = x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{filepath.Join(b.dir, "no", "yaya.log"), other, b.dir} {
		if said, err := b.run("config", "set", "log.file", bad); err == nil || !strings.Contains(said, bad) {
			t.Errorf("config set log.file %s: %v\n%s, want it refused", bad, err, said)
		}
	}
	b.must("config", "set", "log.file", path)
	b.must("config", "set", "log.level", "debug")
	asked := func(what string) {
		t.Helper()
		eventually.True(t, what, func() bool {
			if resp, err := http.Get("http://" + b.addr + "/health"); err == nil {
				_ = resp.Body.Close()
			}
			data, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(data), `"path":"/health"`)
		})
	}
	asked("the log has the request")
	for name, reload := range map[string]func() error{
		"SIGHUP":      func() error { return p.Process.Signal(syscall.SIGHUP) },
		"yaya reload": func() error { _, err := b.run("reload"); return err },
	} {
		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
		if err := reload(); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the log goes on after "+name, func() bool { _, err := os.Stat(path); return err == nil })
		asked("the new log has the request after " + name)
	}
	if said, _ := b.run("doctor"); strings.Contains(said, "log.file") {
		t.Errorf("doctor says of a log file that is used:\n%s", said)
	}
	if err := os.RemoveAll(logs); err != nil {
		t.Fatal(err)
	}
	b.must("reload")
	if said, _ := b.run("doctor"); !strings.Contains(said, "log.file") || !strings.Contains(said, path) {
		t.Errorf("doctor is silent about a log file that is gone with its folder:\n%s", said)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	if said, _ := b.run("doctor"); !strings.Contains(said, "log.file") {
		t.Errorf("doctor without a daemon is silent about the log file:\n%s", said)
	}
}
