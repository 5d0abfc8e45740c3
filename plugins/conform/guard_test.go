package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// shell is a tool of that name, which echoes.
type shell struct{}

func (shell) Definition() tool.Definition {
	return tool.Definition{Name: "shell", Description: "Runs.", InputSchema: json.RawMessage(`{"type":"object"}`), Kind: tool.KindRead}
}

func (shell) Invoke(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{OK: true, Display: []tool.Block{tool.Text("ran " + string(call.Args))}}, nil
}

// PL-03: a guard in Python stands before every call and every message of a kernel.
func TestExampleGuard(t *testing.T) {
	t.Parallel()
	folder := python.example(t, "careful")
	h := newHouse(t, nil)
	if err := h.Tools.Register(shell{}); err != nil {
		t.Fatal(err)
	}
	h.load(folder)
	for say, want := range map[string]string{
		`/tool shell {"command":"ls"}`:                         `ran {"command":"ls"}`,
		`/tool shell {"command":"git -C x push --force"}`:      "denied: plugin careful: a person pushes, by hand",
		`/tool shell {"command":"cat .env"}`:                   "rejected: it needs approval and nobody is there to ask",
		"this is my key: -----BEGIN OPENSSH PRIVATE KEY-----x": "failed: denied: plugin careful: the message has a private key in it",
		"hello": "echo: hello",
	} {
		if got := h.says(fmt.Sprintf("s%x", say), say); !strings.Contains(got, want) {
			t.Errorf("the answer to %q is %q, want %q in it", say, got, want)
		}
	}
	// Its program is gone: nothing runs until it is back.
	program := filepath.Join(folder, "main.py")
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(program, []byte("raise SystemExit(1)"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Plugins.Replace(t.Context(), h.plugin(folder)); err == nil {
		t.Error("Replace() = nil, want that it does not start")
	}
	if got := h.says("s2", "hello"); !strings.Contains(got, "plugin careful guards messages to the model, and it is not running") {
		t.Errorf("without the guard the turn says %q, want its absence", got)
	}
	if err := os.WriteFile(program, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Plugins.Replace(t.Context(), h.plugin(folder)); err != nil {
		t.Fatal(err)
	}
	if got := h.says("s3", "hello"); got != "echo: hello" {
		t.Errorf("with the guard the turn says %q, want the model's answer", got)
	}
}
