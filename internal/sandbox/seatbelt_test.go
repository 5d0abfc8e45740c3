package sandbox

import (
	"net/http"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// A profile for macOS expresses the policy, in the order in which the last matching
// rule decides.
func TestSeatbelt(t *testing.T) {
	rules := inside.Sort([]inside.Rule{
		{Path: "/w", Access: inside.Write}, {Path: "/w/.git/config", Access: inside.Read}, {Path: "/home/u/.ssh", Access: inside.Hide}, {Path: "/home/u/.ssh/known_hosts", Access: inside.Read},
	})
	for _, c := range []struct {
		name, profile string
		port          int
		has, lacks    []string
	}{
		{"check", "check", 0, []string{"(deny default)\n", "(allow file-read*)\n", `(deny file-write-unlink (literal (param "P`}, []string{"remote ip", "(allow network*)", "(allow default)"}},
		{"server", "server", 4711, []string{"(deny default)\n", `(allow network-outbound (remote ip "localhost:4711"))`}, []string{"(allow file-read*)\n", "localhost:*"}},
		{"plugin", "plugin", 0, []string{"(deny default)\n"}, []string{"(allow network", "(allow file-read*)\n"}},
		{"guarded", "guarded", 0, []string{"(allow default)\n", "(allow signal (target self) (target same-sandbox))", "(deny network-outbound (subpath", `(deny network-outbound (remote ip "localhost:8787"))`, `(deny network-outbound (remote ip "localhost:8443"))`}, []string{"(deny default)", "(allow network-outbound (remote ip"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := profile(t, c.profile)
			text, params := seatbelt(&inside.Plan{Strict: p.Strict, HostWrites: p.HostWrites, Rules: rules}, &p, c.port, []string{"127.0.0.1:8787", "[::]:8443"})
			names := map[string]string{}
			for i := 0; i < len(params); i += 2 {
				key, path, _ := strings.Cut(params[i+1], "=")
				if params[i] != "-D" || names[path] != "" {
					t.Errorf("parameters %q", params)
				}
				names[path] = `(param "` + key + `")`
			}
			for _, want := range c.has {
				if !strings.Contains(text, want) {
					t.Errorf("the profile lacks %q:\n%s", want, text)
				}
			}
			for _, bad := range c.lacks {
				if strings.Contains(text, bad) {
					t.Errorf("the profile has %q:\n%s", bad, text)
				}
			}
			order := []string{
				"(deny file-read* file-write* (subpath " + names["/home/u/.ssh"] + "))",
				"(allow file-read* (subpath " + names["/home/u/.ssh/known_hosts"] + "))\n(deny file-write* (subpath " + names["/home/u/.ssh/known_hosts"] + "))",
			}
			if c.profile == "check" {
				order = append([]string{"(allow file-read* file-write* (subpath " + names["/w"] + "))"}, order...)
				order = append(order, "(deny file-write-unlink (literal "+names["/w"]+"))", "(deny file-write-unlink (literal "+names["/w/.git"]+"))")
			}
			last := -1
			for _, part := range order {
				at := strings.Index(text, part)
				if at <= last {
					t.Errorf("%q is at %d, after %d is wanted:\n%s", part, at, last, text)
				}
				last = at
			}
			if strings.Count(text, "(") != strings.Count(text, ")") {
				t.Errorf("the brackets do not match:\n%s", text)
			}
		})
	}
}

// Named services of this machine are reached without a proxy, except yaya.
func TestSeatbeltServices(t *testing.T) {
	p := profile(t, "server")
	p.Net.Allow = []string{"127.0.0.1:5432", "localhost:8443", "10.1.2.3:5433", "example.com:5434"}
	text, _ := seatbelt(&inside.Plan{Strict: true}, &p, 4711, []string{"127.0.0.1:8787", "[::]:8443"})
	for port, want := range map[string]bool{"5432": true, "8443": false, "8787": false, "5433": false, "5434": false} {
		if got := strings.Contains(text, `(allow network-outbound (remote ip "localhost:`+port+`"))`); got != want {
			t.Errorf("port %s is open = %v, want %v:\n%s", port, got, want, text)
		}
	}
}

// No name of a file becomes a part of the profile.
func TestSeatbeltHostileNames(t *testing.T) {
	for _, name := range []string{`/a")(allow default)("`, "/a\\", "/a\n(allow default)", "/a=b", "/(param \"P1\")", `/#"x"`, "/é;comment"} {
		p := profile(t, "check")
		text, params := seatbelt(&inside.Plan{Rules: []inside.Rule{{Path: name, Access: inside.Hide}}}, &p, 0, nil)
		if strings.Contains(text, name) || strings.Contains(text, "(allow default)") || !strings.Contains(text, `(deny file-read* file-write* (subpath (param "P0")))`) {
			t.Errorf("the profile for %q:\n%s", name, text)
		}
		if len(params) != 2 || params[1] != "P0="+name {
			t.Errorf("parameters %q, want P0=%s", params, name)
		}
	}
}

// Where others can reach the proxy of a sandbox, too, it asks for its password.
func TestProxyPassword(t *testing.T) {
	p := newProxy(Net{Mode: Hosts, Allow: []string{"a.example"}})
	p.password = "secret"
	p.environ = nil // it is not reached
	for header, want := range map[string]int{"": http.StatusProxyAuthRequired, "Basic eDp5": http.StatusProxyAuthRequired, p.wants(): http.StatusForbidden} {
		w := &recorder{}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://b.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Proxy-Authorization", header)
		if p.ServeHTTP(w, r); w.code != want {
			t.Errorf("with %q: %d, want %d", header, w.code, want)
		}
	}
}

type recorder struct{ code int }

func (*recorder) Header() http.Header            { return http.Header{} }
func (r *recorder) WriteHeader(code int)         { r.code = code }
func (*recorder) Write(data []byte) (int, error) { return len(data), nil }
