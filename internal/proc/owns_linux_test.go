package proc

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// shed starts a process that has left its parents, its group and its environment
// behind, and prints its id. It starts a child of its own.
const shed = `(env -i /usr/bin/env PATH="$PATH" setsid sh -c 'echo $$; trap "" TERM; sleep 61 & wait; sleep 61' </dev/null 2>/dev/null &)
sleep 61`

func readPID(t *testing.T, lines *bufio.Scanner) int {
	t.Helper()
	if !lines.Scan() {
		t.Fatal("got no process id")
	}
	pid, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// orphaned waits until a process's parent is this one.
func orphaned(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		d, err := openProc(pid)
		if err != nil {
			t.Fatal(err)
		}
		parent, err := d.parent()
		d.close()
		if err != nil {
			t.Fatal(err)
		}
		if parent == os.Getpid() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the parent of %d is %d, not this process", pid, parent)
		}
	}
}

// TW-15, SEC-5: a process that a manager started descends from us, whatever it
// leaves behind, and so does one of unknown descent; others do not.
func TestDescends(t *testing.T) {
	var m Manager
	defer m.Close(context.Background())
	p, err := m.Start(Spec{Path: "/bin/sh", Args: []string{"-c", `sleep 61 & echo $!; setsid sleep 61 & echo $!; (setsid sleep 61 & echo $!); ` + shed}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(p.Stdout)
	want := map[string]int{"child": readPID(t, lines), "of another group": readPID(t, lines), "orphan": readPID(t, lines), "orphan that has shed everything": readPID(t, lines)}
	orphaned(t, want["orphan that has shed everything"])
	dead := exec.CommandContext(t.Context(), "true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	want["process"], want["dead"], want["no process"], want["unknown"] = p.PID(), dead.Process.Pid, -1, 0
	for name, pid := range want {
		if !Descends(pid) {
			t.Errorf("%s: Descends(%d) = false, want true", name, pid)
		}
	}
	for name, pid := range map[string]int{"this process": os.Getpid(), "its parent": os.Getppid(), "init": 1} {
		if Descends(pid) {
			t.Errorf("%s: Descends(%d) = true, want false", name, pid)
		}
	}
}

// SEC-5: a process with the marker of another yaya belongs to a tool, even when that
// yaya has died; our own marker, which our ancestors may carry, proves nothing.
func TestMarkerOfAnother(t *testing.T) {
	for name, c := range map[string]struct {
		ours, its string
		want      bool
	}{"of another": {"", "A", true}, "ours": {"A", "A", false}, "other than ours": {"A", "B", true}} {
		t.Setenv(markerEnv, c.ours)
		users := user(t, "env", "-i", markerEnv+"="+c.its, "sleep", "61")
		eventually.True(t, "its new environment is there", func() bool { // after its new name
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", users))
			return err == nil && len(environ) > 0
		})
		if got := marked(t, users); got != c.want {
			t.Errorf("%s: marked = %v, want %v", name, got, c.want)
		}
	}
}

func marked(t *testing.T, pid int) bool {
	t.Helper()
	d, err := openProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	return d.marked()
}

// user starts a command and waits until it runs.
func user(t *testing.T, argv ...string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(name)) == "sleep" {
			return cmd.Process.Pid
		}
	}
}

// SEC-5: when a process ends, its descendants end too, even those that have shed
// parents, group and environment; orphans of another process do not.
func TestWhoHasShedEverythingEndsToo(t *testing.T) {
	var m Manager
	defer m.Close(context.Background())
	other, err := m.Start(Spec{Path: "/bin/sh", Args: []string{"-c", `(setsid sleep 61 </dev/null >/dev/null 2>&1 & echo $!); sleep 61`}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	others := readPID(t, bufio.NewScanner(other.Stdout))
	p, err := m.Start(Spec{Path: "/bin/sh", Args: []string{"-c", shed}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	escaped := readPID(t, bufio.NewScanner(p.Stdout))
	orphaned(t, escaped)
	kids, err := exec.CommandContext(t.Context(), "pgrep", "-P", strconv.Itoa(escaped)).Output()
	if err != nil {
		t.Logf("pgrep: %v", err)
	}
	p.Kill()
	waitGone(t, append(numbers(strings.Fields(string(kids))), escaped), 5*time.Second)
	if !alive(others) {
		t.Errorf("process %d of another, living tree was ended", others)
	}
}

// SEC-5: orphans that come to us are reaped when they end, and children that os/exec
// waits for are left to it.
func TestOrphansAreReaped(t *testing.T) {
	var m Manager
	defer m.Close(context.Background())
	p, err := m.Start(Spec{Path: "/bin/sh", Args: []string{"-c", `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (setsid sleep 0.0$i &); done; echo done; sleep 61`}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
					t.Errorf("a child was waited for by somebody else: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if lines := bufio.NewScanner(p.Stdout); !lines.Scan() {
		t.Fatal("got no line")
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, d := range children() {
			if st, err := d.stat(); err == nil && d.pid != p.PID() && st.state == 'Z' {
				left++
			}
			d.close()
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d orphans were not reaped", left)
		}
	}
}

// SEC-5: a program that was started for the user is nobody's tool, nor are its
// orphans, and the end of the manager leaves them alone.
func TestStartForUser(t *testing.T) {
	var m Manager
	m.Adopt()
	out := filepath.Join(t.TempDir(), "pids")
	script := `(setsid sh -c 'echo $$ > ` + out + `.1; mv ` + out + `.1 ` + out + `; exec sleep 61' &) ; exit 0`
	if err := StartForUser("sh", "-c", script); err != nil {
		t.Fatal(err)
	}
	var pid int
	for deadline := time.Now().Add(10 * time.Second); pid == 0; time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(out); err == nil {
			if pid, err = strconv.Atoi(strings.TrimSpace(string(data))); err != nil {
				t.Fatal(err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the program did not run")
		}
	}
	defer func() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) { // the one between has gone
			users.mu.Lock()
			left := len(users.pids)
			users.mu.Unlock()
			if left == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("the process between us and the program is still there")
			}
		}
	}()
	if Descends(pid) {
		t.Errorf("Descends(%d) = true, want false: it is the user's", pid)
	}
	p, err := m.Start(Spec{Path: "true", Env: env})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	p.Stop(t.Context())
	m.Close(context.Background())
	if !alive(pid) {
		t.Error("the user's program was ended")
	}
	if err := StartForUser("no-such-program"); err == nil {
		t.Error("a program that is not there was started")
	}
}

// Descriptors that our own parent left open stay with us (USE-9).
func TestInheritedDescriptors(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/etc/hostname")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestChildSeesOnlyItsEnvironment$")
	cmd.ExtraFiles = []*os.File{f, f, f}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the test with more descriptors = %v, want no error\n%s", err, out)
	}
}

func BenchmarkDescends(b *testing.B) {
	for b.Loop() {
		Descends(os.Getppid())
	}
}
