//go:build unix

package tool_shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// person is asked through a dispatcher.
type person struct {
	asked []string // what was shown, word for word
	brief string
	do    func() error // while the question stands
}

func (p *person) Approve(_ context.Context, call tool.Call, _ tool.Definition, brief string) error {
	p.asked, p.brief = append(p.asked, string(call.Bound())), brief
	if p.do != nil {
		return p.do()
	}
	return nil
}

// trusting admits every call: its folders are trusted.
type trusting struct{}

func (trusting) Admit(context.Context, tool.Call, tool.Definition) error { return nil }

// dispatcher puts the plugin's tools behind the one door.
func (w *world) dispatcher(a tool.Approver, more ...tool.Tool) func(session, name string, args map[string]any) tool.Result {
	w.t.Helper()
	reg := new(tool.Registry)
	for _, t := range w.c.tools {
		more = append(more, t)
	}
	if err := reg.Register(more...); err != nil {
		w.t.Fatal(err)
	}
	d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Approver: a, Policy: w.policy, Log: zerolog.Nop()})
	d.SetGate(trusting{})
	d.SetWitness(w.p.Unreviewed)
	d.AddHook(w.p.Hook())
	w.t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			w.t.Errorf("Close of the dispatcher = %v, want no error", err)
		}
	})
	return func(session, name string, args map[string]any) tool.Result {
		w.t.Helper()
		if args == nil {
			args = map[string]any{}
		}
		raw, err := json.Marshal(args)
		must(w.t, err)
		return d.Call(w.t.Context(), reg.Snapshot(), tool.Call{ID: "c", Name: name, Args: raw, SessionID: session, Origin: tool.OriginLoop, Caller: tool.LocalOwner})
	}
}

// unreviewed notes a change that is over.
func (w *world) unreviewed(c tool.Change) error {
	ended, err := w.p.Unreviewed(c)
	if err != nil {
		return err
	}
	return ended()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) script(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755), os.Chmod(path, 0o755))
}

// SEC-6, R18: the commands that an ask for verify shows are those that run, whatever
// AGENTS.md says by then.
func TestVerifyRunsWhatWasShown(t *testing.T) {
	w := newWorld(t)
	w.write("AGENTS.md", "## Verify\n\n```\necho SHOWN && echo \"<more>\"\n```\n")
	p := &person{do: func() error {
		w.write("AGENTS.md", "## Verify\n\n```\necho OTHER; touch ran\n```\n")
		return nil
	}}
	call := w.dispatcher(p)
	w.agree()
	w.write("AGENTS.md", "## Verify\n\n```\necho CHANGED && echo \"<more>\"\n```\n")
	res := call("s", "verify", nil)
	if len(p.asked) != 1 || !strings.HasPrefix(p.asked[0], `{"commands":["echo CHANGED && echo \"<more>\""],"cwd":`) || !strings.Contains(p.brief, "with commands that nobody has approved: echo CHANGED") {
		t.Errorf("asked %q, brief %q", p.asked, p.brief)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "ran")); !res.OK || err == nil || !strings.Contains(res.Text(), "CHANGED\n<more>") {
		t.Errorf("got %s, want what was shown", res.Text())
	}
}

// SEC-6, TW-09, TW-13: a script, program, folder or file that defines what runs is looked
// at again when the command has been started and waits: once it is another, nothing
// runs, and the answer names it.
func TestSwapsBetweenAskAndStart(t *testing.T) {
	evil := "#!/bin/sh\ntouch ran\n"
	for name, tt := range map[string]struct {
		command, dir string
		swap         func(w *swapWorld)
		want         string
	}{
		"script rewritten":            {"./run.sh", "", func(w *swapWorld) { w.script("run.sh", evil) }, "run.sh changed"},
		"script replaced":             {"sh run.sh", "", func(w *swapWorld) { w.script("new", evil); w.rename("new", "run.sh") }, "run.sh changed"},
		"script gone":                 {"./run.sh || touch ran", "", func(w *swapWorld) { must(w.t, os.Remove(filepath.Join(w.dir, "run.sh"))) }, "run.sh is gone"},
		"script appears":              {"./absent.sh; true", "", func(w *swapWorld) { w.script("absent.sh", evil) }, "absent.sh appeared"},
		"in an argument of sh -c":     {"sh -c './run.sh x'", "", func(w *swapWorld) { w.script("run.sh", evil) }, "run.sh changed"},
		"after cd":                    {"cd sub && cd deep && ./run.sh", "", func(w *swapWorld) { w.script("sub/deep/run.sh", evil) }, "sub/deep/run.sh changed"},
		"after an option":             {"make -fx.mk", "", func(w *swapWorld) { w.write("x.mk", "all:\n\ttouch ran\n") }, "x.mk changed"},
		"after a redirection":         {"sh <run.sh", "", func(w *swapWorld) { w.script("run.sh", evil) }, "run.sh changed"},
		"quoted":                      {"sh 'with blank.sh'", "", func(w *swapWorld) { w.script("with blank.sh", evil) }, "with blank.sh changed"},
		"large binary":                {"./large", "", func(w *swapWorld) { w.script("large", evil+strings.Repeat("#", 17<<20)) }, "large changed"},
		"another Makefile":            {"make", "", func(w *swapWorld) { w.write("GNUmakefile", "all:\n\ttouch ran\n") }, "GNUmakefile appeared"},
		"package.json":                {"npm test", "", func(w *swapWorld) { w.write("package.json", `{"scripts":{"test":"touch ran"}}`) }, "package.json appeared"},
		"link to outside":             {"./link.sh", "", func(w *swapWorld) { w.link(filepath.Join(w.aside, "evil.sh"), "link.sh") }, "link.sh"},
		"script outside":              {"sh $HOME/x; sh ASIDE/good.sh", "", func(w *swapWorld) { must(w.t, os.WriteFile(filepath.Join(w.aside, "good.sh"), []byte(evil), 0o755)) }, "good.sh changed"},
		"program earlier in PATH":     {"true; touch-ran", "", func(w *swapWorld) { w.program("first", "touch-ran", evil) }, "touch-ran is no longer the one"},
		"program replaced":            {"touch-ran", "", func(w *swapWorld) { w.program("second", "touch-ran", evil) }, "touch-ran changed"},
		"folder replaced":             {"./run.sh", "sub", func(w *swapWorld) { w.rename("sub", "old"); w.script("sub/run.sh", evil) }, "was replaced"},
		"folder replaced by a link":   {"./run.sh", "sub", func(w *swapWorld) { w.rename("sub", "old"); w.link(w.aside, "sub") }, "was replaced"},
		"folder with all its content": {"./run.sh", "sub", func(w *swapWorld) { w.rename("sub", "old"); w.script("sub/run.sh", "#!/bin/sh\n") }, "was replaced"},
		"the workspace replaced": {"./run.sh", "", func(w *swapWorld) {
			must(w.t, os.Rename(w.dir, w.dir+".old"))
			w.script("run.sh", evil)
		}, "was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			w := swapping(t)
			p := &person{do: func() error { tt.swap(w); return nil }}
			command := strings.ReplaceAll(tt.command, "ASIDE", w.aside)
			res := w.dispatcher(p)("s", "shell", map[string]any{"command": command, "dir": tt.dir})
			if len(p.asked) != 1 || res.OK || res.ErrorKind != tool.ErrRejected || !strings.Contains(res.Text(), tt.want) || !strings.HasSuffix(res.Text(), "since it was shown: ask again") {
				t.Errorf("asked %q, got %+v, want a refusal that says %q", p.asked, res, tt.want)
			}
			if ran := w.ran(); ran != "" {
				t.Errorf("it ran, in %s", ran)
			}
		})
	}
}

// swapping has a workspace to swap things in.
func swapping(t *testing.T) *swapWorld {
	t.Helper()
	tools := t.TempDir()
	must(t, os.Mkdir(filepath.Join(tools, "first"), 0o755), os.Mkdir(filepath.Join(tools, "second"), 0o755))
	t.Setenv("PATH", filepath.Join(tools, "first")+":"+filepath.Join(tools, "second")+":"+os.Getenv("PATH"))
	w := &swapWorld{newWorld(t), t.TempDir(), tools}
	ok := "#!/bin/sh\n"
	for _, name := range []string{"run.sh", "sub/run.sh", "sub/deep/run.sh", "with blank.sh"} {
		w.script(name, ok)
	}
	w.script("large", ok+strings.Repeat("#", 17<<20))
	w.write("x.mk", "all:\n")
	w.write("Makefile", "all:\n")
	must(t, os.WriteFile(filepath.Join(w.aside, "good.sh"), []byte(ok), 0o755), os.WriteFile(filepath.Join(w.aside, "evil.sh"), []byte("#!/bin/sh\ntouch ran\n"), 0o755))
	w.link(filepath.Join(w.aside, "good.sh"), "link.sh")
	w.program("second", "touch-ran", ok)
	return w
}

type swapWorld struct {
	*world
	aside, tools string // folders outside the workspace
}

func (w *world) rename(from, to string) {
	w.t.Helper()
	must(w.t, os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)))
}

// link makes a link, in the place of one that is there.
func (w *world) link(to, name string) {
	w.t.Helper()
	must(w.t, os.Symlink(to, filepath.Join(w.dir, name+".new")), os.Rename(filepath.Join(w.dir, name+".new"), filepath.Join(w.dir, name)))
}

// program puts a program into one of two folders in PATH.
func (w *swapWorld) program(folder, name, text string) {
	w.t.Helper()
	at := filepath.Join(w.tools, folder, name)
	must(w.t, os.WriteFile(at+".new", []byte(text), 0o755), os.Rename(at+".new", at))
}

// ran tells where the file is that shows that something ran.
func (w *swapWorld) ran() string {
	for _, dir := range []string{w.dir, w.dir + ".old", filepath.Join(w.dir, "sub"), filepath.Join(w.dir, "old"), w.aside} {
		if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
			return dir
		}
	}
	return ""
}

// A command whose files are not swapped runs, in the folder that was shown, whatever else
// changes meanwhile.
func TestWhatIsNotSwappedRuns(t *testing.T) {
	wholeSandbox(t)
	w := swapping(t)
	p := &person{do: func() error {
		w.write("unrelated.txt", "new")
		w.program("first", "unrelated", "#!/bin/sh\n")
		return nil
	}}
	call := w.dispatcher(p)
	res := call("s", "shell", map[string]any{"command": "./run.sh && touch-ran; pwd && echo \"<$(cat deep/run.sh)>\" 2>&1", "dir": "sub"})
	if want := "/sub\n<#!/bin/sh>\n[exit code 0]"; !res.OK || !strings.HasSuffix(res.Text(), want) {
		t.Errorf("got %+v, want …%s", res, want)
	}
	var shown struct {
		Command, Dir, Cwd string
		Files             []struct{ Path, SHA256 string }
		Programs          []string
	}
	must(t, json.Unmarshal([]byte(p.asked[0]), &shown))
	var names []string
	for _, f := range shown.Files {
		names = append(names, f.Path)
		if len(f.SHA256) != 24 {
			t.Errorf("%s has the digest %q, want 24 digits", f.Path, f.SHA256)
		}
	}
	slices.Sort(names)
	if fmt.Sprint(names) != "[sub/deep/run.sh sub/run.sh]" || fmt.Sprint(shown.Programs) != "["+filepath.Join(w.tools, "second", "touch-ran")+"]" || !strings.HasSuffix(shown.Cwd, "/sub") {
		t.Errorf("shown: %s", p.asked[0])
	}
	// The command comes first, and as sh takes it.
	if !strings.HasPrefix(p.asked[0], `{"command":"./run.sh && touch-ran; pwd && echo \"<$(cat deep/run.sh)>\" 2>&1","dir":"sub",`) {
		t.Errorf("shown: %s", p.asked[0])
	}
	// The folder is the one that was opened: a link in the workspace leads to it, none
	// leads out.
	w.link("sub", "inside")
	w.link(w.aside, "outside")
	if res := call("s", "shell", map[string]any{"command": "pwd", "dir": "inside"}); !res.OK || !strings.Contains(res.Text(), "/sub\n") {
		t.Errorf("through a link inside: %+v", res)
	}
	if res := call("s", "shell", map[string]any{"command": "pwd", "dir": "outside"}); res.OK || res.ErrorKind != tool.ErrValidation {
		t.Errorf("through a link that leads out: %+v", res)
	}
}

// TW-10, Y-136: an approval for a session covers one command with the files and programs
// that it names, unchanged; everything else is asked about.
func TestGrantsAreForWhatWasShown(t *testing.T) {
	w := swapping(t)
	b := bus.New(bus.Config{})
	asks := 0
	rt, err := approval.New(approval.Config{Bus: b, Log: zerolog.Nop(), Asker: func(tool.Call) approval.Ask {
		return func(context.Context, approval.Request) (event.ApprovalAnswer, string, error) {
			asks++
			return event.ApproveForSession, "", nil
		}
	}})
	must(t, err)
	defer func() {
		rt.Close()
		must(t, b.Close(context.Background()))
	}()
	call := w.dispatcher(rt)
	expect := func(what, command string, want int) {
		t.Helper()
		asks = 0
		call("s", "shell", map[string]any{"command": command, "timeout_seconds": 20})
		if asks != want {
			t.Errorf("%s: asked %d times about %q, want %d", what, asks, command, want)
		}
	}
	expect("at first", "git status", 1)
	expect("again", "git status", 0)
	for _, command := range []string{
		"env -S 'git status'", "sh -c 'git status'", "echo status | xargs git", "find . -maxdepth 0 -exec git status ';'",
		"git -c core.pager=./run.sh status", "busybox sh -c 'git status'", "nice git status", "git status\n./run.sh", "git status;", " git status", "git  status", "GIT_PAGER=./run.sh git status",
	} {
		expect("another command", command, 1)
	}
	expect("still", "git status", 0)
	w.program("first", "git", "#!/bin/sh\n")
	expect("another git", "git status", 1)
	for _, tt := range []struct {
		name, command string
		edit          func()
	}{
		{"the script changed", "./run.sh", func() { w.script("run.sh", "#!/bin/sh\nexit 3\n") }},
		{"the script of sh -c changed", "sh -c ./run.sh", func() { w.script("run.sh", "#!/bin/sh\nexit 4\n") }},
		{"the Makefile changed", "make -s all", func() { w.write("Makefile", "all:\n\t@exit 3\n") }},
		{"a Makefile is read first", "make all", func() { w.write("GNUmakefile", "all:\n\t@exit 4\n") }},
	} {
		expect(tt.name+": before", tt.command, 1)
		expect(tt.name+": again", tt.command, 0)
		tt.edit()
		expect(tt.name, tt.command, 1)
		expect(tt.name+": agreed to", tt.command, 0)
	}
}

func TestUsersCommandsRunAsEver(t *testing.T) {
	wholeSandbox(t)
	for _, mode := range []sandbox.Mode{sandbox.Prefer, sandbox.Without} {
		t.Run(string(mode), func(t *testing.T) { runAsEver(t, mode) })
	}
}

func runAsEver(t *testing.T, mode sandbox.Mode) {
	w := newWorld(t)
	w.sandbox.Mode = mode
	killed := "[exit code -1]"
	if mode != sandbox.Without && sandbox.Probe().Best != sandbox.None {
		killed = "[exit code 137]" // as a shell says it
	}
	w.write("Makefile", "test:\n\t@echo made\n\t@exit 7\n")
	for command, want := range map[string]string{
		"cd /; pwd":                    "/\n[exit code 0]",
		"make -s test 2>/dev/null":     "made\n[exit code 2]",
		"exit 9":                       "[exit code 9]",
		"kill -9 $$":                   killed,
		"cat; echo end":                "end\n[exit code 0]",
		"read x; echo $?":              "1\n[exit code 0]",
		"echo $#; set -- a b; echo $1": "0\na\n[exit code 0]",
		"printf '%s' \"$_\"; echo \"<$IFS>\" | wc -c": "6\n[exit code 0]",
	} {
		if got := w.shell(command).Text(); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	if got := w.shell("\nno-such-command").Text(); !strings.Contains(got, "no-such-command: not found") || strings.Contains(got, "sh: 5:") {
		t.Errorf(`got %q; want "no-such-command: not found" without "sh: 5:"`, got)
	}
}
