package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// REL-1: a yaya that is stopped while a turn runs, or asks, leaves files of the session that have its end.
func TestStoppedWithinATurn(t *testing.T) {
	t.Parallel()
	for name, scenario := range map[string]map[string]any{
		"writing": {"match": "^go", "steps": []any{map[string]any{"text": strings.Repeat("word ", 5000), "delay_ms": 60_000}}},
		"asking":  callsFor("go", shellCall("true")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.scenarios(scenario)
			cmd := b.serve()
			id := b.turn(b.workspace(), "go")
			b.until(id, "", map[string]string{"writing": "turn_started", "asking": "approval_requested"}[name])
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			gone(t, cmd)
			folder := filepath.Join(b.dir, "d", "sessions", id)
			raw, err := os.ReadFile(filepath.Join(folder, "session.json"))
			var kept struct {
				Status string
				Usage  struct{ Turns int }
			}
			if err != nil || json.Unmarshal(raw, &kept) != nil || kept.Status != "canceled" || kept.Usage.Turns != 1 {
				t.Errorf("session.json has %+v, %v; want one cancelled turn", kept, err)
			}
			events, err := os.ReadFile(filepath.Join(folder, "events.ndjson"))
			if err != nil || !strings.Contains(string(events), `"type":"session_canceled"`) {
				t.Errorf("events.ndjson ends with %s, %v; want session_canceled", last(string(events)), err)
			}
		})
	}
}

// last returns the last line of a text.
func last(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return fmt.Sprintf("%.300s", lines[len(lines)-1])
}
