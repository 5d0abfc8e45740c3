package main

import (
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
)

// Where root's processes cannot be counted and sandbox.mode is require, each place
// says what does not start, and what helps.
func TestRequireNamesTheWayOut(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	if os.Geteuid() != 0 || sandbox.Probe().Group == "" {
		t.Skip("the number of processes is bounded here")
	}
	b := newBox(t)
	b.must("config", "set", "sandbox.mode", "require")
	b.must("mcp", "add-json", "bounded", `{"command":"cat","sandbox":{}}`)
	b.serve()
	const way = "start yaya as an ordinary user, or in a control group of its own (a systemd unit with Delegate=yes)"
	const prefer = "yaya config set sandbox.mode prefer"
	if s := b.server("bounded", "failed"); !strings.Contains(s.Reason+s.LastError, "the sandbox cannot enforce number of processes here (back end namespaces): the kernel does not bound root's processes: "+way) || !strings.Contains(s.Reason+s.LastError, prefer) {
		t.Errorf("the server says %q, %q; want what helps", s.Reason, s.LastError)
	}
	if out := b.must("sandbox"); !strings.Contains(out, way) {
		t.Errorf("yaya sandbox does not say what helps:\n%s", out)
	}
	out, err := b.run("doctor")
	line := ""
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, "sandbox ") {
			line = l
		}
	}
	if err == nil || !strings.Contains(line, "failed") || !strings.Contains(out, way) || !strings.Contains(out, prefer) {
		t.Errorf("doctor says %v, and of the sandbox %q; want that it has failed and what helps:\n%s", err, line, out)
	}
}
