package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/racing"
)

func init() {
	// proxied asks the proxy of its sandbox for a page, and prints it.
	attempts["proxied"] = func(page string) error {
		conn, err := net.DialTimeout("tcp", proxyAddr, 10*time.Second)
		if err != nil {
			return err
		}
		if os.Getenv("HTTPS_PROXY") != "http://"+proxyAddr || os.Getenv("NODE_USE_ENV_PROXY") != "1" {
			return errors.New("the environment does not name the proxy")
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", page)
		_, err = io.Copy(os.Stdout, conn)
		return err
	}
	attempts["page"] = func(page string) error {
		res, err := http.Get(page)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(os.Stdout, res.Body)
		return err
	}
	attempts["allocate"] = func(string) error {
		data, err := unix.Mmap(-1, 0, 4<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err == nil {
			_ = unix.Munmap(data)
		}
		return err
	}
	attempts["multiply"] = func(string) error {
		for range 200 {
			cmd := exec.Command("sleep", "30")
			if err := cmd.Start(); err != nil {
				return err
			}
			defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
		}
		return nil
	}
}

func needs(t *testing.T, backend string) *Box {
	t.Helper()
	b := &Box{Backend: backend}
	if _, err := b.choose(Probe()); err != nil {
		t.Skip(err)
	}
	return b
}

func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// A sandbox with hosts reaches them only through its proxy, and every request to an
// endpoint comes from that sandbox.
func TestHostsAndEndpoints(t *testing.T) {
	b := needs(t, Namespaces)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "from the host") }))
	defer upstream.Close()
	var mu sync.Mutex
	var denials []Denial
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	pol := profile(t, "server")
	pol.Net.Allow = []string{upstream.Listener.Addr().String()}
	pol.Net.Denied = func(d Denial) {
		mu.Lock()
		defer mu.Unlock()
		denials = append(denials, d)
	}
	pol.Endpoints = []Endpoint{{"127.0.0.1:8787", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "you are child 7") })}}
	for _, c := range []struct {
		name, attempt string
		code          int
		want          string
	}{
		{"an allowed host", "proxied " + upstream.URL + "/", didIt, "from the host"},
		{"another host", "proxied http://example.com/", didIt, "403 Forbidden"},
		{"the endpoint", "page http://127.0.0.1:8787/mcp", didIt, "you are child 7"},
		{"an allowed service, without the proxy", "page " + upstream.URL + "/", didIt, "from the host"},
		{"another service of the host", "page " + other.URL + "/", prevented, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := b.start(t, pol, "/", []string{attemptEnv + "=" + c.attempt}, testBinary(t))
			if err != nil || got.code != c.code || !strings.Contains(got.out, c.want) {
				t.Errorf("code %d, output %q, error %v; want %d, %q", got.code, got.out, err, c.code, c.want)
			}
		})
	}
	if want := (Denial{"example.com", 80, "it is not among the allowed hosts", "example.com"}); len(denials) != 1 || denials[0] != want {
		t.Errorf("denied: %+v, want %+v", denials, want)
	}
}

// An unavailable requirement is refused, with the remedy.
func TestRequire(t *testing.T) {
	b := needs(t, Landlock)
	pol := profile(t, "server")
	pol.Require = NeedHosts
	_, err := b.Enter(pol)
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || refused.Lacks != NeedHosts || !strings.Contains(err.Error(), "hosts") {
		t.Errorf("Enter = %v, want a refusal because of hosts", err)
	}
	for _, box := range []*Box{{Backend: None}} {
		pol := profile(t, "check")
		pol.Require = NeedWrites
		if _, err := box.Enter(pol); err == nil {
			t.Error("Enter without a back end = nil, want a refusal")
		}
	}
	if _, err := (&Box{Backend: "bubble"}).Enter(profile(t, "check")); err == nil || !strings.Contains(err.Error(), `"bubble"`) {
		t.Errorf("Enter with an unknown back end = %v, want an error that names it", err)
	}
	pol = profile(t, "check")
	pol.Net = Net{Mode: Hosts, Allow: []string{"*"}}
	if _, err := b.Enter(pol); err == nil {
		t.Error(`Enter with the host "*" = nil, want an error`)
	}
}

// yaya's own folders are given to no sandbox, whatever the link is called.
func TestOwnIsNotGiven(t *testing.T) {
	p := newPlace(t)
	if err := os.Symlink(p.own, p.dir+"/link"); err != nil {
		t.Fatal(err)
	}
	box := &Box{Own: []string{p.own}}
	for _, name := range []string{p.own, p.key, p.dir + "/link", p.dir + "/link/key"} {
		pol := profile(t, "check")
		pol.Read = follow(t, name)
		if _, err := box.Enter(pol); err == nil || !strings.Contains(err.Error(), "belongs to yaya itself") {
			t.Errorf("Enter with %s = %v, want a refusal", name, err)
		}
	}
}

// A path that was replaced after it was agreed to is not mounted.
func TestPathsArePinned(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			p := newPlace(t)
			if err := os.Mkdir(p.dir+"/agreed", 0o700); err != nil {
				t.Fatal(err)
			}
			pol := profile(t, "check")
			pol.Write = open(t, p.dir+"/agreed")
			if err := errors.Join(os.Rename(p.dir+"/agreed", p.dir+"/was"), os.Rename(p.outside, p.dir+"/agreed")); err != nil {
				t.Fatal(err)
			}
			got, err := b.start(t, pol, "/", []string{attemptEnv + "=write " + p.dir + "/agreed/file"}, testBinary(t))
			if err == nil || !strings.Contains(err.Error(), "replaced") {
				t.Errorf("started: %+v, %v; want that the folder was replaced", got, err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			pol := profile(t, "check")
			pol.Limits = Limits{Memory: 512 << 20, Processes: 40}
			if racing.Enabled { // whose threads take so much that the keeper would have none
				pol.Limits.Memory = 3 << 30
			}
			got, err := b.start(t, pol, "/", []string{attemptEnv + "=allocate"}, testBinary(t))
			if err != nil || got.code != prevented {
				t.Errorf("four gigabytes: code %d, output %q, error %v; want %d", got.code, got.out, err, prevented)
			}
			got, err = b.start(t, pol, "/", []string{attemptEnv + "=multiply"}, testBinary(t))
			if err != nil {
				t.Fatal(err)
			}
			if want := got.enforced.Has&^got.enforced.Partly&NeedTasks != 0; (got.code == prevented) != want {
				t.Errorf("200 processes: code %d, output %q; the report says bounded: %v", got.code, got.out, want)
			}
			pol = profile(t, "check")
			pol.Limits.Time = 200 * time.Millisecond
			got, err = b.start(t, pol, "/", nil, "sleep", "60")
			if err != nil || got.code != 128+9 {
				t.Errorf("sleep 60: code %d, error %v; want %d", got.code, err, 128+9)
			}
		})
	}
}

// A sandbox starts, and has its processes, whatever else its user runs: without a user
// namespace the kernel counts every thread of the user.
func TestLimitOfProcessesForABusyUser(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the kernel does not count root's processes")
	}
	const busy, processes = 150, 40
	leave := make(chan struct{})
	var up, ended sync.WaitGroup
	for range busy {
		up.Add(1)
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			up.Done()
			<-leave
		})
	}
	up.Wait()
	defer func() { close(leave); ended.Wait() }()
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			for _, name := range []string{"check", "plugin"} {
				pol := profile(t, name)
				pol.Limits.Processes = processes
				script := `for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait; grep "^Max processes" /proc/self/limits`
				got, err := b.start(t, pol, "/", nil, "sh", "-c", script)
				if err != nil || got.code != 0 {
					t.Fatalf("%s beside %d threads: %+v, %v; want 10 processes", name, busy, got, err)
				}
				var limit int
				if _, err := fmt.Sscanf(got.out, "Max processes %d", &limit); err != nil || limit < processes {
					t.Errorf("%s: limits are %q, %v; want at least %d processes", name, got.out, err, processes)
				}
				if partly := got.enforced.Partly&NeedTasks != 0; partly != (backend == Landlock && Probe().Group != "") {
					t.Errorf("%s: the report says in part: %v; missing: %q", name, partly, got.enforced.Missing)
				}
			}
		})
	}
}

func TestExitAndSignals(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		t.Run(backend, func(t *testing.T) {
			b := needs(t, backend)
			for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 128 + 15, "exit 255": 255} {
				got, err := b.start(t, profile(t, "check"), "/", nil, "sh", "-c", script)
				if err != nil || got.code != want {
					t.Errorf("%q: code %d, error %v, want %d", script, got.code, err, want)
				}
			}
			if backend != Namespaces {
				return // Landlock lets everybody enter a folder, and reads nothing there
			}
			if _, err := b.start(t, profile(t, "check"), t.TempDir(), nil, "true"); err == nil || !strings.Contains(err.Error(), "folder") {
				t.Errorf("started in a hidden folder: %v, want an error", err)
			}
		})
	}
}

// A child of internal/proc in a sandbox is stopped as others are: by a signal, with
// its pipes, and with the descriptor of a held program.
func TestInProc(t *testing.T) {
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, name := range []string{"check", "guarded"} {
			t.Run(backend+"/"+name, func(t *testing.T) {
				b := needs(t, backend)
				m := &proc.Manager{}
				defer m.Close(t.Context())
				run, err := b.Enter(profile(t, name))
				if err != nil {
					t.Fatal(err)
				}
				script := `IFS= read -r _ <&3; exec 3<&-; trap 'echo got TERM; exit 5' TERM; echo ready; while :; do read -r line && echo "heard $line"; done`
				child, err := m.Start(proc.Spec{Path: "sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/", Held: true, Sandbox: run})
				if err != nil {
					t.Fatal(err)
				}
				if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", run.PID())); err != nil || strings.Contains(exe, "sandbox.test") {
					t.Errorf("the program runs %q, %v; want a shell", exe, err)
				}
				if err := child.Release(); err != nil {
					t.Fatal(err)
				}
				buf := make([]byte, 100)
				n, err := child.Stdout.Read(buf)
				if err != nil || string(buf[:n]) != "ready\n" {
					t.Fatalf("read %q, %v", buf[:n], err)
				}
				fmt.Fprintln(child.Stdin, "you")
				n, err = child.Stdout.Read(buf)
				if err != nil || string(buf[:n]) != "heard you\n" {
					t.Errorf("read %q, %v", buf[:n], err)
				}
				if err := unix.Kill(child.PID(), unix.SIGTERM); err != nil {
					t.Fatal(err)
				}
				n, err = child.Stdout.Read(buf)
				if err != nil || string(buf[:n]) != "got TERM\n" {
					t.Errorf("read %q, %v", buf[:n], err)
				}
				<-child.Done()
				if child.ExitCode() != 5 {
					t.Errorf("exit code %d, want 5 (%v)", child.ExitCode(), child.Err())
				}
			})
		}
	}
	t.Run("a program that is not there", func(t *testing.T) {
		b := needs(t, Namespaces)
		m := &proc.Manager{}
		defer m.Close(t.Context())
		run, err := b.Enter(profile(t, "check"))
		if err != nil {
			t.Fatal(err)
		}
		bad := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(bad, []byte("#!/not/there\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Start(proc.Spec{Path: bad, Dir: "/", Sandbox: run}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("Start = %v, want an error that names it", err)
		}
	})
}

// A program may have ended before its start has.
func TestShortPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		b := needs(t, backend)
		m := &proc.Manager{}
		for range 30 {
			run, err := b.Enter(profile(t, "server"))
			if err != nil {
				t.Fatal(err)
			}
			child, err := m.Start(proc.Spec{Path: "true", Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: "/", Sandbox: run})
			if err != nil {
				t.Fatal(err)
			}
			<-child.Done()
			if child.ExitCode() != 0 {
				t.Fatalf("exit code %d, %s", child.ExitCode(), child.Stderr())
			}
			child.Kill()
		}
		m.Close(t.Context())
	}
}

// The environment names a variable once.
func TestEnvironment(t *testing.T) {
	pol := profile(t, "check")
	pol.Cache = "/c"
	got := environ(&pol, []string{"A=1", "HTTP_PROXY=http://x", "A=2", "PATH=/bin", "npm_config_cache=/shared"}, "", "")
	text := strings.Join(got, "\n") + "\n"
	for _, want := range []string{"A=2\n", "PATH=/bin\n", "npm_config_offline=true\n", "UV_OFFLINE=1\n", "npm_config_cache=/c/npm\n", "GOCACHE=/c/go-build\n", "TMPDIR=/tmp\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the environment lacks %q:\n%s", want, text)
		}
	}
	for _, bad := range []string{"A=1\n", "HTTP_PROXY", "/shared"} {
		if strings.Contains(text, bad) {
			t.Errorf("the environment holds %q:\n%s", bad, text)
		}
	}
	// A proxy of the company's is yaya's to use, with the password in its name.
	pol = profile(t, "server")
	for _, kv := range environ(&pol, []string{"HTTPS_PROXY=http://u:pw@proxy.example:8080", "http_proxy=http://u:pw@proxy.example:8080", "NO_PROXY=.example"}, "", "http://"+proxyAddr) {
		if strings.Contains(kv, "proxy.example") || strings.Contains(kv, ".example") {
			t.Errorf("the environment of a program behind the sandbox's proxy holds %q", kv)
		}
	}
}

// A plan crosses the socket whole, whatever its size.
func TestLargeEnvironment(t *testing.T) {
	b := needs(t, Namespaces)
	big := "BIG=" + strings.Repeat("x", 100<<10)
	got, err := b.start(t, profile(t, "check"), "/", []string{big, big + "y"}, "sh", "-c", "echo ${#BIG}")
	if err != nil || strings.TrimSpace(got.out) != fmt.Sprint(100<<10+1) {
		t.Errorf("output %q, error %v", got.out, err)
	}
}

// BenchmarkStart is the cost of starting a program that does nothing, until it has
// ended. The least time is the one that other work on the machine changes little.
func BenchmarkStart(b *testing.B) {
	least := func(b *testing.B, once func() error) {
		best := time.Hour
		for b.Loop() {
			begun := time.Now()
			if err := once(); err != nil {
				b.Fatal(err)
			}
			best = min(best, time.Since(begun))
		}
		b.ReportMetric(float64(best.Microseconds())/1000, "least-ms")
	}
	b.Run("bare", func(b *testing.B) {
		least(b, func() error { return exec.CommandContext(b.Context(), "/bin/true").Run() })
	})
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, name := range Profiles() {
			b.Run(backend+"/"+name, func(b *testing.B) {
				if _, err := (&Box{Backend: backend}).choose(Probe()); err != nil {
					b.Skip(err)
				}
				least(b, func() error {
					p, err := Profile(name)
					if err != nil {
						return err
					}
					r, err := (&Box{Backend: backend}).Enter(p)
					if err != nil {
						return err
					}
					defer r.Ended()
					cmd := exec.CommandContext(b.Context(), "/bin/true")
					cmd.Dir = "/"
					if err := errors.Join(r.Wrap(cmd), cmd.Start()); err != nil {
						return err
					}
					return errors.Join(r.Started(cmd.Process.Pid), cmd.Wait())
				})
			})
		}
	}
}
