package daemon

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/folder"
)

// SEC-3, TW-08: the question about a folder shows all of what the folder brings, each on
// one line of its own, and what somebody else wrote looks like nothing of yaya's.
func TestFolderQuestionShowsAll(t *testing.T) {
	long := strings.Repeat("\x01", 4000)
	q := folder.Question{Subject: folder.Subject{Folder: "/p/a\nTrust the folder /safe?", Items: []folder.Item{
		{Kind: folder.Check, Runs: "make test\n    check: harmless"},
		{Kind: folder.Server, Name: "x\x1b[2J", Runs: "sh -c \u202eevil"},
		{Kind: folder.Check, Runs: long + "; rm -rf ~"},
	}}}
	got := Explain(q)
	for _, want := range []string{`The folder /p/a\u000aTrust the folder /safe? is not trusted.`, `    check: make test\u000a    check: harmless`, `server x\u001b[2J: sh -c \u202eevil`, `\u0001; rm -rf ~`} {
		if !strings.Contains(got, want) {
			t.Errorf("the question lacks %q", want)
		}
	}
	if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }); i >= 0 {
		t.Errorf("the question has %q, want printable ASCII", got[i:min(i+8, len(got))])
	}
	if lines := strings.Count(got, "\n    "); lines != len(q.Items) {
		t.Errorf("%d items on %d lines, want one each", len(q.Items), lines)
	}
}
