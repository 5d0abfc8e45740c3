//go:build unix

package tool_shell_test

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// The output of a command has no secrets, in its result and in the progress: neither if a
// secret is written in two pieces, nor if more is printed than is kept.
func TestOutputHasNoSecrets(t *testing.T) {
	const secret = "k3y-value-0123456789"
	w := newWorld(t)
	w.c.secret = new(masked.Secrets)
	w.c.secret.Declare(secret)
	told := ""
	command := "printf 'it is k3y-va'; sleep 0.3; printf 'lue-01'; sleep 0.3; echo '23456789.'; printf 'no k3y-valu'"
	res, err := w.call(t.Context(), "shell", map[string]any{"command": command}, func(p tool.Progress) { told += p.Message })
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"the result": res.Text(), "the progress": told} {
		if !strings.HasPrefix(text, "it is ****.\nno ****") {
			t.Errorf("%s is %q, want it to begin with the mask", where, text)
		}
	}
	// 2 MiB of secrets: the end of the head and the beginning of the tail are in one.
	if text := w.shell("yes " + secret + " | head -c 2097152").Text(); strings.Contains(text, "k3y") || strings.Contains(text, "456789") || !strings.Contains(text, "left out") && len(text) > 2<<20 {
		t.Errorf("a part of the secret is in %d bytes of output", len(text))
	}
}
