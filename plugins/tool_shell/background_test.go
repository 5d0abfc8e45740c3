//go:build unix

package tool_shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// serveHTTP is the program server: "serve NETWORK ADDRESS" says where it listens, and answers until
// it is ended; "get NETWORK ADDRESS" asks it.
func serveHTTP(args []string) int {
	network, at := args[1], args[2]
	if args[0] == "get" {
		c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		}}}
		resp, err := c.Get("http://server/") //nolint:noctx // the command has a limit
		if err == nil {
			_, err = io.Copy(os.Stdout, resp.Body)
			err = errors.Join(err, resp.Body.Close())
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	l, err := net.Listen(network, at) //nolint:noctx // it ends with the command
	if err == nil {
		fmt.Println("listens at", l.Addr())
		err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // a test
			fmt.Println("asked")
			fmt.Fprintln(w, "served")
		}))
	}
	fmt.Println(err)
	return 1
}

// withServer puts the program server into the workspace.
func (w *world) withServer() {
	w.t.Helper()
	self, err := os.Executable()
	must(w.t, err)
	data, err := os.ReadFile(self)
	must(w.t, err, os.WriteFile(filepath.Join(w.dir, "server"), data, 0o755))
}

// state is the structured part of a result about a command in the background.
type state struct {
	ID       string `json:"id"`
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exit_code"`
}

func stateOf(t *testing.T, res tool.Result) (s state) {
	t.Helper()
	must(t, json.Unmarshal(res.Structured, &s))
	return s
}

// background starts a command that is still running when its call returns.
func (w *world) background(command string) (id, text string) {
	w.t.Helper()
	res, err := w.call(w.t.Context(), "shell", map[string]any{"command": command, "background": true}, nil)
	if err != nil || !res.OK {
		w.t.Fatalf("shell in the background = %+v, %v; want OK", res, err)
	}
	s := stateOf(w.t, res)
	if s.ID == "" || !s.Running || !strings.Contains(res.Text(), s.ID) {
		w.t.Fatalf("shell in the background = %q with %s, want its id, and that it runs", res.Text(), res.Structured)
	}
	return s.ID, res.Text()
}

// job calls a tool about a command in the background.
func (w *world) job(name, id string, more map[string]any) (tool.Result, state) {
	w.t.Helper()
	args := map[string]any{"id": id}
	for k, v := range more {
		args[k] = v
	}
	res, err := w.call(w.t.Context(), name, args, nil)
	if err != nil || !res.OK {
		w.t.Fatalf("%s(%s) = %+v, %v; want OK", name, id, res, err)
	}
	return res, stateOf(w.t, res)
}

// until reads the output of a command in the background until it has a text.
func (w *world) until(id, so, want string) string {
	w.t.Helper()
	eventually.True(w.t, fmt.Sprintf("output %q", want), func() bool {
		if !strings.Contains(so, want) {
			res, _ := w.job("shell_output", id, map[string]any{"wait_seconds": 60})
			so += res.Text()
		}
		return strings.Contains(so, want)
	})
	return so
}

// S-47: a server is started, asked by other commands and by others, read, and stopped. In a
// sandbox, commands of the session meet at a socket in their temporary folder.
func TestAServerInTheBackground(t *testing.T) {
	t.Parallel()
	t.Run("in a sandbox", func(t *testing.T) {
		wholeSandbox(t)
		for _, backend := range works(t) {
			if backend == sandbox.Landlock { // it lets no program have sockets, but for the host's network
				continue
			}
			w := boxed(t, backend)
			w.withServer()
			id, text := w.background("exec ./server serve unix $TMPDIR/s")
			w.until(id, text, "listens")
			if res := w.shell("./server get unix $TMPDIR/s"); !res.OK || !strings.HasPrefix(res.Text(), "served\n") {
				t.Errorf("%s: asked by a command: %+v, want the answer of the server", backend, res)
			}
			w.until(id, "", "asked")
			if res, s := w.job("shell_stop", id, nil); s.Running || !strings.Contains(res.Text(), "[stopped]") && s.ExitCode == nil {
				t.Errorf("%s: shell_stop = %q with %s, want that it was stopped", backend, res.Text(), res.Structured)
			}
			if res := w.shell("./server get unix $TMPDIR/s"); res.OK {
				t.Errorf("%s: asked after the end: %+v, want a failure", backend, res)
			}
		}
	})
	t.Run("without one", func(t *testing.T) {
		w := newWorld(t)
		w.sandbox.Mode = sandbox.Without
		w.withServer()
		id, text := w.background("exec ./server serve tcp 127.0.0.1:0")
		text = w.until(id, text, "\n")
		_, at, _ := strings.Cut(text, "listens at ")
		at, _, _ = strings.Cut(at, "\n")
		get := func() (string, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+"/", nil)
			must(t, err)
			c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := c.Do(req)
			if err != nil {
				return "", err
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
		if got, err := get(); err != nil || got != "served\n" {
			t.Errorf("asked by others: %q, %v; want the answer of the server at %q", got, err, at)
		}
		w.job("shell_stop", id, nil)
		if got, err := get(); err == nil {
			t.Errorf("asked after the end: %q, want no answer", got)
		}
	})
}

// R20: however a command in the background ends, nothing is left of it: no child that ignores
// signals, and none that has left the group.
func TestTheTreeOfABackgroundCommandDies(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const script = `trap '' TERM; (trap '' TERM; sleep 300) & echo $!; setsid sh -c 'trap "" TERM; echo $$; sleep 300' & %s`
	for name, tt := range map[string]struct {
		last string
		args map[string]any
		end  func(w *world, id string)
	}{
		"shell_stop":          {last: "wait", end: func(w *world, id string) { w.job("shell_stop", id, nil) }},
		"its time is over":    {last: "wait", args: map[string]any{"timeout_seconds": 2}},
		"it ends by itself":   {last: "while [ ! -e end ]; do sleep 0.1; done", end: func(w *world, _ string) { w.write("end", "") }},
		"deleted session":     {last: "wait", end: event1(event.SessionDeleted{SessionID: "s"})},
		"archived session":    {last: "wait", end: event1(event.SessionArchived{SessionID: "s"})},
		"reset session":       {last: "wait", end: event1(event.SessionReset{SessionID: "s"})},
		"closed session":      {last: "wait", end: func(w *world, _ string) { w.p.End("s") }},
		"revoked folder":      {last: "wait", end: func(w *world, _ string) { w.restricted.Store(true); w.p.TrustChanged(w.dir) }},
		"yaya ends":           {last: "wait", end: func(w *world, _ string) { must(w.t, w.p.OnUnload(w.t.Context(), w.c)) }},
		"its folder is empty": {last: "wait", end: func(w *world, id string) { must(w.t, os.RemoveAll(w.dir)); w.job("shell_stop", id, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.sandbox.Mode = sandbox.Without // in a sandbox, ids are its own: its tests look there
			args := map[string]any{"command": fmt.Sprintf(script, tt.last), "background": true}
			for k, v := range tt.args {
				args[k] = v
			}
			res, err := w.call(t.Context(), "shell", args, nil)
			if err != nil || !res.OK {
				t.Fatalf("shell = %+v, %v; want OK", res, err)
			}
			id, text := stateOf(t, res).ID, res.Text()
			var pids []int
			eventually.True(t, "two ids of processes", func() bool {
				if pids = numbers(text); len(pids) < 2 {
					res, _ := w.job("shell_output", id, map[string]any{"wait_seconds": 60})
					text += res.Text()
				}
				return len(pids) == 2
			})
			if tt.end != nil {
				tt.end(w, id)
			} else if res, s := w.job("shell_output", id, map[string]any{"wait_seconds": 600, "until_end": true}); s.Running || !strings.Contains(res.Text(), "[ended after 2s]") {
				t.Errorf("shell_output = %q, want that it was ended after 2s", res.Text())
			}
			for _, pid := range pids {
				eventually.True(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !alive(pid) })
			}
			eventually.True(t, "no note says that the command runs", func() bool { return !strings.Contains(w.p.Note("s").Text, " runs") })
		})
	}
}

// event1 returns what delivers an event.
func event1(payload any) func(*world, string) {
	return func(w *world, _ string) {
		must(w.t, w.p.OnEvent(w.t.Context(), event.Event{Payload: payload, SessionID: "s"}, w.c))
		if note := w.p.Note("s"); note.Text != "" { // at once, whatever it takes to end them
			w.t.Errorf("the session that ended is told %q, want nothing", note.Text)
		}
	}
}

// numbers are the lines of a text that are one.
func numbers(text string) (out []int) {
	for line := range strings.Lines(text) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// Of a flood that nobody reads the newest output is kept, and what is missing is named.
func TestFloodInTheBackground(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	res, err := w.call(t.Context(), "shell", map[string]any{"command": "yes first | head -c 20000000; touch over; while [ ! -e end ]; do sleep 0.1; done; echo last", "background": true}, nil)
	if err != nil || !res.OK {
		t.Fatalf("shell = %+v, %v; want OK", res, err)
	}
	if n := len(res.Text()); n > 257<<10 {
		t.Errorf("the call that starts it returns %d bytes, want at most 256 KiB and a line", n)
	}
	id := stateOf(t, res).ID
	eventually.True(t, "the flood is over", func() bool {
		_, err := os.Stat(filepath.Join(w.dir, "over"))
		return err == nil
	})
	w.write("end", "")
	res, s := w.job("shell_output", id, map[string]any{"wait_seconds": 600, "until_end": true})
	if text := res.Text(); s.Running || len(text) > 257<<10 || !strings.HasSuffix(text, "last\n[exit code 0]") {
		t.Errorf("%d bytes that end in %q, want the end of the output", len(text), text[max(0, len(text)-40):])
	}
	if res, err := w.call(t.Context(), "shell_output", map[string]any{"id": id}, nil); err != nil || res.ErrorKind != tool.ErrNotFound {
		t.Errorf("after its end was read: %+v, %v; want %v", res, err, tool.ErrNotFound)
	}
}

// A command that ends at once has the result of any other, and fails like it.
func TestABackgroundCommandThatEndsAtOnce(t *testing.T) {
	wholeSandbox(t)
	w := newWorld(t)
	res, err := w.call(t.Context(), "shell", map[string]any{"command": "echo no such server; exit 3", "background": true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := res.Text()
	if s := stateOf(t, res); s.Running { // a busy machine
		res, _ := w.job("shell_output", s.ID, map[string]any{"wait_seconds": 600, "until_end": true})
		text = res.Text()
	} else if res.OK || res.ErrorKind != tool.ErrTool {
		t.Errorf("got %+v, want a failure", res)
	}
	if !strings.Contains(text, "no such server\n") || !strings.HasSuffix(text, "[exit code 3]") {
		t.Errorf("got %q, want the output and the exit code", text)
	}
	if note := w.p.Note("s"); note.Text != "" {
		t.Errorf("the model is told %q, want nothing", note.Text)
	}
}

// A session has a number of commands in the background, and nothing to do with those of others.
func TestBackgroundCommandsAreOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []string
	for range 8 {
		id, _ := w.background("exec sleep 300")
		ids = append(ids, id)
	}
	res, err := w.call(t.Context(), "shell", map[string]any{"command": "exec sleep 300", "background": true}, nil)
	if err != nil || res.ErrorKind != tool.ErrRejected || !res.NotRun || !strings.Contains(res.Text(), ids[0]) || !strings.Contains(res.Text(), "shell_stop") {
		t.Errorf("the ninth: got %+v, %v; want a refusal that names the others", res, err)
	}
	for _, name := range []string{"shell_output", "shell_stop"} {
		for _, session := range []string{"other", "s::agent::12345678"} {
			res, err := w.c.tools[name].Invoke(t.Context(), tool.Call{Name: name, Args: []byte(`{"id":"` + ids[0] + `"}`), SessionID: session})
			if err != nil || res.ErrorKind != tool.ErrNotFound || strings.Contains(res.Text(), ids[1]) {
				t.Errorf("%s of the session %s: got %+v, %v; want nothing of another session", name, session, res, err)
			}
		}
	}
	w.job("shell_stop", ids[3], nil)
	w.background("exec sleep 300")
}

// The session of a sub-agent ends with its turn, and so do its commands; those of the session
// above go on. A session takes those of its sub-agents with it.
func TestBackgroundCommandsOfASubAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	start := func(session string) string {
		t.Helper()
		call, err := w.prepare(t.Context(), tool.Call{ID: "c", Name: "shell", Args: []byte(`{"command":"exec sleep 300","background":true}`), SessionID: session})
		must(t, err)
		res, err := w.c.tools["shell"].Invoke(t.Context(), call)
		if err != nil || !res.OK {
			t.Fatalf("shell of %s = %+v, %v; want OK", session, res, err)
		}
		return stateOf(t, res).ID
	}
	told := func() (out []string) {
		for _, s := range []string{"s", "s::agent::1", "s::agent::1::agent::2", "s2"} {
			if w.p.Note(s).Text != "" {
				out = append(out, s)
			}
		}
		return out
	}
	for _, s := range []string{"s", "s::agent::1", "s::agent::1::agent::2", "s2"} {
		start(s)
	}
	for _, tt := range []struct {
		ev   event.Event
		want string
	}{
		{event.Event{SessionID: "s", Payload: event.TurnCompleted{}}, "[s s::agent::1 s::agent::1::agent::2 s2]"},
		{event.Event{SessionID: "s::agent::1::agent::2", Payload: event.TurnFailed{}}, "[s s::agent::1 s2]"},
		{event.Event{Payload: event.SessionDeleted{SessionID: "s"}}, "[s2]"},
	} {
		must(t, w.p.OnEvent(t.Context(), tt.ev, w.c))
		if got := fmt.Sprint(told()); got != tt.want {
			t.Errorf("after %T of %q: commands of %s, want of %s", tt.ev.Payload, tt.ev.SessionID, got, tt.want)
		}
	}
}

// The model learns of commands in the background, and of their end until it has read it.
func TestBackgroundCommandsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if note := w.p.Note("s"); note.Text != "" {
		t.Errorf("before the first: %q, want nothing", note.Text)
	}
	id, _ := w.background("while [ ! -e end ]; do sleep 0.1; done; echo \"one\ntwo\"; exit 3")
	if got, want := w.p.Note("s"), id+` runs: "while [ ! -e end ]; do sleep 0.1; done; echo \"one two\"; exit 3"`; got.Text != want || got.Name == "" {
		t.Errorf("while it runs: %+v, want %s", got, want)
	}
	w.write("end", "")
	eventually.True(t, "its end is told", func() bool {
		return strings.HasPrefix(w.p.Note("s").Text, id+" has ended (exit code 3); read the rest of its output with shell_output: ")
	})
	if res, s := w.job("shell_output", id, nil); s.Running || s.ExitCode == nil || *s.ExitCode != 3 || res.Text() != "one\ntwo\n[exit code 3]" && sandbox.Probe().Best != sandbox.Landlock {
		t.Errorf("got %q with %s, want the rest and the exit code", res.Text(), res.Structured)
	}
	if note := w.p.Note("s"); note.Text != "" {
		t.Errorf("after its end was read: %q, want nothing", note.Text)
	}
}

// SEC-7: while a command runs in the background that nobody has agreed to, it may change what
// checks run: a yes to checks does not last, and its end counts as a change, too.
func TestUnseenChangesInTheBackground(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.policy = allowing{"shell"}
	p := &person{}
	call := w.dispatcher(p)
	w.write("Makefile", "test:\n\t@true\n")
	w.agree()
	res := call("s", "shell", map[string]any{"command": "exec sleep 300", "background": true})
	if !res.OK || len(p.asked) != 0 {
		t.Fatalf("got %+v after %q, want that it runs unasked", res, p.asked)
	}
	for i := range 2 {
		if res := call("s", "verify", nil); res.NotRun || len(p.asked) != i+1 {
			t.Errorf("check %d while it runs: %+v after %d asks, want %d", i, res, len(p.asked), i+1)
		}
	}
	if res := call("s", "shell_stop", map[string]any{"id": stateOf(t, res).ID}); !res.OK {
		t.Errorf("shell_stop = %+v, want OK", res)
	}
	for i := range 2 {
		if res := call("s", "verify", nil); res.NotRun || len(p.asked) != 3 {
			t.Errorf("check %d after its end: %+v after %d asks, want one ask more", i, res, len(p.asked)-2)
		}
	}
}

// allowing lets a tool run unasked, and leaves the others to the policy.
type allowing struct{ name string }

func (a allowing) Decide(ctx context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	if def.Name == a.name {
		return tool.Verdict{Decision: tool.Allow}, nil
	}
	return tool.DefaultPolicy{}.Decide(ctx, call, def)
}

// The question says that the command goes on.
func TestBackgroundIsAsked(t *testing.T) {
	w := newWorld(t)
	p := &person{do: func() error { return errors.New("no") }}
	call := w.dispatcher(p)
	for _, args := range []map[string]any{{"command": "true"}, {"command": "true", "background": true}} {
		if res := call("s", "shell", args); !res.NotRun {
			t.Errorf("got %+v, want that nothing ran", res)
		}
	}
	if len(p.asked) != 2 || strings.Contains(p.asked[0], `"background"`) || !strings.Contains(p.asked[1], `"background":true`) || p.brief != "run in the background: true" {
		t.Errorf("asked %q (%s), want that the second goes on in the background", p.asked, p.brief)
	}
	if note := w.p.Note("s"); note.Text != "" {
		t.Errorf("the model is told %q, want nothing", note.Text)
	}
}

// ADR 89: a command that goes on keeps nobody from undoing what others change.
func TestUndoBesideABackgroundCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	w.undo = undo.New(root, func([]byte) bool { return false })
	w = w.again(w.dir)
	w.background("exec sleep 300")
	if res := w.shell("echo b >b.txt"); !res.OK {
		t.Fatalf("got %+v, want OK", res)
	}
	done, err := w.undo.Undo(t.Context(), "s", func(dir string) (*workspace.Workspace, error) { return (*workspace.Guard)(nil).Open(dir) })
	if err != nil || !slices.Equal(done.Files, []string{"b.txt"}) {
		t.Errorf("Undo = %+v, %v; want b.txt", done, err)
	}
}

// AGT-4: an undo says that it does not undo a command before which the files could not be noted.
func TestUndoOfACommandThatIsNotNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reopen := func(dir string) (*workspace.Workspace, error) { return (*workspace.Guard)(nil).Open(dir) }
	other, err := reopen(t.TempDir())
	must(t, err)
	t.Cleanup(func() { _ = other.Close() })
	elsewhere, err := w.undo.Begin(t.Context(), "s", "shell", other)
	must(t, err)
	if res := w.shell("echo b >b.txt"); !strings.Contains(res.Text(), "cannot be undone") {
		t.Errorf("the result says %q, want that the change cannot be undone", res.Text())
	}
	_, err = elsewhere.Done(t.Context())
	must(t, err)
	if done, err := w.undo.Undo(t.Context(), "s", reopen); err != nil || len(done.Files) > 0 || len(done.Remaining) != 1 {
		t.Errorf("Undo = %+v, %v; want that the change stays", done, err)
	}
}

// Nobody is asked about a host when the call that would show it is over. Hosts that the session
// may reach are reached.
func TestHostsOfABackgroundCommand(t *testing.T) {
	w := withNetwork(t)
	asked := 0
	w.answer = func(context.Context, tool.Call, string) (approval.Decision, error) {
		asked++
		return approval.Decision{ApprovalResponse: event.ApprovalResponse{Response: event.ApproveForSession}}, nil
	}
	w.shell("./client one.invalid:8443")
	if asked != 1 {
		t.Fatalf("asked %d times, want once", asked)
	}
	res, err := w.call(t.Context(), "shell", map[string]any{"command": "./client one.invalid:8443 two.invalid:8443; exit 0", "background": true}, nil)
	must(t, err)
	text := res.Text()
	if s := stateOf(t, res); s.Running {
		res, _ := w.job("shell_output", s.ID, map[string]any{"wait_seconds": 600, "until_end": true})
		text += res.Text()
	}
	if asked != 1 || !strings.Contains(text, "one.invalid:8443 502") || !strings.Contains(text, "two.invalid:8443 403") || !strings.Contains(text, "nobody is asked about hosts of a command in the background") {
		t.Errorf("got %q after %d asks, want one host, and why not the other", text, asked)
	}
}

// A command leaves no descriptor behind when it goes on, nor when it has ended.
func TestNoDescriptorsOfBackgroundCommands(t *testing.T) {
	w := newWorld(t)
	open := func() int {
		t.Helper()
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skipf("descriptors cannot be counted here: %v", err)
		}
		return len(entries)
	}
	call := w.dispatcher(&person{})
	run := func() {
		t.Helper()
		res := call("s", "shell", map[string]any{"command": "exec sleep 300", "background": true})
		if res := call("s", "shell_stop", map[string]any{"id": stateOf(t, res).ID}); !res.OK {
			t.Fatalf("got %+v, want OK", res)
		}
	}
	run() // what stays for all commands is open now
	before := open()
	for range 3 {
		run()
	}
	eventually.True(t, fmt.Sprintf("no more than the earlier %d descriptors", before), func() bool { return open() <= before })
}
