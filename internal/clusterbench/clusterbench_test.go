//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/racing"
)

// CL-01, CL-02, CL-04, CL-09, CL-11: the short form of the bench. The NATS server that leads stands still
// for longer than it leads; a machine is cut off; nodes restart one after the other. Seeds that have
// found something are run again if they are short: a line of testdata/seeds.txt is a fault, a seed,
// how long the fault lasted, and what was found.
func TestFaults(t *testing.T) {
	kept, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() || racing.Enabled {
		t.Skip("three clusters take more than a minute, and the processors: make scale has them run alone")
	}
	run := builtBench(t)
	for _, name := range []string{"nats-leader-stopped", "cut-off", "rolling-restart"} {
		t.Run(name, func(t *testing.T) { proves(t, run(t, name, "-for", "6s")) })
	}
	for line := range strings.Lines(string(kept)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 4 {
			t.Fatalf("testdata/seeds.txt: %q is not a fault, a seed, a duration and what was found", line)
		}
		t.Run(words[0]+"/"+words[1], func(t *testing.T) {
			if lasts, err := time.ParseDuration(words[2]); err != nil || lasts > 6*time.Second {
				t.Skipf("%s is not short (%v): run it with make cluster-bench CLUSTERBENCH=\"-fault %s -seed %s -rounds 1 -for %s\"", words[2], err, words[0], words[1], words[2])
			}
			run(t, words[0], "-seed", words[1], "-for", words[2])
		})
	}
}

// builtBench builds yaya and this program, which starts itself as the parts of a machine. The
// answer runs one round of a fault, and fails the test with what was found.
func builtBench(t *testing.T) func(t *testing.T, fault string, flags ...string) row {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"-o", filepath.Join(dir, "clusterbench"), "."}, {"-tags", "grpcnotrace", "-o", filepath.Join(dir, "yaya"), "../../cmd/yaya"}} {
		if out, err := exec.CommandContext(t.Context(), "go", append([]string{"build", "-buildvcs=false", "-ldflags", "-w"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("go build %v: %v\n%s", args, err, out)
		}
	}
	return func(t *testing.T, fault string, flags ...string) (w row) {
		t.Helper()
		// The other tests of a run may have the processors for seconds.
		args := append([]string{"-yaya", filepath.Join(dir, "yaya"), "-json", "-fault", fault, "-rounds", "1", "-slack", "4s"}, flags...)
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "clusterbench"), args...)
		var out, progress bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &progress
		err := cmd.Run()
		var rows []row
		if jerr := json.Unmarshal(out.Bytes(), &rows); jerr != nil || len(rows) != 1 {
			t.Fatalf("the bench ended with %v, and printed %s\n%s", err, out.String(), progress.String())
		}
		if w = rows[0]; w.Skipped != "" {
			t.Skip(w.Skipped)
		}
		if err != nil {
			t.Errorf("the bench ended with %v and found %q, want nothing\n%s", err, w.Findings, progress.String())
		}
		t.Logf("%+v", w)
		return w
	}
}

// proves fails the test if a round has checked hardly anything.
func proves(t *testing.T, w row) {
	t.Helper()
	if w.Histories != 1 || w.Writes < 50 || w.Operations < 500 || w.Revocations == 0 || w.Seen < 50 || w.Joins < 3 {
		t.Errorf("the round had %d operations, %d acknowledged changes, %d revocations, and dashboards that saw %d events, want hundreds, dozens, some and dozens", w.Operations, w.Writes, w.Revocations, w.Seen)
	}
}
