package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// readiness asks a node as a load balancer does.
func (b *box) readiness() (status int, answer string) {
	b.t.Helper()
	status, raw, _ := b.raw("GET", "/health?ready=1", "")
	return status, string(raw)
}

// A drained node goes on with the sessions that it has, and other nodes get those that come to it,
// until it starts again or somebody ends that.
func TestClusterDrain(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, phone := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	old := south.begins("")
	if out := north.must("cluster", "drain", "south"); !strings.Contains(out, "south takes no new MCP clients") {
		t.Errorf("yaya cluster drain prints %s", out)
	}
	drained := func(want bool) {
		t.Helper()
		eventually.True(t, "the node is ready unless it is drained", func() bool {
			status, answer := south.readiness()
			return want == (status == http.StatusServiceUnavailable && strings.Contains(answer, `"reason":"draining"`)) && (want || status == http.StatusOK)
		})
	}
	drained(true)
	west.knows(north.box)
	for _, b := range all {
		if out := b.must("cluster", "status"); strings.Count(out, "draining") != 1 || strings.Count(out, "running") != 2 {
			t.Errorf("yaya cluster status prints\n%s\nwant one node that is drained", out)
		}
	}
	for _, token := range []string{"", phone.Token} {
		session := south.begins(token)
		if strings.HasSuffix(session, "@south") {
			t.Errorf("a session began on %s, which is drained", session)
		}
		if status, answer, _ := south.asks("POST", session, token, ping); status != http.StatusOK {
			t.Errorf("the session that was passed on: %d %s", status, answer)
		}
	}
	if status, answer, _ := south.asks("POST", old, "", ping); status != http.StatusOK || !strings.HasSuffix(old, "@south") {
		t.Errorf("a session that the node has: %d %s", status, answer)
	}
	if out, err := south.run("cluster", "drain", "nowhere"); err == nil || !strings.Contains(out, "no node has that name") {
		t.Errorf("a node that is not there: %v\n%s", err, out)
	}
	south.must("cluster", "drain", "north")
	if out, err := north.run("cluster", "drain", "west"); err == nil || !strings.Contains(out, "no other node takes new clients") {
		t.Errorf("the last node is drained: %v\n%s", err, out)
	}
	west.must("cluster", "drain", "--end", "south")
	drained(false)
	if session := south.begins(phone.Token); !strings.HasSuffix(session, "@south") {
		t.Errorf("a session began on %s, want south, which is drained no longer", session)
	}
	south.must("cluster", "drain", "south")
	drained(true)
	south.must("restart")
	drained(false)

	// If no other node is there, a node takes clients after all.
	south.must("cluster", "drain", "south")
	drained(true)
	north.kill()
	west.kill()
	if session := south.begins(""); !strings.HasSuffix(session, "@south") {
		t.Errorf("a session began on %s, want the only node that runs", session)
	}
}

// balancer sends clients to the nodes that are ready.
type balancer struct {
	url   string
	nodes []*member
	ready []atomic.Bool
	next  atomic.Uint64
}

func newBalancer(t *testing.T, all []*member) *balancer {
	t.Helper()
	b := &balancer{nodes: all, ready: make([]atomic.Bool, len(all))}
	var proxies []*httputil.ReverseProxy
	for _, m := range all {
		u, err := url.Parse("http://" + m.addr)
		if err != nil {
			t.Fatal(err)
		}
		proxies = append(proxies, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, FlushInterval: -1})
	}
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range proxies {
			if i := int(b.next.Add(1) % uint64(len(proxies))); b.ready[i].Load() {
				proxies[i].ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, "nobody is ready", http.StatusBadGateway)
	}))
	t.Cleanup(hs.Close)
	b.url = hs.URL
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			for i, m := range b.nodes {
				resp, err := http.Get("http://" + m.addr + "/health?ready=1") //nolint:forbidigo,noctx // test
				b.ready[i].Store(err == nil && resp.StatusCode == http.StatusOK)
				if err == nil {
					_ = resp.Body.Close()
				}
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return b
}

func (b *balancer) await(t *testing.T, node int, ready bool) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("the load balancer sees that the node is ready: %v", ready), func() bool { return b.ready[node].Load() == ready })
}

// One node after the other is drained, stopped and started under calls, and no call fails: a client
// only begins another session when it gets 404.
func TestClusterRollingUpgrade(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	n := newNATS(t)
	all, phone := newCluster(t, n)
	for _, m := range all {
		m.runs(map[string]any{"s": map[string]any{"command": fixture, "protocolEra": "legacy"}}, "s ready\n")
	}
	lb := newBalancer(t, all[:])
	for i := range all {
		lb.await(t, i, true)
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var calls, sessions atomic.Int64
	for i := range 6 {
		clients.Go(func() {
			through := &box{t: t, addr: strings.TrimPrefix(lb.url, "http://")}
			modern := i%2 == 1
			session := ""
			for {
				select {
				case <-stop:
					return
				default:
				}
				if session == "" && !modern {
					session = through.begins(phone.Token)
					sessions.Add(1)
				}
				status, answer := through.echoes(session, phone.Token)
				switch {
				case status == http.StatusNotFound && !modern:
					session = ""
				case status != http.StatusOK || !strings.Contains(answer, "a word"):
					t.Errorf("a call of a client (modern: %v) fails: %d %s", modern, status, answer)
					return
				default:
					calls.Add(1)
				}
			}
		})
	}
	grown := func() {
		t.Helper()
		from := calls.Load()
		eventually.True(t, "calls go on", func() bool { return calls.Load() > from+100 || t.Failed() })
	}
	for i, m := range all {
		grown()
		m.must("cluster", "drain", nodeNames[i])
		lb.await(t, i, false)
		grown()
		end(t, m.p)
		grown()
		m.p = m.serve()
		m.waitStates("s ready\n")
		lb.await(t, i, true)
	}
	grown()
	close(stop)
	clients.Wait()
	t.Logf("%d calls in %d sessions", calls.Load(), sessions.Load())
}

// echoes calls a tool, in a session or without one in the modern era.
func (b *box) echoes(session, token string) (status int, answer string) {
	b.t.Helper()
	h := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "Authorization", "Bearer " + token}
	meta := ""
	if session == "" {
		h = append(h, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "s__echo")
		meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	} else {
		h = append(h, "Mcp-Session-Id", session)
	}
	status, raw, _ := b.raw("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__echo","arguments":{"text":"a word"}`+meta+`}}`, h...)
	return status, string(raw)
}
