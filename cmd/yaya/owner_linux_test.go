package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

const nobody = 65534

// tries is how often each way is tried to be taken for the owner.
func tries() int {
	if testing.Short() {
		return 400
	}
	return 2_000
}

// attackBinary returns the attacker where every user can run it.
func attackBinary(t *testing.T) string {
	t.Helper()
	return copyBinary(t, buildTool(t, "github.com/yaya-ai/yaya/internal/attack"))
}

func copyBinary(t *testing.T, from string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ya")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to := filepath.Join(dir, "bin")
	syscall.ForkLock.RLock() // see writeProgram
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

// attackAs runs an attacker and returns what it says.
func attackAs(t *testing.T, bin string, attr *syscall.SysProcAttr, kind, target string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, kind, strconv.Itoa(tries()), target)
	cmd.SysProcAttr, cmd.Dir, cmd.Env = attr, "/", []string{"PATH=" + os.Getenv("PATH")}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("Linux refuses such a process: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("attacker: %v\n%s", err, out.String())
	}
	return out.String()
}

// allRefused checks that all answers, or all but those that a connection had no time to
// get, were no, and said why.
func allRefused(t *testing.T, said, why string) {
	t.Helper()
	total := 0
	for line := range strings.Lines(said) {
		n, got, _ := strings.Cut(strings.TrimSpace(line), " × ")
		count, err := strconv.Atoi(n)
		if err != nil || !strings.HasPrefix(got, "401 ") && !strings.HasPrefix(got, "403 ") || !strings.Contains(got, why) {
			t.Errorf("got %q, want 401 or 403 and %q", line, why)
		}
		total += count
	}
	if total != tries() {
		t.Errorf("got %d answers, want %d:\n%s", total, tries(), said)
	}
}

// noSessions checks that nobody was taken for the owner: the requests of attackers
// would have made sessions.
func noSessions(t *testing.T, b *box) {
	t.Helper()
	if status, out := b.v1("GET", "/sessions", ""); status != 200 || strings.Contains(fmt.Sprint(out), "session_id") {
		t.Errorf("sessions: got %d %.300v, want none", status, out)
	}
	b.mustNotTrace()
}

// mustNotTrace looks at the folder of sessions itself.
func (b *box) mustNotTrace() {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.dir, "d", "sessions"))
	if err != nil {
		b.t.Fatal(err)
	}
	if len(entries) > 0 {
		b.t.Errorf("%d sessions were made, want none", len(entries))
	}
}

// SEC-1, SEC-13: other users of the machine, processes in other namespaces and those
// who come through a proxy are never the owner of a yaya, which is root's here if the
// test is.
func TestNeverTheOwner(t *testing.T) {
	t.Parallel()
	bin := attackBinary(t)
	b := newBox(t)
	if err := os.Chmod(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.serve()
	socket := filepath.Join(b.dir, "d", "yaya.sock")
	other := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	uid := os.Getuid()
	for _, c := range []struct {
		name, kind, target, why string
		attr                    *syscall.SysProcAttr
	}{
		{"another user", "ask", b.addr, "belongs to another user", other},
		{"another user who closes at once", "close", b.addr, "", other},
		{"another user whose child connects", "child", b.addr, "belongs to another user", other},
		{"another user in a thread of its own", "thread", b.addr, "belongs to another user", other},
		{"another mount namespace", "ask", b.addr, "another namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}},
		{"another PID namespace", "ask", b.addr, "another namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}},
		{"another user namespace", "ask", b.addr, "another namespace", &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		}},
		{"another mount namespace, over the socket", "ask", socket, "another namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}},
		{"another PID namespace, over the socket", "ask", socket, "another namespace", &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if uid != 0 && (c.attr == other || c.attr.Cloneflags&syscall.CLONE_NEWUSER == 0) {
				t.Skip("only root can start such a process")
			}
			said := attackAs(t, bin, c.attr, c.kind, c.target)
			if c.kind != "close" {
				allRefused(t, said, c.why)
			} else if !strings.Contains(said, "sent") {
				t.Errorf("nothing was sent:\n%s", said)
			}
			noSessions(t, b)
		})
	}
	t.Run("through a proxy of the same user", func(t *testing.T) {
		proxy := exec.CommandContext(t.Context(), bin, "proxy", "0", b.addr)
		out, err := proxy.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := proxy.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = proxy.Process.Kill()
			_ = proxy.Wait()
		}()
		at, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		allRefused(t, attackAs(t, bin, nil, "ask", strings.TrimSpace(at)), "--behind-proxy")
		noSessions(t, b)
	})
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Proto", "CF-Connecting-IP"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.addr+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(name, "192.0.2.1")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), "--behind-proxy") {
			t.Errorf("%s: got %d %s, want 401 that names --behind-proxy", name, resp.StatusCode, body)
		}
	}
	if uid == 0 {
		if said := b.must("doctor"); !strings.Contains(said, "runs as root") || !strings.Contains(said, "degraded") {
			t.Errorf("doctor says nothing of root:\n%s", said)
		}
	}
}

// SEC-1: nobody is the owner of another user's yaya, not even root; its own user is.
func TestOwnerThatIsNotRoot(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be two users")
	}
	bin := attackBinary(t)
	b := newBox(t)
	b.bin = copyBinary(t, b.bin)
	if err := os.Chown(b.dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	p := exec.CommandContext(t.Context(), b.bin, b.args("serve", "--listen", b.addr)...)
	p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	p.Env, p.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}, b.dir
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	out := new(output)
	p.Stdout, p.Stderr = out, out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		_ = p.Wait()
		if t.Failed() {
			t.Log(out)
		}
	}()
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + b.addr + "/health?ready=1"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("yaya is not ready")
		}
	}
	for _, kind := range []string{"ask", "close", "child", "thread"} {
		for who, uid := range map[string]uint32{"root": 0, "another": 1} {
			t.Run(kind+" by "+who, func(t *testing.T) {
				said := attackAs(t, bin, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}, kind, b.addr)
				if kind != "close" {
					allRefused(t, said, "")
				}
				b.mustNotTrace()
			})
		}
	}
	own := exec.CommandContext(t.Context(), bin, "ask", "4", b.addr)
	own.SysProcAttr, own.Dir = p.SysProcAttr, "/"
	if said, err := own.Output(); err != nil || strings.Count(string(said), " × 201 ") != 4 {
		t.Errorf("its own user: got %s, %v; want 201", said, err)
	}
}

// SEC-5: a program that an agent runs never counts as the owner, however it connects: even when the
// child that connected has died, when the connection is closed at once, in a thread
// with descriptors of its own, and when it has left parents, group and environment
// behind. It still reaches MCP.
func TestToolIsNeverTheOwner(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	bin := attackBinary(t)
	b := newBox(t)
	socket := filepath.Join(b.dir, "d", "yaya.sock")
	shed := "env -i /usr/bin/env PATH=\"$PATH\" setsid"
	var script strings.Builder
	fmt.Fprintf(&script, "n=%d\n", tries())
	want := 0
	for _, kind := range []string{"ask", "close", "child", "thread"} {
		for _, target := range []string{b.addr, socket} {
			if kind == "thread" && target == socket {
				continue
			}
			fmt.Fprintf(&script, "echo %s %s; %s %s $n %s\n", kind, target, bin, kind, target)
			want++
		}
	}
	// The orphan writes where it ends what it says.
	fmt.Fprintf(&script, "echo ask orphan; (%[1]s sh -c '%[2]s ask %[3]d %[4]s; %[2]s ask %[3]d %[5]s; echo end' > orphan 2>&1 &)\nuntil grep -q end orphan; do sleep 0.1; done; cat orphan\n", shed, bin, tries(), b.addr, socket)
	fmt.Fprintf(&script, "echo mcp orphan; %s sh -c 'curl -s -o /dev/null -w \"mcp %%{http_code}\\n\" -H \"content-type: application/json\" -H \"accept: application/json, text/event-stream\" -d \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"method\\\":\\\"ping\\\"}\" http://%s/mcp'\n", shed, b.addr)
	said := b.tool(t, script.String())
	kind, attacks := "", 0
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		count, got, isAnswer := strings.Cut(line, " × ")
		switch {
		case !isAnswer:
			if k, _, ok := strings.Cut(line, " "); ok {
				kind = k
			}
		case kind == "close" && (got == "sent" || strings.HasPrefix(got, "error: write")):
			attacks++
		case strings.HasPrefix(got, "401 ") || strings.HasPrefix(got, "403 "):
			attacks++
		default:
			t.Errorf("%s: got %s times %q, want a refusal", kind, count, got)
		}
	}
	if attacks < want+2 {
		t.Errorf("got answers of %d attacks, want %d:\n%s", attacks, want+2, said)
	}
	if !strings.Contains(said, "mcp 200") && !strings.Contains(said, "mcp 400") {
		t.Errorf("a tool does not reach MCP:\n%s", said)
	}
	// The session of the agent itself is the only one.
	entries, err := os.ReadDir(filepath.Join(b.dir, "d", "sessions"))
	if err != nil || len(entries) > 2 {
		t.Errorf("got %d entries of sessions, %v; want those of one", len(entries), err)
	}
}

// tool has an agent run a command, and returns what that said.
func (b *box) tool(t *testing.T, script string) string {
	t.Helper()
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(ws, "said")
	quoted, err := json.Marshal("(\n" + script + "\n) > said.tmp 2>&1; mv said.tmp said")
	if err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	b.must("config", "set", "plugin.llm_echo.script", fmt.Sprintf(`{"steps":[{"tool_calls":[{"name":"shell","args":{"timeout_seconds":900,"command":%s}}]},{"text":"done"}]}`, quoted))
	b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"allow"}]`)
	b.must("config", "set", "sandbox.mode", `"off"`) // in a sandbox, nothing of yaya is there to be asked
	b.serve()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := out["session_id"].(string)
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"try"}]}`); status != 202 {
		t.Fatalf("got %v, %v, want status 202", status, out)
	}
	begun := time.Now()
	for ; ; time.Sleep(50 * time.Millisecond) {
		if said, err := os.ReadFile(file); err == nil {
			return string(said)
		}
		_, err := os.Stat(file + ".tmp")
		if took := time.Since(begun); took > 10*time.Minute || took > eventually.Limit && err != nil {
			half, _ := os.ReadFile(file + ".tmp")
			t.Fatalf("the command does not end; so far:\n%s", half)
		}
	}
}

// SEC, USE-9: servers do not get descriptors that yaya has inherited.
func TestInheritedDescriptorsStayHere(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	f, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	config := filepath.Join(b.dir, "f.json")
	fds := filepath.Join(b.dir, "fds")
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers":{"x":{"command":"sh","args":["-c","ls -l /proc/$$/fd > %[1]s.1; mv %[1]s.1 %[1]s; exec cat >/dev/null"]}}}`, fds), 0o600); err != nil {
		t.Fatal(err)
	}
	p := exec.CommandContext(t.Context(), b.bin, b.args("serve", "--listen", b.addr, "--mcp-config", config)...)
	p.ExtraFiles = []*os.File{f, f, f, f, f, f, f}
	p.Env = b.environ()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Process.Signal(syscall.SIGTERM)
		_ = p.Wait()
	}()
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(10 * time.Millisecond) {
		if got, err := os.ReadFile(fds); err == nil {
			if strings.Contains(string(got), "passwd") {
				t.Errorf("the server has what yaya inherited:\n%s", got)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the server did not start")
		}
	}
}
