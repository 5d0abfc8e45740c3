//go:build unix

package tool_shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A temporary file that a command of a session writes is there for the next command and
// for a check, for no other session and for nobody in /tmp, until the session ends.
func TestTemporaryFilesStayInASession(t *testing.T) {
	for _, backend := range works(t) {
		t.Run(backend, func(t *testing.T) {
			besideTmp(t)
			w := boxed(t, backend)
			run := func(session, command string) string {
				t.Helper()
				call, err := w.prepare(t.Context(), tool.Call{ID: "c", Name: "shell", Args: []byte(`{"command":"` + command + `"}`), SessionID: session})
				must(t, err)
				res, err := w.c.tools["shell"].Invoke(t.Context(), call)
				must(t, err)
				return res.Text()
			}
			run("s", "echo kept >$TMPDIR/yaya-test-file; mkdir $TMPDIR/d && touch $TMPDIR/d/f && chmod 0 $TMPDIR/d; chmod 0 $TMPDIR")
			const read = "cat $TMPDIR/yaya-test-file; echo $TMPDIR; touch $TMPDIR/x && echo writes"
			got := run("s", read)
			if !strings.HasPrefix(got, "kept\n") || !strings.Contains(got, "writes") {
				t.Errorf("the next command of the session: got %q, want what the last one has written", got)
			}
			if backend != sandbox.Landlock && !strings.Contains(got, "\n/tmp\n") {
				t.Errorf("got %q, want /tmp", got)
			}
			if got := run("other", read); strings.Contains(got, "kept\n") {
				t.Errorf("another session: got %q", got)
			}
			if _, err := os.Stat("/tmp/yaya-test-file"); err == nil {
				t.Error("the file is in /tmp of the host")
			}
			w.c.config["verify"] = `["cat $TMPDIR/yaya-test-file"]`
			w.agree()
			if res, err := w.call(t.Context(), "verify", nil, nil); err != nil || !res.OK {
				t.Errorf("as a check: got %q, %v", res.Text(), err)
			}
			must(t, w.p.OnEvent(t.Context(), event.Event{Payload: event.SessionArchived{SessionID: "s"}}, w.c))
			if got := run("s", read); strings.Contains(got, "kept\n") {
				t.Errorf("after the session: got %q", got)
			}
			must(t, w.p.OnUnload(t.Context(), w.c))
			if left, err := filepath.Glob(w.home + "/cache/tmp/*/*"); err != nil || len(left) > 0 {
				t.Errorf("after yaya there is %q, %v", left, err)
			}
		})
	}
}

// A call that is only prepared, as one that a person rejects, changes nothing in the
// temporary files of commands that run.
func TestPreparingLeavesTemporaryFiles(t *testing.T) {
	w := boxed(t, works(t)[0])
	prepare := func(command string) tool.Call {
		t.Helper()
		call, err := w.prepare(t.Context(), tool.Call{ID: "c", Name: "shell", Args: []byte(`{"command":"` + command + `"}`), SessionID: "s"})
		must(t, err)
		return call
	}
	run := func(call tool.Call) string {
		t.Helper()
		res, err := w.c.tools["shell"].Invoke(t.Context(), call)
		must(t, err)
		return res.Text()
	}
	run(prepare("echo kept >$TMPDIR/f; truncate -s 5G $TMPDIR/large"))
	files := func() string {
		t.Helper()
		folders, err := filepath.Glob(w.home + "/cache/tmp/*/*")
		must(t, err)
		found, err := filepath.Glob(w.home + "/cache/tmp/*/*/*")
		must(t, err)
		return strings.Join(append(folders, found...), " ")
	}
	before := files()
	if !strings.Contains(before, "/large") {
		t.Fatal("there are no temporary files")
	}
	next := prepare("cat $TMPDIR/f")
	if now := files(); now != before {
		t.Errorf("once a call is prepared there is %q, want %q", now, before)
	}
	if got := run(next); strings.Contains(got, "kept") || !strings.Contains(got, "/tmp was emptied before the command") {
		t.Errorf("the next command: got %q, want that its /tmp was emptied", got)
	}
	must(t, w.p.OnUnload(t.Context(), w.c))
}
