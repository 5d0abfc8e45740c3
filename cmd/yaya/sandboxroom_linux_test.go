package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A server that opens all the connections it can, to its proxy or to a service of this
// machine, takes neither the gateway's descriptors nor the connections of others.
func TestSandboxLeavesDescriptors(t *testing.T) {
	t.Parallel()
	at := serviceOf(t, "a database")
	quiet, err := net.Listen("tcp", "127.0.0.1:0") // its connections are answered by the system
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = quiet.Close() })
	for name, hold := range map[string]string{
		"idle connections":         `exec {fd}<>/dev/tcp/127.0.0.1/3128; printf "GET / HTTP/1.1\r\nHost: a\r\n\r\n" >&$fd`,
		"unfinished headers":       `exec {fd}<>/dev/tcp/127.0.0.1/3128; printf G >&$fd`,
		"a service of the machine": `exec {fd}<>/dev/tcp/` + strings.Replace(quiet.Addr().String(), ":", "/", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := shellServers(t)
			few := filepath.Join(b.dir, "few")
			writeProgram(t, few, "#!/bin/sh\nulimit -n 256\nexec "+b.bin+` "$@"`)
			whole := b.bin
			b.bin = few
			daemon := b.serve()
			b.bin = whole
			b.firstStart([]string{"own", "bounded", "theirs"})
			for _, server := range []string{"bounded", "theirs"} {
				b.must("mcp", "allow", server, "--host", at, "--host", quiet.Addr().String())
				eventually.True(t, server+" reaches the service", func() bool {
					said, failed := b.sh(server, withoutProxy(at))
					return !failed && strings.Contains(said, "a database")
				})
			}
			// Three programs of the server, since each has few descriptors, too.
			if said, failed := b.sh("bounded", `for n in 1 2 3; do setsid bash -c 'for i in {1..85}; do `+hold+`; done; : >/tmp/held.'$n'; exec sleep 1000' </dev/null >/dev/null 2>&1 & done; until [ -e /tmp/held.1 ] && [ -e /tmp/held.2 ] && [ -e /tmp/held.3 ]; do sleep 0.1; done; echo all`); failed || !strings.Contains(said, "all") {
				t.Fatalf("holding connections: got %q, want them all opened", said)
			}
			health, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.addr+"/health", nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 8 {
				resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(health)
				if err != nil {
					t.Fatalf("/health: %v, want an answer", err)
				}
				_ = resp.Body.Close()
			}
			if said, failed := b.sh("theirs", withoutProxy(at)); failed || !strings.Contains(said, "a database") {
				t.Errorf("another server's connection got %q, want the service's word", said)
			}
			open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", daemon.Process.Pid))
			if err != nil || len(open) > 192 {
				t.Errorf("the gateway has %d descriptors open, %v; want a quarter of its 256 left at least", len(open), err)
			}
		})
	}
}
