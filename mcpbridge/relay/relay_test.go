package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

type server struct {
	name, prefix string
	bare         bool
	lists        map[string][]string // by method: names
	fail         bool

	mu   sync.Mutex
	subs []string
}

func (s *server) Name() string                 { return s.name }
func (s *server) Capabilities() jsonrpc.Object { return jsonrpc.Object{} }
func (s *server) Instructions() string         { return "" }
func (s *server) Prefix() (string, bool)       { return s.prefix, s.bare }
func (s *server) Has(c string) bool {
	return s.lists[relay.Prompts.Method] != nil && c == "prompts" || c == "resources" && s.lists[relay.Resources.Method] != nil
}
func (s *server) List(_ context.Context, k relay.Kind) ([]jsonrpc.Object, error) {
	if s.fail {
		return nil, errors.New("away")
	}
	var out []jsonrpc.Object
	for _, n := range s.lists[k.Method] {
		o, err := jsonrpc.ParseObject(fmt.Appendf(nil, `{%q:%q,"of":%q}`, k.Key, n, s.name))
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}
func (s *server) Relay(context.Context, relay.Peer, string, jsonrpc.Object, ...jsonrpc.Edit) (relay.Reply, error) {
	return relay.Reply{}, nil
}
func (s *server) Notify(string, string, []byte) bool { return true }
func (s *server) Subscribe(_ context.Context, uri string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail {
		return errors.New("away")
	}
	s.subs = append(s.subs, "+"+uri)
	return nil
}
func (s *server) Unsubscribe(_ context.Context, uri string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = append(s.subs, "-"+uri)
	return nil
}

func router(list ...*server) *relay.Router {
	return &relay.Router{Servers: func() []relay.Server {
		var out []relay.Server
		for _, s := range list {
			out = append(out, s)
		}
		return out
	}}
}

func names(list []relay.Entry) string {
	var out []string
	for _, e := range list {
		out = append(out, e.Name+"="+e.Server.Name()+":"+e.Own)
	}
	return strings.Join(out, " ")
}

// Every entry has one name, whichever servers there are; one that is away takes
// nothing from the others.
func TestNames(t *testing.T) {
	p, r, tm := relay.Prompts.Method, relay.Resources.Method, relay.Templates.Method
	a := &server{name: "a", prefix: "a", lists: map[string][]string{p: {"x", "x", ""}, r: {"u://1", "u://2"}}}
	b := &server{name: "b", prefix: "b", bare: true, lists: map[string][]string{p: {"x", "y"}, r: {"u://2", "u://3"}, tm: {"t://{id}/z"}}}
	c := &server{name: "c", prefix: "c", bare: true, lists: map[string][]string{p: {"x"}, r: {}, tm: {"t://{id}/y"}}}
	away := &server{name: "d", prefix: "d", fail: true, lists: map[string][]string{p: {"z"}, r: {"u://9"}}}
	rt := router(a, b, c, away)
	if got := names(rt.List(t.Context(), relay.Prompts)); got != "a__x=a:x x=b:x y=b:y c__x=c:x" {
		t.Errorf("prompts: %s", got)
	}
	if got := names(rt.List(t.Context(), relay.Resources)); got != "u://1=a:u://1 u://2=a:u://2 yaya://b/u:%2F%2F2=b:u://2 u://3=b:u://3" {
		t.Errorf("resources: %s", got)
	}
	for uri, want := range map[string]string{
		"u://2": "a u://2", "yaya://b/u:%2F%2F2": "b u://2", "yaya://b/any%2Fthing": "b any/thing", "u://3": "b u://3",
		"t://7/z": "b t://7/z", "t://7/y": "c t://7/y",
		"t://7/q": "", "u://9": "", "yaya://nobody/x": "", "yaya://a": "", "yaya:///x": "",
	} {
		s, own, err := rt.Resource(t.Context(), uri)
		got := ""
		if err == nil {
			got = s.Name() + " " + own
		} else if !errors.Is(err, relay.ErrUnknown) {
			t.Errorf("%s: got %v, want error %v", uri, err, relay.ErrUnknown)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", uri, got, want)
		}
	}
	// Where only one server has resources at all, every URI is its own.
	if s, own, err := router(a, &server{name: "z"}).Resource(t.Context(), "file:///unlisted"); err != nil || s.Name() != "a" || own != "file:///unlisted" {
		t.Errorf("the only one: %v", err)
	}
}

// DN-11: matching a template costs no more than its length.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		template, uri string
		want          bool
	}{
		{"a://{x}", "a://1", true}, {"a://{x}", "b://1", false}, {"a://{x}/b", "a://1/b", true}, {"a://{x}/b", "a://1/c", false},
		{"a://{x}/{y}", "a://1/2", true}, {"a://{x}/{y}", "a://12", false}, {"a://b", "a://b", true}, {"a://b", "a://bc", false},
		{"{+all}", "anything", true}, {"a{x}b{y}c", "a1b2c", true}, {"a{x}b{y}c", "a1b2d", false}, {"a{x", "a1", true}, {"", "", true},
	} {
		if got := relay.Matches(c.template, c.uri); got != c.want {
			t.Errorf("got %q, %q: %v, want %v", c.template, c.uri, got, c.want)
		}
	}
	begun := time.Now()
	relay.Matches(strings.Repeat("{x}a", 100_000), strings.Repeat("a", 100_000)+"b")
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// everything is the filter of a subscriber without a profile: it sees every tool.
func everything(string) bool { return true }

type subscriber struct{ got []string }

func (s *subscriber) Updated(_, uri string, params []byte) {
	s.got = append(s.got, uri+string(params))
}

// The server is asked once, however many clients want to know; each is told under
// the name that it used, and nobody else is.
func TestSubscriptions(t *testing.T) {
	r := relay.Resources.Method
	a := &server{name: "a", lists: map[string][]string{r: {"u"}}}
	b := &server{name: "b", lists: map[string][]string{r: {"u"}}}
	rt := router(a, b)
	s1, s2, s3 := new(subscriber), new(subscriber), new(subscriber)
	for _, s := range []struct {
		sub *subscriber
		uri string
	}{{s1, "u"}, {s2, "yaya://a/u"}, {s3, "yaya://b/u"}} {
		if err := rt.Subscribe(t.Context(), s.sub, s.uri, everything); err != nil {
			t.Fatal(err)
		}
	}
	rt.Updated("a", "u", []byte("!"))
	rt.Updated("a", "other", []byte("!"))
	if fmt.Sprint(s1.got, s2.got, s3.got) != "[u!] [yaya://a/u!] []" {
		t.Errorf("got %v %v %v; want [u!] [yaya://a/u!] []", s1.got, s2.got, s3.got)
	}
	for _, s := range []*subscriber{s1, s1, s2} {
		if err := rt.Unsubscribe(t.Context(), s, ""); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a.subs, []string{"+u", "-u"}) || !slices.Equal(b.subs, []string{"+u"}) {
		t.Errorf("asked %v %v", a.subs, b.subs)
	}
	a.fail = true
	if err := rt.Subscribe(t.Context(), s1, "yaya://a/u", everything); err == nil {
		t.Error("a failure is not reported")
	}
	a.fail = false
	if err := rt.Subscribe(t.Context(), s1, "yaya://a/u", everything); err != nil || a.subs[len(a.subs)-1] != "+u" {
		t.Errorf("after a failure: %v %v", err, a.subs)
	}
	if err := rt.Subscribe(t.Context(), s1, "nowhere", everything); !errors.Is(err, relay.ErrUnknown) {
		t.Errorf("got %v, want %v", err, relay.ErrUnknown)
	}
}

// A client is asked what it says it can be asked, in either era's words.
func TestSupports(t *testing.T) {
	object := func(s string) jsonrpc.Object {
		o, err := jsonrpc.ParseObject([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, c := range []struct {
		caps, method, params string
		want                 bool
	}{
		{`{}`, relay.Sampling, `{}`, false}, {`{"sampling":{}}`, relay.Sampling, `{}`, true}, {`{"sampling":null}`, relay.Sampling, `{}`, false},
		{`{"roots":{"listChanged":true}}`, relay.Roots, `{}`, true}, {`{"elicitation":{}}`, relay.Elicitation, `{}`, true},
		{`{"elicitation":{}}`, relay.Elicitation, `{"mode":"url"}`, false}, {`{"elicitation":{"url":{}}}`, relay.Elicitation, `{"mode":"url"}`, true},
		{`{"elicitation":{"url":{}}}`, relay.Elicitation, `{"mode":"form"}`, false}, {`{"elicitation":{"form":{}}}`, relay.Elicitation, `{}`, true},
		{`{"sampling":{},"elicitation":{}}`, "tools/call", `{}`, false},
	} {
		if got := relay.Supports(object(c.caps), c.method, object(c.params)); got != c.want {
			t.Errorf("got %s %s %s: %v, want %v", c.caps, c.method, c.params, got, c.want)
		}
	}
}
