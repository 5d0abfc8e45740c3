package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// serviceOf answers every connection at an address of this machine with a word.
func serviceOf(t *testing.T, word string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word)
			_ = c.Close()
		}
	})
	return l.Addr().String()
}

// withoutProxy is a command of a shell that talks to an address without a proxy.
func withoutProxy(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return "bash -c 'exec 3<>/dev/tcp/" + host + "/" + port + " && cat <&3'"
}

// No sandbox reaches yaya by its address. A list of hosts that names it is refused, with
// the remedy; a connection from the sandbox of another yaya, which cannot know that, is
// taken for a stranger's.
func TestYayaIsNoHost(t *testing.T) {
	t.Parallel()
	b := shellServers(t)
	b.env = append(b.env, "HTTP_PROXY=", "HTTPS_PROXY=", "http_proxy=", "https_proxy=")
	_, port, _ := net.SplitHostPort(b.addr)
	file := filepath.Join(b.dir, "c", "mcp.json")
	var cfg struct {
		Servers map[string]map[string]any `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(b.mcpFile()), &cfg); err != nil {
		t.Fatal(err)
	}
	evil := map[string]any{"command": cfg.Servers["own"]["command"], "args": cfg.Servers["own"]["args"], "sandbox": map[string]any{"hosts": []string{"localhost:" + port}}}
	cfg.Servers["evil"] = evil
	if err := os.WriteFile(file, jsonOf(t, cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	b.serve()
	const why = "yaya itself listens at "
	eventually.True(t, "a server with yaya as its host is refused", func() bool {
		return slices.ContainsFunc(b.status().Invalid, func(i daemon.InvalidServer) bool {
			return i.Name == "evil" && strings.Contains(fmt.Sprint(i), why) && strings.Contains(fmt.Sprint(i), `"mcp": true`)
		})
	})
	eventually.True(t, "the others are ready", func() bool { return strings.Count(b.serverStates(), "ready") >= 3 })
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"a permit", []string{"mcp", "allow", "bounded", "--host", b.addr}, []string{why + b.addr, `"mcp": true`}},
		{"a permit by name, of a folder's server", []string{"mcp", "allow", "theirs", "--host", "localhost:" + port}, []string{why, `"mcp": true`}},
		{"a permit, mapped", []string{"mcp", "allow", "bounded", "--host", "[::ffff:127.0.0.1]:" + port}, []string{why}},
		{"a permit of every address", []string{"mcp", "allow", "bounded", "--host", "0.0.0.0:" + port}, []string{"connect to 127.0.0.1"}},
		{"a flag of every address in another spelling", []string{"sandbox", "run", "--host", "0:" + port, "--", "true"}, []string{"connect to 127.0.0.1"}},
		{"a flag of every address, IPv6", []string{"sandbox", "run", "--host", "[::]:" + port, "--", "true"}, []string{"connect to 127.0.0.1"}},
		{"a flag of loopback in another spelling", []string{"sandbox", "run", "--host", "127.1:" + port, "--", "true"}, []string{"write 127.0.0.1:" + port}},
		{"a setting", []string{"config", "set", "sandbox.command.hosts", `["example.com", "` + b.addr + `"]`}, []string{"sandbox.command.hosts: host", why}},
		{"a flag", []string{"sandbox", "run", "--host", b.addr, "--", "true"}, []string{why}},
		{"an entry", []string{"mcp", "add-json", "evil2", string(jsonOf(t, evil))}, []string{why}},
		{"a URL in a permit", []string{"mcp", "allow", "bounded", "--host", "http://x"}, []string{`host "http://x": a host is NAME or NAME:PORT; write x`}},
		{"a relative folder in a setting", []string{"config", "set", "sandbox.command.write", `["/srv", "rel"]`}, []string{`sandbox.command.write: "rel" does not begin with / or ~/`}},
		{"a URL in a setting", []string{"config", "set", "sandbox.command.hosts", `["https://example.com:8443/x"]`}, []string{"write example.com:8443"}},
		{"the address of the endpoint, with the endpoint", []string{"mcp", "add-json", "evil3", `{"command":"true","sandbox":{"mcp":true,"hosts":["127.0.0.1:8787"]}}`}, []string{`with "mcp", ` + servers.SandboxMCP + ` is yaya's endpoint`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			out, err := b.run(c.args...)
			for _, want := range c.want {
				if err == nil || !strings.Contains(out, want) {
					t.Errorf("got %q, %v; want a refusal with %q", out, err, want)
				}
			}
		})
	}
	b.t = t
	b.edit("config.toml", "[sandbox.command]\nhosts = [\""+b.addr+"\"]\n")
	if out, err := b.run("reload"); err == nil || !strings.Contains(out, "sandbox.command.hosts: host") || !strings.Contains(out, why) {
		t.Errorf("a file that names yaya as a host: got %q, %v; want it refused", out, err)
	}
	// Another yaya, which does not know that this one is one, passes its program on.
	other := *b
	other.dir = filepath.Join(b.dir, "other")
	for name, script := range map[string]string{
		"without a proxy": "curl -s -m 10 --noproxy '*' http://" + b.addr + "/status",
		"by its proxy":    "curl -s -m 10 --noproxy '' -x http://127.0.0.1:3128 http://" + b.addr + "/status",
		"by a tunnel":     "curl -s -m 10 --noproxy '' -p -x http://127.0.0.1:3128 http://" + b.addr + "/status",
		"for MCP":         `curl -s -m 10 --noproxy '*' -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' http://` + b.addr + "/mcp",
	} {
		if out, err := other.run("sandbox", "run", "--host", b.addr, "--", "sh", "-c", script); err != nil || !strings.Contains(out, "passed on for a program in a sandbox") {
			t.Errorf("%s, another yaya's program got %q, %v; want that it is nobody's", name, out, err)
		}
	}
}

// Programs that know no proxy find a service of this machine that is allowed at its own
// address, in a server and in a command; a failure is reported once.
func TestServicesInSandboxes(t *testing.T) {
	t.Parallel()
	b := shellServers(t)
	b.serve()
	b.firstStart([]string{"own", "bounded", "theirs"})
	at := serviceOf(t, "a database")
	for _, server := range []string{"bounded", "theirs"} {
		if said, _ := b.sh(server, withoutProxy(at)); strings.Contains(said, "a database") {
			t.Errorf("%s reached %s, which nobody has allowed", server, at)
		}
		b.must("mcp", "allow", server, "--host", at)
		eventually.True(t, server+" reaches the service", func() bool {
			said, failed := b.sh(server, withoutProxy(at))
			return !failed && strings.Contains(said, "a database")
		})
	}
	for _, profile := range []string{"command", "server"} {
		out, errOut, code := b.in(b.cwd, "sandbox", "run", "--profile", profile, "--host", at, "--host", "one.invalid:99", "--", "bash", "-c",
			withoutProxy(at)+`; for i in 1 2 3; do for host in one.invalid:99 127.0.0.1:98; do exec 4<>/dev/tcp/127.0.0.1/3128; printf "CONNECT $host HTTP/1.1\r\nHost: $host\r\n\r\n" >&4; head -1 <&4; done; done`)
		if code != 0 || !strings.HasPrefix(out, "a database") || strings.Count(out, " 502 ") != 3 || strings.Count(out, " 403 ") != 3 {
			t.Errorf("%s: got %q, %d; want the service's word, and that the others cannot be reached", profile, out, code)
		}
		if strings.Count(errOut, "yaya: could not reach one.invalid:99: one.invalid could not be resolved: ") != 1 || strings.Count(errOut, "yaya: kept from reaching 127.0.0.1:98: ") != 1 {
			t.Errorf("%s: told %q, want each failure once", profile, errOut)
		}
	}
}

// listenersOf are the addresses at which a process listens.
func listenersOf(t *testing.T, pid int) (all []string) {
	t.Helper()
	inodes := map[string]bool{}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name()))
		inodes[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
	}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			f := strings.Fields(string(line))
			if len(f) < 10 || f[3] != "0A" || !inodes[f[9]] {
				continue
			}
			_, port, _ := strings.Cut(f[1], ":")
			n, err := strconv.ParseUint(port, 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint(n))
		}
	}
	slices.Sort(all)
	return all
}

// yaya knows every address that it listens at: the sandboxes' proxies go by what it
// knows.
func TestListenersAreKnown(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	addr, plain := freeport.Addr(t), freeport.Addr(t)
	ca := b.authority(addr, plain)
	running := b.serve("--listen", addr, "--local", b.addr, "--acme", "--host", "yaya.example", "--acme-http", plain, "--acme-directory", ca.Directory(), "--acme-email", "admin@yaya.example")
	status, body, _ := b.rawSocket("GET", "/status", "")
	var r daemon.Report
	if err := json.Unmarshal(body, &r); err != nil || status != 200 {
		t.Fatalf("got %d %s: %v, want status 200", status, body, err)
	}
	var known []string
	for _, at := range r.Listens {
		_, port, err := net.SplitHostPort(at)
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, port)
	}
	slices.Sort(known)
	if got := listenersOf(t, running.Process.Pid); !slices.Equal(got, known) || len(got) != 3 {
		t.Errorf("yaya listens at the ports %v, and knows %v; want the same three", got, known)
	}
}
