package main

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// Persian, Hindi and emoji arrive as the model and the user wrote them: in a pipe, in the list of
// sessions and in the conversation.
func TestProseIsWhole(t *testing.T) {
	t.Parallel()
	const text = "نمی\u200cدانم क\u200dष 👨\u200d👩\u200d👧 ❤\ufe0f Wort\u00adteil"
	b := newBox(t)
	model := fakellm.New(fakellm.Step{Text: text + " \u202e\x1b[2J\u200b"})
	t.Cleanup(model.Close)
	b.provider(model)
	out, _, code := b.in(b.dir, "run", "--session", "prose", "क\u200dष 👨\u200d👩 می\u200cخ\u202e")
	if want := text + ` \u{202e}\u{1b}[2J` + "\u200b\n"; code != 0 || out != want {
		t.Errorf("yaya run prints %q, want %q", out, want)
	}
	for command, want := range map[string]string{"list": "क\u200dष 👨\u200d👩 می\u200cخ" + `\u{202e}`, "show prose": text + ` \u{202e}\u{1b}[2J\u{200b}`} {
		if out := b.must(append([]string{"session"}, strings.Fields(command)...)...); !strings.Contains(out, want) {
			t.Errorf("yaya session %s prints %q, want %q in it", command, out, want)
		}
	}
}
