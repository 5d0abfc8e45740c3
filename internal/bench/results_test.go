//go:build unix

package main

import (
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// Figures that are worse by more than noise are marked, whichever way is worse.
func TestCompared(t *testing.T) {
	row := func(share, byHand, allocs float64) relayRow {
		return relayRow{Upstream: "http", InFlight: 64, Size: 64, Share: share, ByHand: byHand, Allocs: allocs}
	}
	base := results{Relay: []relayRow{row(.5, .6, 80)}, LoadedRSS: 50, Start: []startRow{{Ready: 30, Anonymous: 9}}}
	for _, c := range []struct {
		name string
		is   results
		want []string // beginnings of the lines that are marked
	}{
		{"the same", base, nil},
		{"noise", results{Relay: []relayRow{row(.45, .55, 85)}, LoadedRSS: 55, Start: []startRow{{Ready: 33, Anonymous: 10}}}, nil},
		{"better", results{Relay: []relayRow{row(.9, .6, 20)}, LoadedRSS: 20, Start: []startRow{{Ready: 10, Anonymous: 3}}}, nil},
		{"a slower machine", results{Relay: []relayRow{row(.45, .5, 80)}}, nil},
		{"a slower relay", results{Relay: []relayRow{row(.4, .6, 80)}}, []string{"| http, 64 in flight, 64 B: share of direct", "| http, 64 in flight, 64 B: share of the relay by hand"}},
		{"more of everything", results{Relay: []relayRow{row(.5, .6, 100)}, LoadedRSS: 70, Start: []startRow{{Ready: 40, Anonymous: 12}}}, []string{
			"| http, 64 in flight, 64 B: allocations", "| RSS after", "| start with 0 servers: ready", "| start with 0 servers: anonymous",
		}},
		{"another size", results{Relay: []relayRow{{Upstream: "http", InFlight: 64, Size: 4096, Share: .1}}}, nil},
	} {
		var marked []string
		for line := range strings.Lines(c.is.compared(base)) {
			if strings.HasSuffix(line, "| worse |\n") {
				marked = append(marked, line)
			}
		}
		if len(marked) != len(c.want) {
			t.Errorf("%s: got marks at %q, want at %q", c.name, marked, c.want)
			continue
		}
		for i := range marked {
			if !strings.HasPrefix(marked[i], c.want[i]) {
				t.Errorf("%s: got a mark at %q, want at %q", c.name, marked[i], c.want[i])
			}
		}
	}
	file := filepath.Join(t.TempDir(), "base.json")
	if err := base.write(file); err != nil {
		t.Fatal(err)
	}
	if got, err := readResults(file); err != nil || !reflect.DeepEqual(got, base) {
		t.Errorf("got %v, %v; want what was written: %v", got, err, base)
	}
}

// The relay by hand passes messages on whole, several on one connection.
func TestRelayByHand(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		relayCalls(c, func(body []byte) ([]byte, error) { return fixtureAnswer(nil, body), nil })
	}()
	c, err := load.Endpoint{Addr: l.Addr().String(), Path: "/mcp"}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 64, 4096, 1 << 20} {
		text := `"` + strings.Repeat("x", size) + `"`
		a, err := c.Post([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":`+text+`}}}`), "")
		if want := `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":` + text + `}]}}`; err != nil || string(a.Body) != want {
			t.Errorf("%d bytes: got %d bytes and error %v, want %d", size, len(a.Body), err, len(want))
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// A profile is summed by part.
func TestPartsOf(t *testing.T) {
	got := partsOf([]byte(`File: yaya
Type: cpu
Showing nodes accounting for 1000us, 100% of 1000us total
      flat  flat%   sum%        cum   cum%
     400us 40.00% 40.00%      400us 40.00%  internal/runtime/syscall/linux.Syscall6
     200us 20.00% 60.00%      900us 90.00%  github.com/yaya-ai/yaya/mcpbridge/downstream.(*Server).serve
     100us 10.00% 70.00%      100us 10.00%  github.com/yaya-ai/yaya/mcpbridge/downstream.(*Server).answer.func1
     100us 10.00% 80.00%      100us 10.00%  runtime.mallocgcSmallScanNoHeader (inline)
     100us 10.00% 90.00%      100us 10.00%  runtime.memmove
      60us  6.00% 96.00%      100us 10.00%  runtime.findRunnable
      40us  4.00%   100%       40us  4.00%  net/http.(*conn).serve
         0     0%   100%     1000us   100%  runtime.goexit
`))
	want := []part{{"system calls", .4}, {"mcpbridge/downstream", .3}, {"runtime: copies", .1}, {"runtime: memory", .1}, {"runtime: scheduler and the rest", .06}, {"net/http", .04}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
