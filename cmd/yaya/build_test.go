package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// built are the programs that tests have built: each is built once, without the race
// detector and without tables for debuggers, which take half of the time of linking. The first
// test that needs one builds it, others wait for that.
var built struct {
	mu    sync.Mutex
	dir   string
	tools map[string]func() (string, error)
}

// buildTool builds a program that a test needs, of ours or of a dependency, and
// returns where it is.
func buildTool(t *testing.T, pkg string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short does without the programs")
	}
	built.mu.Lock()
	var err error
	if built.dir == "" {
		built.dir, err = os.MkdirTemp("", "yaya-e2e")
		built.tools = map[string]func() (string, error){}
	}
	build := built.tools[pkg]
	if build == nil {
		bin := filepath.Join(built.dir, strconv.Itoa(len(built.tools)), path.Base(pkg))
		build = sync.OnceValues(func() (string, error) {
			out, err := exec.CommandContext(context.Background(), "go", "build", "-tags", "grpcnotrace", "-ldflags", "-w", "-o", bin, pkg).CombinedOutput()
			if err != nil {
				return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
			}
			return bin, nil
		})
		built.tools[pkg] = build
	}
	built.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// binary returns the program itself.
func binary(t *testing.T) string {
	t.Helper()
	return buildTool(t, "github.com/yaya-ai/yaya/cmd/yaya")
}

// A template can call any exported method by its name, so the linker keeps the methods of all types
// in a program that can execute one: yaya was 45.7 MB instead of 39.7, and rested in 5 MB more.
func TestNoTemplates(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "tool", "nm", binary(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte(" main.main\n")) {
		t.Fatalf("got %d bytes of symbols without main.main, want all", len(out))
	}
	for _, name := range []string{"text/template.(*Template).Execute", "html/template.(*Template).Execute"} {
		if bytes.Contains(out, []byte(" "+name+"\n")) {
			t.Errorf("got %s in the program, want no templates: print with fmt, and escape with html.EscapeString", name)
		}
	}
}

// removeBuilt removes what buildTool has built.
func removeBuilt() {
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// writeProgram writes a script that is run. No process starts meanwhile: it would have
// the file open for a moment, and who runs it would be told "text file busy".
func writeProgram(t *testing.T, path, script string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(script), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
