//go:build unix

package tool_shell_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/racing"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// works are the back ends that enforce something here.
func works(t *testing.T) (names []string) {
	t.Helper()
	for _, s := range sandbox.Probe().Backends {
		if s.Works && s.Name != sandbox.None {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		t.Skip("nothing makes a sandbox here")
	}
	return names
}

// wholeSandbox skips a test of what a command does, and of every word of its result, where
// the sandbox lacks something, and its result says so: in a container, or a sandbox.
func wholeSandbox(t *testing.T) {
	t.Helper()
	if sandbox.Probe().Best == sandbox.Landlock {
		t.Skip("there are no mounts here")
	}
}

// besideTmp has temporary folders of a test lie where a sandbox has no folder of its own.
func besideTmp(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", besidetmp.Dir(t))
}

// boxed is a world whose commands run in a sandbox of a back end.
func boxed(t *testing.T, backend string) *world {
	t.Helper()
	w := newWorld(t)
	w.sandbox = sandbox.Settings{Mode: sandbox.Prefer, Backend: backend}
	return w
}

// withNetwork is one that has hosts.
func withNetwork(t *testing.T) *world {
	t.Helper()
	if !slices.Contains(works(t), sandbox.Namespaces) {
		t.Skip("there are no namespaces here")
	}
	w := boxed(t, sandbox.Namespaces)
	self, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(self)
	must(t, err, os.WriteFile(filepath.Join(w.dir, "client"), data, 0o755))
	return w
}

// connect has the proxy of the environment connect to hosts, at the same time, and
// prints how it answers. A host that is written with a + is connected to twice.
func connect(hosts []string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, h := range hosts {
		times := 1
		if rest, ok := strings.CutPrefix(h, "+"); ok {
			h, times = rest, 2
		}
		for range times {
			all.Go(func() {
				answer := tunnel(h)
				mu.Lock()
				defer mu.Unlock()
				fmt.Println(h, answer)
			})
		}
	}
	all.Wait()
}

func tunnel(host string) string {
	at, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil || at.Host == "" {
		return "no proxy"
	}
	conn, err := net.Dial("tcp", at.Host) //nolint:noctx // it ends with the sandbox
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
		body, err := io.ReadAll(conn)
		return fmt.Sprint("200 ", strings.Contains(string(body), "served"), err)
	}
	return fmt.Sprint(resp.StatusCode)
}

// A command of an agent does what it is for, and nothing to what lies beside its
// workspace: the data of yaya, credentials, other files, the caches of other workspaces.
func TestCommandsAreKeptToTheirWorkspace(t *testing.T) {
	for _, backend := range works(t) {
		t.Run(backend, func(t *testing.T) {
			besideTmp(t)
			w := boxed(t, backend)
			aside := t.TempDir()
			other := filepath.Join(w.home, "cache", "workspace-other")
			must(t, os.MkdirAll(filepath.Join(w.home, ".ssh"), 0o700), os.MkdirAll(other, 0o700),
				os.WriteFile(filepath.Join(w.home, ".ssh", "id"), []byte("canary-key"), 0o600),
				os.WriteFile(filepath.Join(w.data, "secret"), []byte("canary-data"), 0o600),
				os.WriteFile(filepath.Join(other, "tool.js"), []byte("canary-cache"), 0o600))
			must(t, os.Symlink(filepath.Join(w.data, "secret"), filepath.Join(w.dir, "link")))
			for name, tt := range map[string]struct {
				command string
				works   bool
			}{
				"works in its folder":   {"mkdir -p sub && echo x >sub/f && cat sub/f && mv sub s2", true},
				"has a place for files": {"f=$(mktemp) && echo x >$f && cat $f", true},
				"has a cache":           {"mkdir -p $XDG_CACHE_HOME/x && echo x >$XDG_CACHE_HOME/x/f", true},
				"reads the system":      {"test -r /etc/passwd && ls /usr/bin >/dev/null", true},
				"reads yaya's data":     {"cat " + w.data + "/secret", false},
				"through a link":        {"cat link", false},
				"lists yaya's data":     {"ls " + w.data + " | grep secret", false},
				"reads keys":            {"cat " + w.home + "/.ssh/id", false},
				"writes outside":        {"echo x >" + aside + "/f", false},
				"writes in the home":    {"echo x >" + w.home + "/.profile", false},
				"poisons a cache":       {"echo evil >" + other + "/tool.js", false},
				"reads a cache":         {"cat " + other + "/tool.js", false},
				"signals yaya":          {fmt.Sprintf("kill -0 %d", os.Getpid()), false},
			} {
				res := w.shell(tt.command)
				if res.OK != tt.works || strings.Contains(res.Text(), "canary") {
					t.Errorf("a command that %s: got %q, want one that works: %v", name, res.Text(), tt.works)
				}
			}
			for _, dir := range []string{aside, w.home} {
				if there, err := filepath.Glob(dir + "/*"); err != nil || slices.ContainsFunc(there, func(f string) bool { return !slices.Contains([]string{"cache", ".ssh"}, filepath.Base(f)) }) {
					t.Errorf("a command wrote %q (%v)", there, err)
				}
			}
			if data, err := os.ReadFile(filepath.Join(other, "tool.js")); err != nil || string(data) != "canary-cache" {
				t.Errorf("the cache of another workspace has %q (%v)", data, err)
			}
			// A setting allows another folder.
			w.writes = []string{aside}
			if res := w.shell("echo x >" + aside + "/f"); !res.OK {
				t.Errorf("a command with %s: got %q, want a file", "sandbox.command.write", res.Text())
			}
			// GA-1: a command that puts a link in its place gains nothing by it.
			mine := filepath.Join(w.dir, "mine")
			must(t, os.Mkdir(mine, 0o700))
			w.writes = []string{mine}
			if res := w.shell("rm -r mine && ln -s " + w.home + " mine"); !res.OK && backend != sandbox.Landlock {
				t.Errorf("a link in the workspace: got %q", res.Text())
			}
			must(t, os.RemoveAll(mine), os.Symlink(w.home, mine))
			if res := w.shell("echo x >" + w.home + "/.profile"); res.OK || !strings.Contains(res.Text(), mine+" is a symbolic link, and the path leads to "+w.home) {
				t.Errorf("with a link in the place of a folder: got %q, want it refused", res.Text())
			}
			must(t, os.Remove(mine))
			w.writes = []string{"relative"}
			if res := w.shell("true"); res.OK || !strings.Contains(res.Text(), "sandbox.command.write: relative does not begin with / or ~/") {
				t.Errorf("with a setting that is wrong: got %q", res.Text())
			}
			w.writes = []string{"/usr/.."}
			if res := w.shell("true"); res.OK || !strings.Contains(res.Text(), "sandbox.command.write: /usr/.. is the whole file system") {
				t.Errorf("with a setting of everything: got %q", res.Text())
			}
		})
	}
}

// Two workspaces do not share a cache, and a workspace has the same for all sessions.
func TestCachesAreOfAWorkspace(t *testing.T) {
	backend := works(t)[0]
	w := boxed(t, backend)
	where := func(dir string) string {
		t.Helper()
		w.dir = dir
		return w.shell("echo $XDG_CACHE_HOME").Text()
	}
	one, two := w.dir, t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(one, link))
	if a, b := where(one), where(two); a == b || a != where(one) || a != where(link) || !strings.HasPrefix(a, w.home) {
		t.Errorf("caches: got %q and %q, want two that stay", a, b)
	}
}

// The files that configure Git are protected. The result names those that did not exist
// before and could not be protected.
func TestHooksArePlanted(t *testing.T) {
	plant := "mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; echo evil >>.git/config"
	for _, backend := range works(t) {
		for name, tt := range map[string]struct {
			make    func(git string) error
			planted bool // with namespaces
			want    string
		}{
			"no repository": {func(string) error { return nil }, true, ".git was not there before the command, and is now"},
			"no hooks": {func(git string) error {
				return errors.Join(os.Mkdir(git, 0o700), os.WriteFile(filepath.Join(git, "config"), nil, 0o600))
			}, true, ".git/hooks was not there before"},
			"whole": {func(git string) error {
				return errors.Join(os.MkdirAll(filepath.Join(git, "hooks"), 0o700), os.WriteFile(filepath.Join(git, "config"), nil, 0o600))
			}, false, ".git/hooks/pre-commit was not there before"},
		} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				w := boxed(t, backend)
				must(t, tt.make(filepath.Join(w.dir, ".git")))
				text := w.shell(plant).Text()
				_, err := os.Stat(filepath.Join(w.dir, ".git", "hooks", "pre-commit"))
				planted := tt.planted || backend == sandbox.Landlock
				if (err == nil) != planted || strings.Contains(text, tt.want) != planted {
					t.Errorf("got %q and a hook: %v; want to be told %q: %v", text, err == nil, tt.want, planted)
				}
				if text := w.shell("true").Text(); strings.Contains(text, ".git") {
					t.Errorf("the next command gets a report, too: %q", text)
				}
			})
		}
	}
}

// The result names each file that the command made, that configures Git, and that the
// sandbox cannot protect. It names the file once, and no file that was there before.
func TestGitIsConfigured(t *testing.T) {
	const git = "mkdir -p .git/hooks .git/objects .git/refs && echo '[core]' >.git/config && echo ref >.git/HEAD"
	repository := func(dir string) string { return "mkdir -p " + dir + " && (cd " + dir + " && " + git + ")" }
	for name, tt := range map[string]struct {
		before, plant string
		want          []string // what a result reports, each continued in how
	}{
		"commondir":        {git + " && cp -r .git evil && rm evil/HEAD", "echo ../evil >.git/commondir", []string{".git/commondir was not there before the command, and is now", "evil/config was", "evil/hooks was"}},
		"a repository":     {git, repository("sub"), []string{"sub/.git was not there"}},
		"two repositories": {git, repository("a/b") + ";" + repository("c"), []string{"a/b/.git was not there", "c/.git was not there"}},
		"its settings":     {git + ";" + repository("sub"), "echo '[core] fsmonitor = ./evil' >>sub/.git/config", []string{"sub/.git/config changed while the command ran"}},
		"its hook":         {git + ";" + repository("sub"), "echo evil >sub/.git/hooks/pre-commit", []string{"sub/.git/hooks/pre-commit was not there"}},
		"a bare one":       {git + "; mkdir sub; echo x >sub/config", "cd sub && mkdir objects refs && echo ref >HEAD", []string{"sub became a repository while the command ran"}},
		"a file .git":      {git, "mkdir sub && echo 'gitdir: ../evil' >sub/.git", []string{"sub/.git was not there"}},
		"what it names":    {git + "; mkdir sub evil && echo x >evil/config && echo 'gitdir: ../evil' >sub/.git", "echo x >>evil/config", []string{"evil/config changed"}},
		"a module":         {git, "mkdir -p .git/modules/a/b && echo x >.git/modules/a/b/config", []string{".git/modules/a/b/config was not there"}},
		"a work tree":      {git, "mkdir -p .git/worktrees/w && echo ../../../evil >.git/worktrees/w/commondir", []string{".git/worktrees/w/commondir was not there"}},
		"an include":       {git + "; echo '[include] path = ../team.gitconfig' >>.git/config; echo >team.gitconfig", "echo '[core] fsmonitor = ./evil' >team.gitconfig", []string{"team.gitconfig changed"}},
		"a missing one":    {git + "; printf '[includeIf \"onbranch:x\"]\n path = ../gone/x\n' >>.git/config", "mkdir gone; echo '[core]' >gone/x", []string{"gone/x was not there"}},
		"hooksPath":        {git + "; mkdir githooks; echo '[core] hooksPath = githooks' >>.git/config", "echo evil >githooks/pre-commit", []string{"githooks/pre-commit was not there"}},
		"husky":            {git + "; mkdir -p .husky/_; echo x >.husky/pre-commit; echo '[core] hooksPath = .husky/_' >>.git/config", "echo evil >>.husky/pre-commit", []string{".husky/pre-commit changed"}},
		"a rebase":         {git, "mkdir .git/rebase-merge && printf 'pick 1\nexec ./evil\n' >.git/rebase-merge/git-rebase-todo", []string{".git/rebase-merge/git-rebase-todo was not there"}},
		".gitmodules":      {git, "echo x >.gitmodules", []string{".gitmodules was not there"}},
		"a strange name":   {git, "", nil},
		"other files":      {git + "; mkdir sub", "mkdir -p a/b; echo x >a/b/config; echo x >sub/HEAD; ln -s .git other; echo x >.git/index; mkdir .git/rebase-merge; echo pick 1 >.git/rebase-merge/git-rebase-todo", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := boxed(t, works(t)[0])
			cmd := exec.CommandContext(t.Context(), "sh", "-c", tt.before)
			cmd.Dir = w.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("script %q = %v, want no error: %s", tt.before, err, out)
			}
			if tt.want == nil { // the name is quoted: nothing pretends to be a line of its own
				tt.plant, tt.want = "d=$(printf 'a\nb'); mkdir -p \"$d/.git\"", []string{`"a\nb/.git" was not there`}
			}
			text := w.shell(tt.plant).Text()
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want to be told %q", text, want)
				}
			}
			if n := strings.Count(text, "before you run Git"); n != len(tt.want) {
				t.Errorf("told of %d, want %d: %q", n, len(tt.want), text)
			}
			if text := w.shell("true").Text(); strings.Contains(text, "Git") {
				t.Errorf("the next command gets a report, too: %q", text)
			}
		})
	}
}

// The result does not count changes as the command's that somebody else made before the
// command began, while a person was asked about it.
func TestGitOfTheUserIsNotTold(t *testing.T) {
	wholeSandbox(t)
	w := boxed(t, works(t)[0])
	call, err := w.prepare(t.Context(), tool.Call{ID: "c", Name: "shell", Args: []byte(`{"command":"echo x >f"}`), SessionID: "s"})
	must(t, err, os.MkdirAll(filepath.Join(w.dir, "mine", ".git"), 0o700), os.MkdirAll(filepath.Join(w.dir, ".git", "hooks"), 0o700))
	res, err := w.c.tools["shell"].Invoke(t.Context(), call)
	must(t, err)
	if text := res.Text(); strings.Contains(text, ".git") || !res.OK {
		t.Errorf("got %q, want nothing told of", text)
	}
}

// A host that is not listed is asked about, once for all connections of a command, in
// words that name it; the answer counts for the command, for the session, or for nothing.
func TestHostsAreAskedAbout(t *testing.T) {
	w := withNetwork(t)
	var mu sync.Mutex
	var briefs []string
	says := func(answer event.ApprovalAnswer, feedback string) {
		w.answer = func(_ context.Context, call tool.Call, brief string) (approval.Decision, error) {
			mu.Lock()
			defer mu.Unlock()
			briefs = append(briefs, brief+" "+string(call.Args))
			return approval.Decision{ApprovalResponse: event.ApprovalResponse{Response: answer, Feedback: feedback}}, nil
		}
	}
	asked := func(session, turn, command string, want int) string {
		t.Helper()
		briefs = nil
		call, err := w.prepare(t.Context(), tool.Call{ID: "c", Name: "shell", Args: []byte(fmt.Sprintf(`{"command":%q}`, command)), SessionID: session, Turn: turn})
		must(t, err)
		res, err := w.c.tools["shell"].Invoke(t.Context(), call)
		must(t, err)
		if len(briefs) != want {
			t.Errorf("%s: asked %q, want %d asks", command, briefs, want)
		}
		return res.Text()
	}
	const open, shut = "one.invalid:8443 502", "one.invalid:8443 403" // no such host, or kept from it
	says(event.Approve, "")
	if text := asked("s", "1", "./client +one.invalid:8443", 1); strings.Count(text, open) != 2 {
		t.Errorf("approved once: got %q, want both connections", text)
	} else if strings.Count(text, "[the command could not reach one.invalid:8443 (profile command): one.invalid could not be resolved: ") != 1 {
		t.Errorf("approved once: got %q, want that the name could not be resolved, once", text)
	} else if want := `the command wants to reach one.invalid:8443 {"host":"one.invalid","port":8443,"command":"./client +one.invalid:8443","cwd":` + fmt.Sprintf("%q", w.dir) + "}"; briefs[0] != want {
		t.Errorf("asked %q, want %q", briefs[0], want)
	}
	says(event.Reject, "not there")
	text := asked("s", "1", "./client one.invalid:8443; exit 3", 1)
	want := `[the command was kept from reaching one.invalid:8443 (profile command): its user was asked, and said no: not there]
[its user can allow it: yaya config set sandbox.command.hosts '["one.invalid:8443"]']`
	if !strings.Contains(text, shut) || !strings.Contains(text, want) {
		t.Errorf("rejected: got %q, want %q", text, want)
	}
	text = asked("s", "1", "./client one.invalid:8443; touch /usr/x; curl: Could not resolve host", 0)
	if !strings.Contains(text, "kept from reaching one.invalid:8443") || strings.Count(text, "may have been kept from a file by the sandbox") != 1 || strings.Contains(text, "may have been kept from the network") {
		t.Errorf("kept from a host and a file: got %q, want both, each once", text)
	}
	says(event.Approve, "")
	asked("s", "1", "./client one.invalid:8443", 0) // said no for this turn
	asked("s", "2", "./client one.invalid:8443", 1)
	says(event.ApproveForSession, "")
	asked("s", "3", "./client one.invalid:8443", 1)
	for _, session := range []string{"s", "s::agent::1"} {
		if text := asked(session, "4", "./client one.invalid:8443", 0); !strings.Contains(text, open) {
			t.Errorf("approved for the session: got %q in %s", text, session)
		}
	}
	asked("s", "4", "./client one.invalid:443", 1) // another port
	asked("other", "4", "./client one.invalid:8443", 1)
	w.answer = nil
	if text := asked("third", "4", "./client one.invalid:8443", 0); !strings.Contains(text, shut) || !strings.Contains(text, "nobody is there to ask") {
		t.Errorf("without anybody: got %q", text)
	}
	w.hosts = []string{"one.invalid:8443"}
	if text := asked("third", "4", "./client one.invalid:8443", 0); !strings.Contains(text, open) {
		t.Errorf("with the setting: got %q", text)
	}
}

// Asks are bounded in number, one blocks no other connection, and they end with the
// command.
func TestAsksAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") }))
	defer served.Close()
	w := withNetwork(t)
	addr := served.Listener.Addr().String()
	w.hosts = []string{addr}
	var asks, withdrawn atomic.Int32
	w.answer = func(ctx context.Context, _ tool.Call, _ string) (approval.Decision, error) {
		asks.Add(1)
		<-ctx.Done() // nobody answers
		withdrawn.Add(1)
		return approval.Decision{}, context.Cause(ctx)
	}
	many := "./client"
	for i := range 12 {
		many += fmt.Sprintf(" h%d.invalid:8443", i)
	}
	// Those beyond the bound are refused at once, and a listed host is reached.
	text := w.shell(many + " >out & until [ \"$(grep -c 403 out)\" = 4 ]; do sleep 0.1; done; ./client " + addr).Text()
	if !strings.Contains(text, addr+" 200 true") || asks.Load() != 8 || withdrawn.Load() != 8 || !strings.Contains(text, "one command can ask about at most 8 hosts") {
		t.Errorf("got %q, asked %d times, of which %d were withdrawn; want 8", text, asks.Load(), withdrawn.Load())
	}
	// Nobody is asked about yaya's own port, or a neighbour.
	asks.Store(0)
	w.hosts = nil
	if text := w.shell("./client " + addr + " 192.168.1.1:80").Text(); asks.Load() != 0 || strings.Count(text, " 403") != 2 || !strings.Contains(text, "outside the public internet") {
		t.Errorf("got %q after %d asks, want none", text, asks.Load())
	}
	// A turn has a bound, too.
	w.answer = func(context.Context, tool.Call, string) (approval.Decision, error) {
		asks.Add(1)
		return approval.Decision{ApprovalResponse: event.ApprovalResponse{Response: event.Approve}}, nil
	}
	for i := range 30 {
		w.shell(fmt.Sprintf("./client t%d.invalid:8443", i))
	}
	if n := asks.Load(); n != 24-8 {
		t.Errorf("a turn that began with 8 asks has %d more, want %d", n, 24-8)
	}
}

// A person waits as long as they like: the time of the command stands still.
func TestAnAskTakesNoTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	w := withNetwork(t)
	w.answer = func(ctx context.Context, _ tool.Call, _ string) (approval.Decision, error) {
		cmd := exec.CommandContext(ctx, "sleep", "11") // longer than the command has
		return approval.Decision{ApprovalResponse: event.ApprovalResponse{Response: event.Approve}}, cmd.Run()
	}
	res, err := w.call(t.Context(), "shell", map[string]any{"command": "./client one.invalid:8443", "timeout_seconds": 10}, nil)
	if err != nil || !res.OK || !strings.Contains(res.Text(), "502") {
		t.Errorf("got %+v, %v; want the answer of the proxy", res, err)
	}
}

type everything struct{ tool.Decision }

func (e everything) Decide(context.Context, tool.Call, tool.Definition) (tool.Verdict, error) {
	return tool.Verdict{Decision: e.Decision}, nil
}

// git push to a repository outside the workspace is refused in the sandbox and done
// outside, which a person is asked about even where a rule lets every command run.
func TestPushOutsideOfTheSandbox(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git here")
	}
	for _, backend := range works(t) {
		t.Run(backend, func(t *testing.T) {
			w := boxed(t, backend)
			w.policy = everything{tool.Allow}
			bare := filepath.Join(t.TempDir(), "bare.git")
			run := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), git, args...)
				cmd.Dir = w.dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("git %v: %v %s", args, err, out)
				}
				return string(out)
			}
			run("init", "-q", "--bare", bare)
			run("init", "-q", "-b", "main", ".")
			run("remote", "add", "origin", bare)
			p := &person{}
			call := w.dispatcher(p)
			sh := func(args map[string]any) tool.Result { t.Helper(); return call("s", "shell", args) }
			if res := sh(map[string]any{"command": "git -c user.name=x -c user.email=x@y commit -q --allow-empty -m first"}); !res.OK {
				t.Fatalf("commit in the sandbox: %s", res.Text())
			}
			res := sh(map[string]any{"command": "git push -q origin main"})
			if res.OK || !strings.Contains(res.Text(), `may have been kept from a file`) && !strings.Contains(res.Text(), "does not appear to be a git repository") || len(p.asked) != 0 {
				t.Errorf("push in the sandbox: got %s after asks %q", res.Text(), p.asked)
			}
			if res := sh(map[string]any{"command": "git push -q origin main", "outside": true}); res.OK || res.ErrorKind != tool.ErrValidation {
				t.Errorf("without a reason: got %+v", res)
			}
			p.do = func() error { return &tool.RejectedError{} }
			outside := map[string]any{"command": "git push -q origin main", "outside": true, "reason": "it pushes to the shared repository"}
			if res := sh(outside); res.OK || len(p.asked) != 1 || p.brief != "run outside the sandbox: git push -q origin main" || !strings.Contains(p.asked[0], `"sandbox":"none: it runs outside the sandbox, with all rights of your user"`) || !strings.Contains(p.asked[0], `"reason":"it pushes`) {
				t.Errorf("got %+v after asks %q with %q", res, p.asked, p.brief)
			}
			if out := run("--git-dir="+bare, "branch"); out != "" {
				t.Errorf("what was rejected was pushed: %s", out)
			}
			p.do = nil
			if res := sh(outside); !res.OK || len(p.asked) != 2 {
				t.Errorf("approved: got %s after asks %q", res.Text(), p.asked)
			}
			if out := run("--git-dir="+bare, "branch"); !strings.Contains(out, "main") {
				t.Errorf("what was approved was not pushed: %q", out)
			}
			// Nobody has agreed: however the call came here, it does not run.
			w.policy = nil
			if res, err := w.call(t.Context(), "shell", outside, nil); err != nil || res.OK || !strings.Contains(res.Text(), "nobody has approved") {
				t.Errorf("unasked: got %+v, %v", res, err)
			}
			w.sandbox.Mode = sandbox.Require
			if res := sh(outside); res.OK || !strings.Contains(res.Text(), "nothing runs outside the sandbox") {
				t.Errorf("with mode require: got %+v", res)
			}
		})
	}
}

// An ask says in which sandbox a command runs, and what is weaker; an answer to it does
// not agree to another one.
func TestAskNamesTheSandbox(t *testing.T) {
	backend := works(t)[0]
	w := boxed(t, backend)
	w.hosts = []string{"example.com"}
	p := &person{}
	call := w.dispatcher(p)
	run := func(want string) tool.Result {
		t.Helper()
		p.asked = nil
		res := call("s", "shell", map[string]any{"command": "true"})
		if len(p.asked) != 1 || !strings.Contains(p.asked[0], want) {
			t.Errorf("asked %q, want %s", p.asked, want)
		}
		return res
	}
	run(`"sandbox":"profile command (` + backend + `)","hosts":["example.com"],"weaker":["`)
	p.do = func() error { w.hosts = append(w.hosts, "evil.example"); return nil }
	if res := run(`"hosts":["example.com"]`); res.OK || !strings.Contains(res.Text(), "the sandbox of the command has changed since it was shown: ask again") {
		t.Errorf("after a change: got %+v", res)
	}
	p.do = nil
	w.sandbox.Mode = sandbox.Without
	run(`"sandbox":"off, as the setting sandbox.mode says`)
	w.sandbox = sandbox.Settings{Mode: sandbox.Prefer, Backend: sandbox.None}
	if res := run(`"sandbox":"none on this machine (see: yaya sandbox)"`); !res.OK || !strings.Contains(res.Text(), "[not in a sandbox: there is none on this machine") {
		t.Errorf("without a back end: got %+v", res)
	}
	// Checks require one, and say what to do.
	w.c.config["verify"] = `["true"]`
	res := call("s", "verify", nil)
	if want := "the tool shell runs it with what is enforced here; to have checks run without a sandbox, with all rights of your user: yaya config set sandbox.mode off"; res.OK || !strings.Contains(res.Text(), want) || !strings.Contains(res.Text(), "yaya sandbox") {
		t.Errorf("verify without a back end: got %q, want %q", res.Text(), want)
	}
	if want := "run: yaya config set sandbox.backend auto"; sandbox.Probe().Best != sandbox.None && !strings.Contains(res.Text(), want) {
		t.Errorf("verify without a back end, because of the setting: got %q, want %q", res.Text(), want)
	}
	w.sandbox.Mode = sandbox.Require
	res = call("s", "shell", map[string]any{"command": "true"})
	if want := "the setting sandbox.mode is require, so nothing runs with less: yaya config set sandbox.mode prefer"; res.OK || !strings.Contains(res.Text(), "(back end off)") || !strings.Contains(res.Text(), want) || strings.Contains(res.Text(), "the tool shell") {
		t.Errorf("shell that requires a back end: got %+v, want %q", res, want)
	}
}

// Checks have no network but a loopback interface of their own.
func TestChecksHaveLoopbackAlone(t *testing.T) {
	w := withNetwork(t)
	served := httptest.NewServer(http.NotFoundHandler())
	defer served.Close()
	w.c.config["verify"] = fmt.Sprintf(`["test -z \"$HTTPS_PROXY\" && ./client x:1 | grep 'no proxy'", "HTTPS_PROXY=http://%s ./client x:1 | grep 'connection refused'"]`, served.Listener.Addr())
	w.agree()
	if res, err := w.call(t.Context(), "verify", nil, nil); err != nil || !res.OK {
		t.Errorf("got %s, %v; want OK", res.Text(), err)
	}
}

// max_memory bounds the data of a process, in a sandbox and without one. It bounded
// addresses, and ended every program of Node.
func TestMaxMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	limit := 512 << 20
	if racing.Enabled { // the threads of the process that stays beside the program take so much
		limit = 3 << 30
	}
	for _, mode := range []sandbox.Mode{sandbox.Prefer, sandbox.Without} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			w.sandbox.Mode = mode
			w.c.config["max_memory"] = fmt.Sprint(limit)
			if text, want := w.shell("ulimit -v; ulimit -d").Text(), fmt.Sprintf("unlimited\n%d\n", limit>>10); !strings.HasPrefix(text, want) {
				t.Errorf("got %q, want %q: addresses without a limit", text, want)
			}
			if _, err := exec.LookPath("node"); err == nil {
				if res := w.shell("node -e 'console.log(1+1)'"); !res.OK || !strings.HasPrefix(res.Text(), "2\n") {
					t.Errorf("node: got %q", res.Text())
				}
			}
			if res := w.shell(fmt.Sprintf("head -c %d /dev/zero | tail >/dev/null", 2*limit)); res.OK {
				t.Errorf("a program that takes more: got %q, want its end", res.Text())
			}
		})
	}
}
