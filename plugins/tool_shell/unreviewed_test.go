//go:build unix

package tool_shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/tool_workspace"
)

// reviewed is a workspace with Git and patches that are reviewed in some way.
func reviewed(t *testing.T, how string) (w *world, p *person, call func(session, name string, args map[string]any) tool.Result) {
	t.Helper()
	w = newWorld(t)
	w.c.config["patch_review"] = how
	must(t, os.Mkdir(filepath.Join(w.dir, ".git"), 0o755))
	w.write("Makefile", "test:\n\t@sh check.sh\n")
	w.write("check.sh", "echo the user\n")
	files := tool_workspace.New(func(string) (string, error) { return w.dir, nil }, nil, nil)
	must(t, files.OnLoad(t.Context(), w.c))
	p = &person{}
	return w, p, w.dispatcher(p)
}

func create(name, text string) map[string]any {
	return map[string]any{"patch": "*** Begin Patch\n*** Add File: " + name + "\n+" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+") + "\n*** End Patch\n"}
}

// SEC-7: with patch_review auto a model changes what the checks run, under any name:
// nothing of that runs before a person has been shown the files.
func TestChecksAfterUnseenChanges(t *testing.T) {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile", "extra.mk", "package.json", "conftest.py", "tox.ini", "Cargo.toml", "justfile", "sub/deep.sh", "check_test.go"} {
		t.Run(name, func(t *testing.T) {
			w, p, call := reviewed(t, `"auto"`)
			if name == "Makefile" {
				must(t, os.Remove(filepath.Join(w.dir, "Makefile")))
				w.write("AGENTS.md", "# Verify\n- `make test`\n")
			}
			w.agree()
			p.do = func() error { return errors.New("nobody is there") }
			patched := call("s", "apply_patch", create(name, "test:\n\t@touch ran\n"))
			asked := len(p.asked)
			res := call("s", "verify", nil)
			if _, err := os.Stat(filepath.Join(w.dir, "ran")); err == nil {
				t.Error("what nobody has looked at ran")
			}
			if patched.OK && (len(p.asked) != asked+1 || res.OK || !strings.Contains(p.asked[asked], `"changed_unreviewed":[{"path":"`+name+`","sha256":"`) || !strings.Contains(p.brief, "after changes that nobody has reviewed: make test")) {
				t.Errorf("asked %q (%s), got %+v", p.asked, p.brief, res)
			}
			if !patched.OK && asked != 1 {
				t.Errorf("the patch was refused unasked: %+v", patched)
			}
		})
	}
}

// S-51, SEC-7: changes count for the folder: for other sessions, sub-agents, the folders
// above and below, and after a restart, until a person has agreed to them.
func TestUnseenChangesAreRemembered(t *testing.T) {
	w, p, call := reviewed(t, `"auto"`)
	w.agree()
	asks := func(what, session string, want int) {
		t.Helper()
		n := len(p.asked)
		call(session, "verify", nil)
		if got := len(p.asked) - n; got != want {
			t.Errorf("%s: verify of %s is asked about %d times, want %d", what, session, got, want)
		}
	}
	asks("at first", "s", 0)
	if res := call("s", "apply_patch", create("new.sh", "echo x\n")); !res.OK || len(p.asked) != 0 {
		t.Fatalf("got %+v, want OK, len(asked) 0", res)
	}
	p.do = func() error { return &tool.RejectedError{} }
	for _, s := range []string{"s", "other", "s::agent::1"} {
		asks("not agreed to", s, 1)
	}
	// After a restart, in the folders above and below, and through a link.
	outer, link := filepath.Dir(w.dir), filepath.Join(t.TempDir(), "link")
	must(t, os.Mkdir(filepath.Join(w.dir, "sub"), 0o755), os.Symlink(w.dir, link))
	w.c.config["verify"] = `["true"]`
	for _, dir := range []string{w.dir, outer, filepath.Join(w.dir, "sub"), link} {
		if got := w.again(dir).preApproved(); got {
			t.Errorf("after a restart verify is not asked about in %s", dir)
		}
	}
	if !w.again(t.TempDir()).preApproved() {
		t.Error("verify is asked about in a folder without changes")
	}
	delete(w.c.config, "verify")
	// A change while the question stands is not agreed to.
	p.do = func() error {
		return w.unreviewed(tool.Change{SessionID: "s", Tool: "apply_patch", Paths: []string{"check.sh"}})
	}
	asks("agreed to", "s", 1)
	p.do = nil
	asks("what changed meanwhile", "s", 1)
	if !strings.Contains(p.asked[len(p.asked)-1], `"changed_unreviewed":[{"path":"check.sh"`) {
		t.Errorf("asked %q, want check.sh alone", p.asked[len(p.asked)-1])
	}
	for _, s := range []string{"s", "other", "s::agent::1"} {
		asks("all agreed to", s, 0)
	}
	// A file that is swapped after it was shown is not what was agreed to.
	call("s", "apply_patch", create("late.sh", "echo x\n"))
	p.do = func() error { w.write("late.sh", "echo evil\n"); return nil }
	asks("swapped", "s", 1)
	p.do = nil
	asks("after a swap", "s", 1)
	asks("then", "s", 0)
}

// writer is a tool that a rule allows, and that writes when it is told to.
type writer struct{ began, write chan struct{} }

func (writer) Definition() tool.Definition {
	return tool.Definition{Name: "writer", Kind: tool.KindWrite, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (writer) PreApproved(tool.Call) bool { return true }

func (t writer) Invoke(context.Context, tool.Call) (tool.Result, error) {
	close(t.began)
	<-t.write
	return tool.OK("written"), nil
}

// SEC-7: an approval while a call runs does not cover the call's changes
// after it: verify is asked about while it runs, and once more when it has ended.
func TestChangesThatComeAfterTheAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		atEnd func(t *testing.T, folders string) (repair func())
		after int // how often verify is asked about, of three calls
	}{
		"it ends":         {func(*testing.T, string) func() { return func() {} }, 1},
		"it is not noted": {spoiled, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, _ := reviewed(t, `"auto"`)
			slow := writer{make(chan struct{}), make(chan struct{})}
			call := w.dispatcher(p, slow)
			w.agree()
			var running sync.WaitGroup
			running.Go(func() { call("s", "writer", nil) })
			<-slow.began
			for n := range 2 {
				if res := call("s", "verify", nil); !res.OK || len(p.asked) != n+1 || !strings.Contains(p.asked[n], `"changed_by":["writer"]`) {
					t.Errorf("while it runs: asked %q, got %+v", p.asked, res)
				}
			}
			repair := tt.atEnd(t, filepath.Join(w.data, "folders"))
			close(slow.write)
			running.Wait()
			repair()
			p.asked = nil
			for range 3 {
				if res := call("other", "verify", nil); !res.OK {
					t.Errorf("got %+v, want OK", res)
				}
			}
			if len(p.asked) != tt.after {
				t.Errorf("after it: asked %q, want %d", p.asked, tt.after)
			}
		})
	}
}

// spoiled makes it impossible to note anything, until it is repaired.
func spoiled(t *testing.T, folders string) (repair func()) {
	t.Helper()
	file := filepath.Join(folders, "unreviewed.json")
	raw, err := os.ReadFile(file)
	must(t, err, os.WriteFile(file, []byte("{"), 0o600))
	return func() { must(t, os.WriteFile(file, raw, 0o600)) }
}

// SEC-7: checks that need no asking when they are prepared are not run after changes that
// began since.
func TestChangesBetweenPreparingAndRunning(t *testing.T) {
	w, _, _ := reviewed(t, `"auto"`)
	w.agree()
	c, err := w.prepare(t.Context(), tool.Call{Name: "verify", SessionID: "s", Origin: tool.OriginLoop, Args: json.RawMessage(`{}`)})
	must(t, err)
	if !w.c.tools["verify"].(tool.PreApproved).PreApproved(c) {
		t.Fatal("verify is asked about in a folder without changes")
	}
	must(t, w.unreviewed(tool.Change{SessionID: "s", Tool: "files__write", Any: true}))
	res, err := w.c.tools["verify"].Invoke(t.Context(), c)
	if err != nil || res.ErrorKind != tool.ErrRejected || !strings.Contains(res.Text(), "files__write") || !strings.Contains(res.Text(), "call verify again") {
		t.Errorf("got %+v, %v, want a refusal", res, err)
	}
}

// S-51: a change that a person has agreed to needs no second look; any other tool that
// may write is as unseen as a patch; reading leaves nothing unseen.
func TestWhatCountsAsSeen(t *testing.T) {
	w, p, call := reviewed(t, `"off"`)
	w.agree()
	if call("s", "apply_patch", create("a.sh", "x\n")); len(p.asked) != 1 {
		t.Fatalf("asked %q", p.asked)
	}
	call("s", "shell", map[string]any{"command": "touch b.sh"})
	call("s", "read_file", map[string]any{"path": "a.sh"})
	if call("s", "verify", nil); len(p.asked) != 2 {
		t.Errorf("verify is asked about after changes that were approved: %q", p.asked)
	}
	must(t, w.unreviewed(tool.Change{SessionID: "s", Tool: "files__write", Any: true}))
	if call("s", "verify", nil); len(p.asked) != 3 || !strings.Contains(p.asked[2], `"changed_by":["files__write"]`) {
		t.Errorf("asked %q, want verify, with the tool's name", p.asked)
	}
}

// SEC-7: when it cannot be known what has changed, verify is asked about; when it cannot
// be kept, nothing is changed unasked.
func TestUnseenChangesFailClosed(t *testing.T) {
	for name, spoil := range map[string]func(file string){
		"damaged":    func(f string) { must(t, os.WriteFile(f, []byte("{"), 0o600)) },
		"emptied":    func(f string) { must(t, os.WriteFile(f, nil, 0o600)) },
		"null":       func(f string) { must(t, os.WriteFile(f, []byte(`{"folders":null}`), 0o600)) },
		"of nothing": func(f string) { must(t, os.WriteFile(f, []byte(`{"folders":{"/x":null}}`), 0o600)) },
		"a folder":   func(f string) { must(t, os.Remove(f), os.Mkdir(f, 0o700)) },
		"too large":  func(f string) { must(t, os.Truncate(f, 5<<20)) },
	} {
		w, p, call := reviewed(t, `"auto"`)
		w.agree()
		must(t, w.unreviewed(tool.Change{SessionID: "s", Tool: "t", Any: true}))
		file := filepath.Join(w.data, "folders", "unreviewed.json")
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, want a file for its owner alone", err)
		}
		spoil(file)
		p.do = func() error { return &tool.RejectedError{} }
		call("s", "verify", nil)
		if len(p.asked) != 1 || !strings.Contains(p.asked[0], "changed_unknown") {
			t.Errorf("%s: asked %q, want verify", name, p.asked)
		}
		res := call("s", "apply_patch", create("a.sh", "x\n"))
		if _, err := os.Stat(filepath.Join(w.dir, "a.sh")); res.OK || err == nil || !strings.Contains(res.Text(), "unreviewed.json") {
			t.Errorf("%s: got %+v, want a refusal that names the file", name, res)
		}
	}
}

// R9: what is kept is bounded, and what is over counts as any change.
func TestUnseenChangesAreBounded(t *testing.T) {
	w := newWorld(t)
	var paths []string
	for n := range 1000 {
		paths = append(paths, fmt.Sprintf("%d/%s", n, strings.Repeat("x", 400)))
	}
	must(t, w.unreviewed(tool.Change{SessionID: "s", Tool: "apply_patch", Paths: paths}))
	for n := range 100 {
		must(t, w.unreviewed(tool.Change{SessionID: "s", Tool: fmt.Sprint("t", n), Any: true}))
	}
	if info, err := os.Stat(filepath.Join(w.data, "folders", "unreviewed.json")); err != nil || info.Size() > 64<<10 {
		t.Errorf("%v, %v bytes", err, info.Size())
	}
	w.c.config["verify"] = `["true"]`
	c, err := w.prepare(t.Context(), tool.Call{Name: "verify", SessionID: "s"})
	if err != nil || !strings.Contains(string(c.Prepared.Shown), `"apply_patch"`) || !strings.Contains(string(c.Prepared.Shown), `"others"`) {
		t.Errorf("%v, shown %.300s", err, c.Prepared.Shown)
	}
}

// again is the plugin after a restart, in a folder.
func (w *world) again(dir string) *world {
	w.t.Helper()
	root, err := os.OpenRoot(w.data)
	must(w.t, err)
	n := &world{t: w.t, dir: dir, data: w.data, home: w.home, sandbox: w.sandbox, undo: w.undo, c: &fakeContext{tools: map[string]tool.Tool{}, config: w.c.config}}
	procs := new(proc.Manager)
	w.t.Cleanup(func() {
		procs.Close(w.t.Context())
		must(w.t, n.p.OnUnload(w.t.Context(), n.c))
		_ = root.Close()
	})
	n.p = n.plugin(root, procs)
	must(w.t, n.p.OnLoad(w.t.Context(), n.c))
	n.agree()
	return n
}

func (w *world) preApproved() bool {
	w.t.Helper()
	c, err := w.prepare(w.t.Context(), tool.Call{Name: "verify", SessionID: "s", Origin: tool.OriginLoop})
	must(w.t, err)
	return w.c.tools["verify"].(tool.PreApproved).PreApproved(c)
}

// SEC-7: an approval for the session of a command without a sandbox does not hold after a change that
// nobody has approved: the command may run what has changed. In the sandbox it does.
func TestApprovalOfWhatWasSeen(t *testing.T) {
	w, _, _ := reviewed(t, `"auto"`)
	bound := func(outside bool) string {
		t.Helper()
		args := `{"command":"echo x","outside":true,"reason":"r"}`
		if !outside {
			args = `{"command":"echo x"}`
		}
		p, err := w.c.tools["shell"].(tool.Preparer).Prepare(t.Context(), tool.Call{Name: "shell", SessionID: "s", Args: json.RawMessage(args), Origin: tool.OriginLoop})
		must(t, err)
		p.Close()
		return string(p.Binds)
	}
	was := map[bool]string{false: bound(false), true: bound(true)}
	for outside, b := range was {
		if bound(outside) != b {
			t.Errorf("outside %v: the same call binds something else, want the same", outside)
		}
	}
	must(t, w.unreviewed(tool.Change{SessionID: "s", Tool: "edit", Paths: []string{"check.sh"}}))
	for outside, b := range was {
		if (bound(outside) != b) != outside {
			t.Errorf("outside %v: after an unseen change the call binds something else: %v, want it only outside", outside, !outside)
		}
	}
}
