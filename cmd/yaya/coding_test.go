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
		t.Errorf("%v\n%s", err, out)
	}
}
