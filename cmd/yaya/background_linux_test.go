package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A command in the background outlives its turn, and the next one learns of it. It ends with its
// session, and with yaya, by kill -9, too: nothing of what it has started is left.
func TestBackgroundCommandsEnd(t *testing.T) {
	besideTmp(t)
	var folder string
	for name, end := range map[string]func(t *testing.T, b *box, pid int, id string){
		"kill -9": func(t *testing.T, _ *box, pid int, _ string) { kills(t, pid, syscall.SIGKILL) },
		"SIGTERM": func(t *testing.T, _ *box, pid int, _ string) { kills(t, pid, syscall.SIGTERM) },
		"the session is deleted": func(t *testing.T, b *box, _ int, id string) {
			if status, out := b.v1("DELETE", "/sessions/"+id, ""); status != 204 && status != 200 {
				t.Errorf("DELETE = %d, %v; want success", status, out)
			}
		},
		"the session is closed": func(t *testing.T, b *box, _ int, id string) {
			if status, out := b.v1("POST", "/sessions/"+id+"/close", ""); status != 200 {
				t.Errorf("POST close = %d, %v; want 200", status, out)
			}
		},
		"its folder is no longer trusted": func(_ *testing.T, b *box, _ int, _ string) { b.must("trust", "revoke", folder) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			mark := fmt.Sprintf("E2E_MARK=%d-%d", os.Getpid(), time.Now().UnixNano())
			b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"allow"}]`)
			b.scenarios(callsFor("work", map[string]any{"name": "shell", "args": map[string]any{
				"command": "export " + mark + "; setsid sleep 1000 & sleep 1000 & exec sleep 1000", "background": true,
			}}), callsFor("go on"))
			cmd := b.serve()
			folder = b.workspace()
			id := b.turn(folder, "work")
			all, last := b.outputs(id, "")
			if !strings.Contains(all, "runs in the background as bg_") {
				t.Fatalf("the result is %s, want the id of the command", all)
			}
			eventually.True(t, "the command and what it has started", func() bool { return len(marked(mark)) >= 3 })
			if status, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"go on"}]}`); status != 202 {
				t.Fatalf("the next message: %d, %v; want 202", status, out)
			}
			b.until(id, last, "turn_completed")
			if status, tape, _ := b.raw("GET", "/v1/sessions/"+id+"/export", ""); status != 200 || strings.Count(string(tape), `"name":"background commands"`) != 1 {
				t.Errorf("the tape is %d, %s; want one note about the command", status, tape)
			}
			end(t, b, cmd.Process.Pid, id)
			eventually.True(t, "nothing is left of the command", func() bool { return len(marked(mark)) == 0 })
		})
	}
}

func kills(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}
