package upstream_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// SET-1: a server is outdated as long as any of its processes runs otherwise than the
// settings want, those of single clients and those that are being started among them; and
// it is if it was refused and would not be now.
func TestOutdated(t *testing.T) {
	var mu sync.Mutex
	profile, refused := "guarded", error(nil)
	set := func(p string, err error) {
		mu.Lock()
		defer mu.Unlock()
		profile, refused = p, err
	}
	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	var slow bool // the next to ask takes its time, with what it was told

	r := newRig(t)
	s := fakeServer(t, "srv", "plain")
	s.Session = servers.PerClient
	p := upstream.New(upstream.Config{
		Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Version: "test",
		Sandbox: func(func(upstream.Denial)) (*sandbox.Run, error) {
			mu.Lock()
			now, err, wait := profile, refused, slow
			slow = false
			mu.Unlock()
			if wait {
				asked <- struct{}{}
				<-goOn
			}
			if err != nil {
				return nil, err
			}
			return (&sandbox.Box{Backend: sandbox.None}).Enter(sandbox.Policy{Profile: now, HostWrites: true, Net: sandbox.Net{Mode: sandbox.Host}, Unix: true})
		},
	})
	check := func(what, want string) {
		t.Helper()
		if got := p.Outdated(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: outdated because %q, want %q", what, got, want)
		}
	}
	check("before a start", "")
	if err := r.host.Install(t.Context(), feature.Contribution{Name: "t", Providers: []feature.Provider{p}}); err != nil {
		t.Fatal(err)
	}
	r.ready("srv")
	check("as it was started", "")
	set("server", nil)
	check("another profile", "the settings of the sandbox have changed")
	set("guarded", errors.New("nothing starts"))
	check("refused", "nothing starts")
	if got := p.Outdated(); got != "nothing starts" {
		t.Errorf("refused for a reason of its own: outdated because %q, want the reason alone", got)
	}
	set("guarded", fmt.Errorf("open /x for a sandbox: %w", syscall.EMFILE))
	check("no descriptors for a moment", "")
	set("guarded", &sandbox.RefusedError{Backend: "off", Lacks: sandbox.NeedStrict})
	check("not enforced", "the settings of the sandbox have changed: ")
	set("guarded", nil)
	check("as before", "")

	// A client's own process: the main one runs as it should, and this one does not.
	set("server", nil)
	if res := r.callAs("one", "srv__echo", `{"name":"x"}`, nil); !res.OK {
		t.Fatalf("got %v, want OK", res.Text())
	}
	check("the main process", "the settings of the sandbox have changed")
	set("guarded", nil)
	check("that of a client", "the settings of the sandbox have changed")
	p.Release("one")

	// Outdated does not miss a process that asks for its sandbox while the settings change.
	mu.Lock()
	slow = true
	mu.Unlock()
	called := make(chan bool, 1)
	go func() { called <- r.callAs("two", "srv__echo", `{"name":"x"}`, nil).OK }()
	<-asked
	set("server", nil)
	found := make(chan string, 1)
	go func() { found <- p.Outdated() }()
	select {
	case got := <-found:
		t.Errorf("outdated because %q, before the process that is being started is known", got)
	default:
	}
	close(goOn)
	if got := <-found; got == "" {
		t.Error("the process that was being started is not found")
	}
	if !<-called {
		t.Error("the call failed")
	}

	// One that was refused is outdated once it would not be.
	set("guarded", errors.New("nothing starts"))
	r.host.Reconsider()
	eventually.True(t, "it is refused", func() bool {
		st := r.status("srv")
		return st.State == feature.Failed && strings.Contains(st.Reason, "nothing starts")
	})
	if d, ok := p.Detail().(upstream.Detail); !ok || d.Sandbox != nil {
		t.Errorf("detail %+v, want no sandbox of what does not run", d)
	}
	check("refused as before", "")
	set("guarded", nil)
	check("refused, and no longer", "it may start")
	r.host.Reconsider()
	r.ready("srv")
	check("as it was started again", "")
}
