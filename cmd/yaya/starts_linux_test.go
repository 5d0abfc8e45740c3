package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// USE-10, FID-9: on a terminal serve says where it is before its servers have settled,
// and then how they come up.
func TestServeOnTheTerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.fakeRunners()
	p := b.pty("serve", "--no-open", "--listen", b.addr)
	p.wait("slow is installing: npm http fetch GET 200 left-pad")
	p.wait("MCP endpoint  " + b.url())
	b.write("go")
	b.server("slow", "ready")
	eventually.True(t, "it says how bad is, and why", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := p.screen.String() // on a busy machine, the next try has begun
		return (strings.Contains(now, "bad is failed") || strings.Contains(now, "bad is starting")) && strings.Contains(now, "uvx nope")
	})
	p.mu.Lock()
	now := p.screen.String()
	p.mu.Unlock()
	if strings.Contains(now, "slow is installing") || strings.Index(now, "MCP endpoint") > strings.Index(now, "SERVER") {
		t.Errorf("the screen is\n%s", now)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.end()
}
