package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where yaya has a control group of its own, all processes of a sandbox together have
// the memory and the number of processes of the policy, for root as well; and nothing
// is left of the group.
func TestControlGroup(t *testing.T) {
	if why := Probe().Group; why != "" {
		t.Skipf("there is no control group: %s", why)
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			pol := profile(t, "check")
			pol.Limits = Limits{Memory: 300 << 20, Processes: 40}
			script := `for i in 1 2 3 4 5 6 7 8; do sh -c 'x=$(head -c 100000000 /dev/zero | tr "\0" x); sleep 1; echo kept ${#x}' & done; wait`
			got, err := b.start(t, pol, "/", nil, "sh", "-c", script)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(got.out, "kept 100000000"); n > 2 {
				t.Errorf("%d processes kept 100 MB each in 300 MiB, output %.300q", n, got.out)
			}
			if strings.Contains(strings.Join(got.enforced.Missing, ";"), "for each process") || got.enforced.Has&NeedTasks == 0 {
				t.Errorf("enforced: %s, missing: %q; want memory and processes bounded", got.enforced.Has, got.enforced.Missing)
			}
			got, err = b.start(t, pol, "/", []string{attemptEnv + "=multiply"}, testBinary(t))
			if err != nil || got.code != prevented {
				t.Errorf("200 processes: code %d, output %q, error %v; want %d", got.code, got.out, err, prevented)
			}
			if left, err := filepath.Glob(ownGroups().dir + "/sandbox-*"); err != nil || len(left) > 0 {
				t.Errorf("control groups are left: %q, %v", left, err)
			}
			if data, err := os.ReadFile("/proc/self/cgroup"); err != nil || !strings.Contains(string(data), "/yaya\n") {
				t.Errorf("this process is in %q, %v; want the group yaya", data, err)
			}
		})
	}
}

// The groups of a killed yaya are removed, and do not interfere with new ones.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sandbox-7-1", "sandbox-busy/process", "yaya", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	for name, want := range map[string]bool{"sandbox-7-1": false, "sandbox-busy": true, "yaya": true, "other": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there = %v, want %v", name, err == nil, want)
		}
	}
}
