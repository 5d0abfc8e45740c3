package upstream_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// by calls as a client of a principal does.
func (r *rig) by(principal, session, name string) tool.Result {
	r.t.Helper()
	obj, err := jsonrpc.ParseObject([]byte(`{"name":"` + name + `","arguments":{}}`))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.disp.Call(r.t.Context(), r.reg.Snapshot(), tool.Call{
		ID: "1", Name: name, Args: obj.Get("arguments"), SessionID: session, Origin: tool.OriginMCP, Caller: tool.Caller{Principal: principal},
		Native: &tool.NativeCall{Protocol: "mcp", Params: obj, Peer: &clientOf{client{name: session}, principal}},
	})
}

// clientOf is a client of a principal.
type clientOf struct {
	client
	principal string
}

func (c *clientOf) Caller() (tool.Caller, tool.Origin) {
	return tool.Caller{Principal: c.principal}, tool.OriginMCP
}

// UP-38: the owner and yaya's agents share the process that starts with yaya; every
// other principal has one of its own, whichever of its clients calls, unless the
// configuration says otherwise.
func TestProcessPerPrincipal(t *testing.T) {
	callers := []struct{ principal, client string }{
		{tool.Owner, "desk"}, {tool.Owner, "desk2"}, {"agent:react", "s1"},
		{"device:a", "a1"}, {"device:a", "a2"}, {"device:b", "b1"}, {"issuer:a", "i1"}, {"gateway:a", "wire"},
	}
	for policy, want := range map[string]string{
		"":                   "0 0 0 3 3 5 6 7",
		servers.PerPrincipal: "0 0 0 3 3 5 6 7",
		servers.Shared:       "0 0 0 0 0 0 0 0",
		servers.PerClient:    "0 1 2 3 4 5 6 7",
	} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t)
			s := fakeServer(t, "srv", "plain")
			s.Session = policy
			r.add(s)
			r.ready("srv")
			first := map[int]int{}
			var got []string
			for i, c := range callers {
				id := pid(t, r.by(c.principal, c.client, "srv__echo"))
				if _, seen := first[id]; !seen {
					first[id] = i
				}
				got = append(got, strconv.Itoa(first[id]))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("who shares a process with whom: got %v, want %s", got, want)
			}
		})
	}
}

// UP-38: the process of a principal ends when it is idle, and its end is nobody else's:
// neither the owner's process nor its breaker knows of it.
func TestOneProcessIsNotAnothers(t *testing.T) {
	r := newRig(t)
	s := fakeServer(t, "srv", "plain")
	s.IdleTimeout = 300 * time.Millisecond
	r.add(s)
	r.ready("srv")
	own := pid(t, r.by(tool.Owner, "desk", "srv__echo"))
	for range 7 { // a breaker opens after five
		id := pid(t, r.by("device:a", "a", "srv__echo"))
		if id == own {
			t.Fatal("the device has the owner's process")
		}
		hosttest.Kill(t, id)
		eventually.True(t, "the killed process is reaped", func() bool { return !hosttest.Alive(id) })
	}
	if got := pid(t, r.by(tool.Owner, "desk", "srv__echo")); got != own {
		t.Errorf("the owner's process: got %d, want %d", got, own)
	}
	if st := r.status("srv"); st.Restarts != 0 {
		t.Errorf("the server was restarted %d times", st.Restarts)
	}
	id := pid(t, r.by("device:a", "a", "srv__echo"))
	eventually.True(t, "the process of an idle principal ends", func() bool { return !hosttest.Alive(id) })
	if got := pid(t, r.by(tool.Owner, "desk", "srv__echo")); got != own {
		t.Errorf("the owner's process after the other's end: got %d, want %d", got, own)
	}
}

// UP-38: a principal that breaks its own process opens its own breaker.
func TestBreakersOfPrincipals(t *testing.T) {
	r := newRig(t)
	// The process that starts with yaya is a good one; those that start later die.
	flag := t.TempDir() + "/started"
	s := fakeServer(t, "srv", "plain die-if-second")
	s.Env["FAKE_MCP_FLAG"] = flag
	r.add(s)
	r.ready("srv")
	for i := range 8 {
		if res := r.by("device:a", "a", "srv__echo"); res.OK {
			t.Fatalf("call %d of a process that dies: %s", i, native(t, res))
		}
	}
	if res := r.by(tool.Owner, "desk", "srv__echo"); !res.OK {
		t.Errorf("the owner's call: %s %s", res.ErrorKind, res.Text())
	}
	if st := r.status("srv"); st.Restarts != 0 {
		t.Errorf("the server was restarted %d times", st.Restarts)
	}
}

// UP-38: principals are many, and processes are bounded; a principal that comes too late gets an error,
// and the others go on.
func TestPrincipalsAreBounded(t *testing.T) {
	r := newRig(t)
	r.stdio("srv", "plain")
	r.ready("srv")
	for i := range 16 {
		if res := r.by(fmt.Sprintf("device:%d", i), "c", "srv__echo"); !res.OK {
			t.Fatalf("device %d: %s", i, res.Text())
		}
	}
	if res := r.by("device:late", "c", "srv__echo"); res.OK || !strings.Contains(res.Text(), "16 others") {
		t.Errorf("the 17th: got %q, want a refusal that says why", res.Text())
	}
	for _, p := range []string{"device:3", tool.Owner, "agent:react"} {
		if res := r.by(p, "c", "srv__echo"); !res.OK {
			t.Errorf("%s: got %s, want OK", p, res.Text())
		}
	}
}

// heard is a listener that records who got which message.
type heard struct {
	mu  sync.Mutex
	all map[string]string // who is told, by the process that says it
}

func (h *heard) Changed(string, relay.Kind) {}

func (h *heard) Message(_, principal, client, _ string, params []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return
	}
	id, _ := obj.String("data")
	h.all[id] = principal + "/" + client
}

func (h *heard) of(pid int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[strconv.Itoa(pid)]
}

// UP-38: messages of a process outside requests reach its principal's clients alone.
func TestMessagesOfProcesses(t *testing.T) {
	for policy, want := range map[string][2]string{
		servers.PerPrincipal: {"owner/", "device:a/"},
		servers.PerClient:    {"/desk", "/a"},
	} {
		t.Run(policy, func(t *testing.T) {
			if hosttest.User == nil {
				t.Skip("this system has no such signal")
			}
			r := newRig(t)
			s := fakeServer(t, "srv", "log-on-signal")
			s.Session = policy
			h := &heard{all: map[string]string{}}
			router := new(relay.Router)
			defer router.Listen(h)()
			p := upstream.New(upstream.Config{Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Version: "test", Router: router})
			if err := r.host.Install(t.Context(), feature.Contribution{Name: "t", Providers: []feature.Provider{p}}); err != nil {
				t.Fatal(err)
			}
			r.ready("srv")
			for i, c := range []struct{ principal, client string }{{tool.Owner, "desk"}, {"device:a", "a"}} {
				id := pid(t, r.by(c.principal, c.client, "srv__echo"))
				if p, err := os.FindProcess(id); err != nil || p.Signal(hosttest.User) != nil {
					t.Fatalf("process %d: %v, want that it gets the signal", id, err)
				}
				eventually.True(t, "the message arrives", func() bool { return h.of(id) != "" })
				if got := h.of(id); got != want[i] {
					t.Errorf("%s's process spoke to %q, want %q", c.principal, got, want[i])
				}
			}
		})
	}
}

// COD-5: a request that is nobody's does not go to the owner's process, which is the one
// that starts with yaya.
func TestNobodyHasNoProcess(t *testing.T) {
	for policy, refused := range map[string]bool{"": true, servers.PerPrincipal: true, servers.Shared: false} {
		t.Run(policy, func(t *testing.T) {
			r := newRig(t)
			s := fakeServer(t, "srv", "plain")
			s.Session = policy
			p := r.add(s)
			r.ready("srv")
			for principal, refused := range map[string]bool{"": refused, tool.Owner: false} {
				params, err := jsonrpc.ParseObject([]byte(`{"name":"echo","arguments":{}}`))
				if err != nil {
					t.Fatal(err)
				}
				reply, err := p.Relay(t.Context(), &clientOf{client{name: "c"}, principal}, "tools/call", params)
				if err != nil {
					t.Fatal(err)
				}
				got := strings.Contains(string(reply.Err), "not established")
				if reply.Buffer.Release(); got != refused {
					t.Errorf("a request of %q: got %s, want it refused: %v", principal, reply.Err, refused)
				}
			}
		})
	}
}
