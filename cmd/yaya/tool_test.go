package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TW-15, R20: a program that an agent runs does not speak for its user: it cannot answer
// its own asks, read sessions, or approve devices, over TCP or over the socket, even if it
// has left its group and its parents. It finds no secret, either.
func TestToolsAreNotTheirUser(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("who is at the other end is known on Linux")
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not there")
	}
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(b.dir, "d", "yaya.sock")
	script := fmt.Sprintf(`
for path in /v1/sessions /api/devices /status /api/audit; do
  curl -s -o /dev/null -w "tcp $path %%{http_code}\n" http://%[1]s$path
  curl -s -o /dev/null -w "socket $path %%{http_code}\n" --unix-socket %[2]s http://yaya$path
done
curl -s -o /dev/null -w "rpc %%{http_code}\n" --unix-socket %[2]s -H 'content-type: application/json' -d '{}' http://yaya/rpc
setsid curl -s -o /dev/null -w "setsid %%{http_code}\n" http://%[1]s/v1/sessions
env -i /usr/bin/env PATH="$PATH" curl -s -o /dev/null -w "env %%{http_code}\n" http://%[1]s/v1/sessions
(setsid sh -c 'curl -s -o /dev/null -w "orphan %%{http_code}\n" http://%[1]s/v1/sessions > orphan' &)
for i in $(seq 200); do [ -s orphan ] && break; sleep 0.1; done; cat orphan
curl -s -o /dev/null -w "health %%{http_code}\n" http://%[1]s/health
env; ls -l /proc/self/fd`, b.addr, socket)
	quoted, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	b.must("config", "set", "plugin.llm_echo.script", fmt.Sprintf(`{"steps":[{"tool_calls":[{"name":"shell","args":{"command":%s}}]},{"text":"done"}]}`, quoted))
	b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"allow"}]`)
	b.must("config", "set", "sandbox.mode", `"off"`) // in a sandbox, nothing of yaya is there to be asked
	b.serve()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := out["session_id"].(string)
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"try"}]}`); status != 202 {
		t.Fatalf("got %v, %v, want status 202", status, out)
	}
	events, _ := b.until(id, "", "turn_completed")
	said := ""
	for _, ev := range events {
		if ev.Name == "tool_call_completed" {
			var d struct {
				Data struct {
					Result struct {
						Parts []struct{ Text string } `json:"parts"`
					} `json:"tool_result"`
				} `json:"data"`
			}
			if err := json.Unmarshal(ev.Data, &d); err != nil {
				t.Fatal(err)
			}
			said = d.Data.Result.Parts[0].Text
		}
	}
	for _, want := range []string{"tcp /v1/sessions 403", "socket /v1/sessions 403", "tcp /api/devices 403", "socket /api/devices 403", "tcp /status 403", "socket /api/audit 403", "rpc 403", "setsid 403", "env 403", "orphan 403", "health 200"} {
		if !strings.Contains(said, want) {
			t.Errorf("%s is not in what it says:\n%s", want, said)
		}
	}
	if strings.Contains(said, "yaya.sock") || strings.Contains(said, "keys/") {
		t.Errorf("it holds something of yaya's:\n%s", said)
	}
	if status, out := b.v1("GET", "/sessions", ""); status != 200 {
		t.Errorf("its user: %d %v", status, out)
	}
}
