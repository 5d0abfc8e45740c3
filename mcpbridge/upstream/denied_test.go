package upstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// replyOf returns a server's answer: a result, or an error if there is one.
func replyOf(t *testing.T, result, failure string) (r reply) {
	t.Helper()
	if failure != "" {
		r.err = []byte(failure)
		return r
	}
	var err error
	if r.result, err = jsonrpc.ParseObject([]byte(result)); err != nil {
		t.Fatal(err)
	}
	return r
}

// A failure names what the sandbox refused during the failed call; nothing else names it.
func TestFailureSaysWhatWasDenied(t *testing.T) {
	for _, c := range []struct{ name, result, err, want string }{
		{"a success", `{"content":[]}`, "", `{"content":[]}`},
		{"a failure", `{"content":[{"type":"text","text":"no"}],"isError":true}`, "", `{"content":[{"type":"text","text":"no"},{"type":"text","text":"kept \"x\""}],"isError":true}`},
		{"a failure without content", `{"isError":true,"content":[ ]}`, "", `{"isError":true,"content":[{"type":"text","text":"kept \"x\""}]}`},
		{"a failure of another form", `{"isError":true,"content":"no"}`, "", `{"isError":true,"content":"no"}`},
		{"an error", "", `{"code":-32000,"message":"no"}`, `{"code":-32000,"message":"no; kept \"x\""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := replyOf(t, c.result, c.err)
			got := r.because(`kept "x"`)
			if s := string(got.err) + string(got.result.Raw()); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
	if got := failedBecause(tool.Fail(tool.ErrUnavailable, "gone"), "kept"); got.Display[0].Content() != "gone; kept" || got.ErrorKind != tool.ErrUnavailable {
		t.Errorf("a call without an answer: got %+v", got)
	}
}

// The same denial is reported once a minute, and only so many of them; a call learns of each.
func TestDenialsAreToldNotTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log, said []string
		p := New(Config{Denied: func(text string) { log = append(log, text) }, Log: func(_, _, text string) { said = append(said, text) }})
		tell := func(n int) {
			before := p.denials.count.Load()
			p.denied(Denial{What: fmt.Sprint("kept ", n)})
			if got := p.denials.since(before); got != fmt.Sprint("kept ", n) {
				t.Errorf("the call learns %q, want the denial", got)
			}
		}
		for range 3 {
			tell(0)
		}
		if len(log) != 1 || len(said) != 1 {
			t.Errorf("told %q and %q, want it once", log, said)
		}
		for n := range 1000 {
			tell(n)
		}
		if len(log) != maxDenied {
			t.Errorf("told %d, want %d", len(log), maxDenied)
		}
		if got := p.denials.recent(); len(got) != lastDenied || got[0].What != "kept 999" {
			t.Errorf("the state shows %v, want the last %d", got, lastDenied)
		}
		time.Sleep(deniedAgain)
		tell(0)
		if len(log) != maxDenied+1 {
			t.Errorf("after a minute told %d, want one more", len(log)-maxDenied)
		}
		if got := p.denials.since(p.denials.count.Load()); got != "" {
			t.Errorf("nothing was denied since: got %q", got)
		}
	})
}

// A server that says on standard error that it was kept from a file is reported.
func TestStderrTellsOfDenials(t *testing.T) {
	var said []string
	p := New(Config{Kept: func(line string) Denial {
		if line == "EACCES" {
			return Denial{What: "may have been kept", Allow: "this"}
		}
		return Denial{}
	}, Log: func(stream, _, text string) { said = append(said, stream+" "+text) }})
	w := p.stderr()
	if _, err := w.Write([]byte("fine\nEACCES\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(said), "[stderr fine stderr EACCES yaya may have been kept. Allow it: this]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// GF-1: a server that says in its failure what it was kept from, and not on standard error,
// is understood; in a success, nothing is looked for.
func TestFailuresComplain(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for _, c := range []struct {
		name, result, err string
		want              []string // by the number in the line
	}{
		{"a failure", `{"content":[{"type":"text","text":"first\nkept 1\nlast"}],"isError":true}`, "", []string{"kept 1"}},
		{"a success", `{"content":[{"type":"text","text":"kept 1"}]}`, "", nil},
		{"a success, said", `{"content":[{"type":"text","text":"kept 1"}],"isError":false}`, "", nil},
		{"an error", "", `{"code":-32000,"message":"kept 1"}`, []string{"kept 1"}},
		{"several", `{"content":[{"type":"text","text":"kept 1\nkept 2"},{"type":"text","text":"kept 3"}],"isError":true}`, "", []string{"kept 1", "kept 2", "kept 3"}},
		{"the same twice", `{"content":[{"type":"text","text":"kept 1\nkept 1"}],"isError":true}`, "", []string{"kept 1"}},
		{"a flood", `{"content":[{"type":"text","text":"` + strings.Repeat(`kept 1\nkept 2\nkept 3\nkept 4\nkept 5\n`, 100) + `"}],"isError":true}`, "", []string{"kept 1", "kept 2", "kept 3", "kept 4"}},
		{"at the end of much", `{"content":[{"type":"text","text":"` + long + `\nkept 1"}],"isError":true}`, "", []string{"kept 1"}},
		{"before much", `{"content":[{"type":"text","text":"kept 1\n` + long + `"}],"isError":true}`, "", nil},
		{"not content", `{"content":{"text":"kept 1"},"isError":true}`, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := 0
			p := New(Config{Kept: func(line string) Denial {
				if lines++; len(line) > maxLine {
					t.Errorf("a line of %d bytes is looked at, want %d at most", len(line), maxLine)
				}
				if !strings.HasPrefix(line, "kept ") {
					return Denial{}
				}
				return Denial{What: line[:min(len(line), 6)], Allow: "do", Says: true}
			}})
			r := replyOf(t, c.result, c.err)
			p.complaints(r)
			var want []string
			for _, w := range c.want {
				want = append(want, w+". If you want it to, allow it: do")
			}
			if got := p.denials.since(0); got != strings.Join(want, "; ") {
				t.Errorf("the failure tells %q, want %q", got, want)
			}
		})
	}
}

// Lines that name files cost look-ups, whatever comes of them: of a failure, and of each
// second of standard error, only so many are looked into. Others cost none.
func TestLooksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		p := New(Config{Kept: func(line string) Denial {
			if line != "EACCES" {
				return Denial{}
			}
			looks++
			return Denial{Looked: true}
		}})
		said := strings.Repeat("fine\n", 100) + strings.Repeat("EACCES\n", 100)
		text := jsonrpc.AppendString(nil, said)
		r := reply{}
		var err error
		if r.result, err = jsonrpc.ParseObject([]byte(`{"content":[{"type":"text","text":` + string(text) + `}],"isError":true}`)); err != nil {
			t.Fatal(err)
		}
		if p.complaints(r); looks != maxLooks {
			t.Errorf("%d lines of a failure are looked into, want %d", looks, maxLooks)
		}
		for second := range 3 {
			looks = 0
			if _, err := p.stderr().Write([]byte(said)); err != nil {
				t.Fatal(err)
			}
			if looks != maxHeard {
				t.Errorf("second %d: %d lines of standard error are looked into, want %d", second, looks, maxHeard)
			}
			time.Sleep(time.Second)
		}
	})
}

// A server that calls tools learns nothing of what is on the host by what it was kept from.
func TestServersAreNotToldOfDenials(t *testing.T) {
	var log []string
	p := New(Config{Denied: func(text string) { log = append(log, text) }})
	p.denied(Denial{What: "kept from /home/u/.ssh/id", Says: true})
	if got := p.tells(tool.Caller{Principal: tool.ServerPrefix + "s"}, 0); got != "" {
		t.Errorf("a server is told %q, want nothing", got)
	}
	if got := p.tells(tool.Caller{}, 0); got != "kept from /home/u/.ssh/id" || len(log) != 1 {
		t.Errorf("others are told %q and the log has %q, want the denial", got, log)
	}
}
