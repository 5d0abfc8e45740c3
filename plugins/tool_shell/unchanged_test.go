//go:build unix

package tool_shell_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// S-51: the result of a command says that no file has changed, whether it ended by itself or ran
// out of time, and does not say so when one has.
func TestResultsSayThatNothingHasChanged(t *testing.T) {
	wholeSandbox(t)
	w := newWorld(t)
	w.write("f.txt", "one\n")
	const same, ended = `{"exit_code":0,"unchanged":true}`, `{"unchanged":true}`
	for _, c := range []struct{ name, command, want string }{
		{"reads", "cat f.txt", same},
		{"writes", "echo two > f.txt", `{"exit_code":0}`},
		{"writes the same", "echo two > f.txt", same},
		{"changes the mode", "chmod +x f.txt", `{"exit_code":0}`},
		{"removes", "rm f.txt; exit 3", `{"exit_code":3}`},
		{"writes a file in a folder that is new", "mkdir d; touch d/g", `{"exit_code":0}`},
	} {
		if res := w.shell(c.command); string(res.Structured) != c.want {
			t.Errorf("a command that %s: structured result is %s, want %s", c.name, res.Structured, c.want)
		}
	}
	late := func(command string, limit int) tool.Result {
		res, err := w.call(t.Context(), "shell", map[string]any{"command": command, "timeout_seconds": limit}, nil)
		if err != nil || res.ErrorKind != tool.ErrTimeout {
			t.Fatalf("shell(%q) = %+v, %v, want one that ran out of time", command, res, err)
		}
		return res
	}
	if res := late("sleep 600", 1); string(res.Structured) != ended {
		t.Errorf("structured result of a command that waited is %s, want %s", res.Structured, ended)
	}
	for limit := 1; ; limit *= 2 { // a busy machine may end it before it has begun
		res := late("touch h; sleep 600", limit)
		_, err := os.Stat(filepath.Join(w.dir, "h"))
		if errors.Is(err, fs.ErrNotExist) && limit < 60 {
			continue
		}
		if err != nil || len(res.Structured) != 0 {
			t.Errorf("structured result of a command that wrote and waited is %s (%v), want none", res.Structured, err)
		}
		break
	}
}
