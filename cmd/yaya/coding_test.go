package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// S-32, S-33, S-38, S-40, S-47, S-48, S-51, S-54, S-55: a session in a real repository reads code, changes it
// under approval, sees the project's check fail, repairs it, and passes; driven by a
// typed client that is made from the OpenAPI document.
func TestExampleCodingSession(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	modules, err := filepath.Abs(peers)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../../examples/coding-session/run.sh")
	cmd.Env = append(os.Environ(), "YAYA="+binary(t), "NODE="+node, "NODE_MODULES="+modules, "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	want := `calls: read_file
calls: apply_patch
approves: change add.sh
model: I have changed the operator.
calls: verify
check: make test → failed
calls: apply_patch
approves: change add.sh
model: It adds now.
calls: verify
check: make test → passed
session: active idle after 5 steps
add.sh: 5`
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, out, want)
	}
}

// An example says what it lacks before it begins.
func TestExamplesSayWhatTheyLack(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "node")
	writeProgram(t, old, "#!/bin/sh\ncase $1 in --version) echo v20.1.0;; *) exit 1;; esac\n")
	for _, c := range []struct {
		name, script string
		env          []string
		want         string
	}{
		{"an old Node", "coding-session", []string{"YAYA=" + binary(t), "NODE=" + old}, "Node 24 (22.18 or later does), and " + old + " is v20.1.0: name another with NODE"},
		{"no Node", "coding-session", []string{"YAYA=" + binary(t), "NODE=/nowhere/node"}, "it needs /nowhere/node"},
		{"no yaya", "coding-session", []string{"YAYA=/nowhere/yaya"}, "/nowhere/yaya, which is not a program"},
		{"no yaya for a device", "remote-device", []string{"YAYA=/nowhere/yaya"}, "it needs /nowhere/yaya"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "../../examples/"+c.script+"/run.sh")
			cmd.Env = append(os.Environ(), c.env...)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), c.want) || strings.Count(string(out), "\n") != 1 {
				t.Errorf("got %v, %q; want one line with %q", err, out, c.want)
			}
		})
	}
}
