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
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
)

const roleEnv = "YAYA_TEST_ROLE"

// TestMain makes the test binary a program with a child, each of which stays until it is ended.
func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleEnv+"=child")
		if err := child.Start(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(child.Process.Pid)
		select {}
	case "child":
		time.Sleep(time.Hour)
	case "echo":
		fmt.Println(strings.Join(os.Args[1:], "|"))
	default:
		goleak.VerifyTestMain(m)
	}
}

func environ(role string) []string { return append(os.Environ(), roleEnv+"="+role) }

// Everything that a program has started ends with it, and its id is nobody's then.
func TestTreeEnds(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	p, err := m.Start(Spec{Path: os.Args[0], Env: environ("parent")})
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the parent said %q, %v; want the id of its child", line, err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if Gone(child) || Gone(p.PID()) {
		t.Error("Gone() of living processes = true, want false")
	}
	p.Kill()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "exited with status") || strings.Contains(err.Error(), "do not end") {
		t.Errorf("Err() = %v, want the status of a killed program alone", err)
	}
	eventually.True(t, "the child is gone", func() bool { return Gone(child) })
}

// The output of a program arrives, its end of the pipe has deadlines, and an argument stays what
// it is.
func TestArgumentsAndPipes(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	p, err := m.Start(Spec{Path: os.Args[0], Args: []string{"a b", `c"d`, "%PATH%&echo"}, Env: environ("echo")})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stdout.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Errorf("SetReadDeadline() = %v, want nil", err)
	}
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != `a b|c"d|%PATH%&echo` {
		t.Errorf("the program got %q, %v", line, err)
	}
	<-p.Done()
	p.Stop(context.WithoutCancel(t.Context()))
}

// Commands are found by PATHEXT, and the file without an extension beside npx.cmd is not taken.
func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"npx", "npx.cmd", "tool.exe"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"Path=" + dir, "PATHEXT=.EXE;.CMD"}
	for name, want := range map[string]string{"npx": "npx.cmd", "tool": "tool.exe", "tool.exe": "tool.exe", filepath.Join(dir, "tool"): "tool.exe"} {
		if got, err := LookPath(name, env); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("LookPath(%q) = %q, %v; want %s", name, got, err, want)
		}
	}
	if got, err := LookPath("none", env); err == nil {
		t.Errorf("LookPath(none) = %q, want an error", got)
	}
}

// Node's batch files are passed by, and for others arguments that cmd.exe interprets are refused.
func TestBatch(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, nodeScripts["npx"])
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "node.exe"), script} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	npx := filepath.Join(dir, "npx.cmd")
	cmd, err := command(npx, Spec{Path: "npx", Args: []string{"-y", "a&b"}})
	if err != nil || cmd.Path != filepath.Join(dir, "node.exe") || strings.Join(cmd.Args[1:], "|") != script+"|-y|a&b" {
		t.Errorf("command(npx.cmd) = %v, %v; want node with its script", cmd, err)
	}
	tool := filepath.Join(dir, "tool.cmd")
	for _, arg := range []string{"a&b", `a"b`, "%PATH%", "a|b", "a>b", "a^b", "a!b", "(a", "a\nb"} {
		if _, err := command(tool, Spec{Args: []string{"-x", arg}}); err == nil || !strings.Contains(err.Error(), "argument 2") {
			t.Errorf("command(tool.cmd, %q) = %v, want an error about argument 2", arg, err)
		}
	}
	if cmd, err := command(tool, Spec{Args: []string{"-y", `C:\a b\c`, "@x/y@1"}}); err != nil || cmd.Path != tool {
		t.Errorf("command(tool.cmd) with plain arguments = %v, %v; want the batch file", cmd, err)
	}
}

// A program that reads its command line by its own rules gets it as it is.
func TestLine(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	p, err := m.Start(Spec{Path: "cmd.exe", Args: []string{"ignored"}, Line: `/S /C "echo "a  b"& echo c"`, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(p.Stdout)
	for _, want := range []string{`"a  b"`, "c"} {
		if line, err := in.ReadString('\n'); strings.TrimSpace(line) != want {
			t.Errorf("cmd.exe said %q, %v; want %q", line, err, want)
		}
	}
	<-p.Done()
}
