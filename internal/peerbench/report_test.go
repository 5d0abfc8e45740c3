//go:build unix

package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	var good, bad []outcome
	for i, c := range checks {
		good = append(good, outcome{check: c.name})
		var err error
		if i == 3 {
			err = errors.New("it was `lost` | in\nthe middle")
		}
		bad = append(bad, outcome{c.name, err})
	}
	a, b := &peer{name: "a", version: "1", source: "npm: a", upstreams: []string{overStdio}, setting: "x"}, &peer{name: "b", version: "2", source: "PyPI: b"}
	r := report{
		machine: "2 CPUs", begun: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), rounds: 3, per: time.Second, direct: good,
		results: []result{
			{peer: a, kind: overStdio, checks: good, took: 250 * time.Millisecond, rss: 3 << 20, speeds: []speed{
				{load: "one", direct: 1000, perSecond: 500, share: .5, p50: 2, p99: 8, directP50: 1, directP99: 2, cpu: 70},
				{load: "many", err: errors.New("no call succeeded"), failed: 7, failure: errors.New("EOF")},
				{load: "more", share: .0042, directP50: 1, directP99: 1},
			}},
			{peer: a, kind: overHTTP, checks: bad},
			{peer: b, err: errors.New("not installed: 404")},
		},
	}
	got := r.markdown()
	for _, want := range []string{
		"| a | stdio | 17 | 0.50 | – | 0.0042 | 3 | 0.25 |",
		"| a | HTTP | 16 | – | – | – |",
		"| a | stdio | one | 1000 | 500 | 0.50 | 2.00 | 8.00 | 2.0 / 4.0 | 70 | 0 |",
		"**a, stdio**: nothing.",
		"- results: `it was 'lost' | in the middle`",
		"- a, stdio, many: 7 calls failed, one with `EOF`",
		"| a | 1 | npm: a | stdio | x |",
		"- b 2 (PyPI: b): `not installed: 404`",
		"Run of 2026-11-26: 2 CPUs.",
		"| recovery |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
	if row, want := strings.Count(got, "✗"), 1; row != want {
		t.Errorf("the report has %d marks of failure, want %d", row, want)
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		want, got string
		covers    bool
	}{
		{`{"a":1,"b":[1,{"c":null}]}`, `{"b":[1,{"c":null,"d":2}],"a":1,"x":1}`, true},
		{`{"a":1}`, `{"a":1.0}`, false},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567000}`, false},
		{`{"a":null}`, `{}`, false},
		{`[1,2]`, `[1,2,3]`, false},
		{`{"a":{}}`, `{"a":[]}`, false},
		{`"x"`, `"y"`, false},
	} {
		if got := covers(value([]byte(c.want)), value([]byte(c.got))); got != c.covers {
			t.Errorf("covers(%s, %s) = %v, want %v", c.want, c.got, got, c.covers)
		}
	}
}

func TestGivenPeers(t *testing.T) {
	for _, bad := range []string{"", "name", "=x", "name="} {
		if p, err := given(bad); err == nil {
			t.Errorf("given(%q) = %+v, want an error", bad, p)
		}
	}
	p, err := given("mine:/x/mcp=/bin/gate --port {port} --to {url}")
	if err != nil || p.name != "mine" || len(p.upstreams) != 1 || p.upstreams[0] != overHTTP {
		t.Fatalf("given() = %+v, %v; want mine before an HTTP upstream", p, err)
	}
	l, err := p.launch(place{dir: t.TempDir(), port: 7, url: "http://127.0.0.1:1/mcp"})
	if got, want := strings.Join(l.argv, " "), "/bin/gate --port 7 --to http://127.0.0.1:1/mcp"; err != nil || got != want || l.to.path != "/x/mcp" {
		t.Errorf("launch() = %q at %q, %v; want %q at /x/mcp", got, l.to.path, err, want)
	}
}

func TestReason(t *testing.T) {
	for _, c := range []struct{ out, want string }{
		{"npm error code E404\nnpm error 404 Not Found - GET https://example.com/x\nnpm error see the log", "npm error 404 Not Found - GET (address)"},
		{"one\ntwo\n", "two"},
		{"", ""},
		{strings.Repeat("x", 300), strings.Repeat("x", 160) + "…"},
	} {
		if got := reason(c.out); got != c.want {
			t.Errorf("reason(%q) = %q, want %q", c.out, got, c.want)
		}
	}
}
