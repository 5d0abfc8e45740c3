package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func init() {
	// talk says something to a service, as a client of a database does that knows no proxy,
	// and prints the answer.
	attempts["talk"] = func(addr string) error {
		conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "query\n"); err != nil {
			return err
		}
		answer, err := io.ReadAll(conn)
		fmt.Printf("%s", answer)
		return err
	}
}

// service answers a line at an address of this machine, and ends.
func service(t *testing.T, addr, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("%s: %v", addr, err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, len("query\n")))
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	})
	return l.Addr().String()
}

// A service of this machine that is allowed is at its own address in the sandbox, for a
// program that knows no proxy; no other is.
func TestServicesOfThisMachine(t *testing.T) {
	v4, other := service(t, "127.0.0.1:0", "of IPv4"), service(t, "127.0.0.1:0", "of another")
	v6 := service(t, "[::1]:0", "of IPv6")
	named := service(t, "127.0.0.1:0", "of localhost")
	_, named4, _ := net.SplitHostPort(named)
	only6 := service(t, "[::1]:0", "of ::1 alone")
	_, named6, _ := net.SplitHostPort(only6)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	// The user of this test may have no right to listen there on the host.
	low := "127.0.0.97:97"
	lowThere := func(t *testing.T) { service(t, low, "of a low port") }
	for _, backend := range []string{Namespaces, Bwrap} {
		for _, name := range []string{"server", "command"} {
			b := needs(t, backend)
			pol := profile(t, name)
			pol.Net.Allow = append(pol.Net.Allow, v4, v6, "localhost:"+named4, "localhost:"+named6, low, nobody)
			var mu sync.Mutex
			var told []string
			pol.Net.Unreached = func(host string, port int, why string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, fmt.Sprintf("%s:%d %s", host, port, why))
			}
			pol.Net.Denied = func(d Denial) { t.Errorf("denied: %+v", d) }
			for _, c := range []struct {
				name, to string
				code     int
				want     string
				first    func(*testing.T)
			}{
				{"IPv4", v4, didIt, "of IPv4", nil},
				{"IPv6", v6, didIt, "of IPv6", nil},
				{"a name", "localhost:" + named4, didIt, "of localhost", nil},
				{"its IPv4 address", "127.0.0.1:" + named4, didIt, "of localhost", nil},
				{"its other address", "[::1]:" + named4, didIt, "of localhost", nil},
				{"a name of a service on IPv6", "127.0.0.1:" + named6, didIt, "of ::1 alone", nil},
				{"a low port", low, didIt, "of a low port", lowThere},
				{"a service that is not there", nobody, prevented, "", nil},
				{"one that is not allowed", other, prevented, "refused", nil},
			} {
				t.Run(backend+" "+name+" "+c.name, func(t *testing.T) {
					if c.to == low && backend == Bwrap && os.Geteuid() != 0 {
						c.first, c.code, c.want = nil, prevented, "refused" // see decide
					}
					if c.first != nil {
						c.first(t)
					}
					got, err := b.start(t, pol, "/", []string{attemptEnv + "=talk " + c.to}, testBinary(t))
					if err != nil || got.code != c.code || !strings.Contains(got.out, c.want) {
						t.Errorf("code %d, output %q, error %v; want %d, %q", got.code, got.out, err, c.code, c.want)
					}
				})
			}
			mu.Lock()
			if len(told) != 1 || !strings.HasPrefix(told[0], nobody) || !strings.Contains(told[0], "connection refused") {
				t.Errorf("%s %s: told %q, want of the service that is not there", backend, name, told)
			}
			mu.Unlock()
		}
	}
}

// A service cannot be where the sandbox has something else, and no sandbox without a
// network of its own has one: both are said.
func TestServicesThatCannotBe(t *testing.T) {
	b := needs(t, Namespaces)
	pol := profile(t, "server")
	pol.Endpoints = []Endpoint{{Addr: "127.0.0.1:8787"}}
	for allow, want := range map[string]string{"127.0.0.1:3128": "the address of its proxy", "localhost:3128": "the address of its proxy", "127.0.0.1:8787": "yaya's own endpoint is at this address", "localhost:8787": "yaya's own endpoint"} {
		pol.Net.Allow = []string{allow}
		if run, err := b.Enter(pol); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Enter with %s = %v, %v; want an error that says %q", allow, run, err, want)
		}
	}
	listens := &Box{Backend: Namespaces, Listens: func() []string { return []string{"127.0.0.1:9999"} }}
	pol = profile(t, "command")
	pol.Net.Allow = []string{"localhost:9999"}
	if run, err := listens.Enter(pol); err == nil || !strings.Contains(err.Error(), "yaya itself listens") {
		t.Errorf("Enter with yaya's address = %v, %v; want a refusal", run, err)
	}
	b = needs(t, Landlock)
	pol.Net.Allow, pol.Require = []string{"127.0.0.1:5432"}, 0
	run, err := b.Enter(pol)
	if err != nil {
		t.Fatal(err)
	}
	run.Ended()
	if said := "services of this machine that are allowed cannot be reached"; !slices.ContainsFunc(run.Enforced.Breaks, func(m string) bool { return strings.HasPrefix(m, said) }) {
		t.Errorf("missing: %q, want that %s", run.Enforced.Breaks, said)
	}
	pol.Require = NeedHosts
	if _, err := b.Enter(pol); err == nil {
		t.Error("Enter on Landlock with hosts that are required = nil, want a refusal")
	} else if _, refused := errors.AsType[*RefusedError](err); !refused {
		t.Errorf("Enter on Landlock = %v, want a refusal", err)
	}
}
