package main

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// elsewhere runs a command in a mount namespace of its own, where yaya takes nobody for
// its user.
func (b *box) elsewhere(stdin string, args ...string) (string, error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.bin, b.args(args...)...)
	cmd.Env, cmd.Stdin = b.environ(), strings.NewReader(stdin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.t.Skipf("Linux refuses such a process: %v", err)
	}
	err := cmd.Wait()
	return out.String(), err
}

// GF-5: a command that the daemon does not take for its user's says that, why, and where
// it can be run, whichever surface it talks to; it neither reads the refusal as JSON nor
// asks for a token, which no command can give.
func TestCommandsThatAreNotTheOwners(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	for _, args := range [][]string{
		{"mcp", "call", "x__y"}, {"mcp", "tools"}, {"mcp", "list"}, {"mcp", "logs", "x"}, {"mcp", "serve"}, {"config", "list"},
		{"secret", "list"}, {"device", "list"}, {"traffic"}, {"traffic", "--follow"}, {"run", "hello"}, {"sandbox"}, {"doctor"},
	} {
		out, err := b.elsewhere(initialize, args...)
		if err == nil && args[1%len(args)] != "serve" {
			t.Errorf("yaya %v: exit status 0, want another", args)
		}
		for _, want := range []string{"does not take this command for its user's", "another namespace", "run it as the user that runs yaya"} {
			if !strings.Contains(out, want) {
				t.Errorf("yaya %v: got %q, want %q in it", args, out, want)
			}
		}
		for _, not := range []string{"invalid JSON", "token is needed", "Unauthorized"} {
			if strings.Contains(out, not) {
				t.Errorf("yaya %v: got %q, want no %q in it", args, out, not)
			}
		}
	}
	// A client that is not a command learns how to give a token.
	status, raw, _ := b.raw("GET", "/status", "", "Authorization", "Bearer x")
	if status != 401 {
		t.Errorf("a bad token: got %d %s, want 401", status, raw)
	}
	if status, raw, _ = b.raw("GET", "/mcp", "", "X-Forwarded-For", "192.0.2.1"); status != 401 || !strings.Contains(string(raw), "Bearer TOKEN") || !strings.Contains(string(raw), "yaya token create") {
		t.Errorf("without a token: got %d %s, want 401 and how to give one", status, raw)
	}
}
