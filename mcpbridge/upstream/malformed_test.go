package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func TestClaimed(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want []int64
	}{
		"nothing":                  {"", nil},
		"an open batch":            {"[", nil},
		"an open batch in another": {"[[", nil},
		"a batch of blanks":        {"[ \t", nil},
		"a batch of line ends":     {"[\r", nil},
		"a batch of a comma":       {"[,", nil},
		"an empty batch":           {"[]", nil},
		"a batch of null":          {"[null]", nil},
		"a batch that is cut off":  {`[{"jsonrpc":"2.0","id":7,"result":{`, []int64{7}},
		"a batch of two":           {`[{"id":7,"result":1},{"id":8,"result":1}]`, []int64{7, 8}},
		"an answer":                {`{"jsonrpc":"2.0","id":"7","result":{}}`, []int64{7}},
		"a request":                {`{"jsonrpc":"2.0","id":7,"method":"x"}`, nil},
	} {
		if got := claimed([]byte(tc.in)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: claimed(%q) = %v, want %v", name, tc.in, got, tc.want)
		}
	}
}

// deaf takes what a server sends, and counts what cannot be read.
type deaf struct{ unreadable int }

func (*deaf) note(*request, string, []byte) {}
func (*deaf) asked(_ *request, _ *jsonrpc.Message, buf *bufpool.Buffer, _ func([]byte)) {
	buf.Forget()
}
func (d *deaf) unread([]byte, error) { d.unreadable++ }
func (*deaf) panicked(v any) error   { return fmt.Errorf("panic: %v", v) }

func (*deaf) conceal(msg []byte) []byte    { return msg }
func (*deaf) concealed(text string) string { return text }

// FuzzDispatch: whatever a server sends, its connection goes on or ends with an error,
// and all that was counted for it comes back.
func FuzzDispatch(f *testing.F) {
	for _, seed := range []string{
		"[", "[[", "[ \t", "[,", `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":"1","result":{}}`,
		`[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}},{"jsonrpc":"2.0","id":1,"result":{}}]`,
		`[[],{"jsonrpc":"2.0","id":3,"method":"ping"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, batches bool) {
		m := newMux(new(atomic.Uint64), new(deaf), func([]byte) {})
		m.batches.Store(batches)
		p, err := m.add(&request{id: 1, progress: func(note) {}})
		if err != nil {
			t.Fatal(err)
		}
		held := 1
		buf := new(bufpool.Buffer)
		buf.OnRelease(func() { held-- })
		_ = m.dispatch(data, buf)
		m.drop(1, p)
		if held != 0 {
			t.Fatalf("%q: what was counted is held %d times after all, want 0", data, held)
		}
	})
}

// brittle has a fault that a notification brings to light.
type brittle struct{ *session }

func (brittle) note(*request, string, []byte) { panic("a fault of ours") }

// A panic while handling what a server sent ends the connection of that server, is
// logged with its stack, and ends nothing else.
func TestPanicEndsItsConnection(t *testing.T) {
	const line = `{"jsonrpc":"2.0","method":"notifications/x"}`
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if r.URL.Path == "/sse" {
			_, _ = io.WriteString(w, "event: endpoint\ndata: /post\n\n")
		}
		_, _ = io.WriteString(w, "data: "+line+"\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer ts.Close()
	procs := new(proc.Manager)
	defer procs.Close(t.Context())
	rt := new(http.Transport)
	defer rt.CloseIdleConnections()
	at := room{limit: 1 << 20, scratch: intake.TempFile}
	for name, run := range map[string]func(in incoming) error{
		"a process": func(in incoming) error {
			st, err := startStdio(procs, proc.Spec{Path: "sh", Env: os.Environ(), Args: []string{"-c", "echo '" + line + "'; exec sleep 60"}}, new(atomic.Uint64), in, at)
			if err != nil {
				t.Fatal(err)
			}
			defer st.close(t.Context())
			<-st.done()
			return st.failed()
		},
		"HTTP+SSE": func(in incoming) error {
			st, err := dialSSE(t.Context(), rt, ts.URL+"/sse", nil, new(atomic.Uint64), in, at)
			if err != nil {
				t.Fatal(err)
			}
			defer st.close(t.Context())
			<-st.done()
			return st.failed()
		},
		"the answer to a request": func(in incoming) error {
			ht, err := newHTTP(rt, ts.URL, nil, new(atomic.Uint64), in, at)
			if err != nil {
				t.Fatal(err)
			}
			defer ht.close(t.Context())
			_, err = ht.roundTrip(t.Context(), &request{id: 1, body: []byte(`{}`)})
			return err
		},
		"the stream of a session": func(in incoming) error {
			ht, err := newHTTP(rt, ts.URL, nil, new(atomic.Uint64), in, at)
			if err != nil {
				t.Fatal(err)
			}
			defer ht.close(t.Context())
			ht.listen()
			<-ht.done()
			return ht.failed()
		},
	} {
		var mu sync.Mutex
		var log strings.Builder
		p := New(Config{Server: servers.Server{Name: "srv"}, Log: func(stream, level, text string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(&log, stream, level, text)
		}})
		s := newSession(p, tenant{}, nil)
		err := run(brittle{s})
		s.cancel()
		const want = "panic while handling a message of the server: a fault of ours"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the connection ended with %v, want %q", name, err, want)
		}
		mu.Lock()
		if got := log.String(); !strings.Contains(got, want) || !strings.Contains(got, "brittle.note") {
			t.Errorf("%s: the log has %q, want the panic and its stack", name, got)
		}
		mu.Unlock()
	}
}

// An answer to no request is garbage: several of them end their connection, and the log
// lists no more than these. A late answer is not garbage.
func TestAnswersToNobodyAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		ends bool
	}{
		"an id that is text":    {`{"jsonrpc":"2.0","id":"x","result":{}}`, true},
		"a number that is text": {`{"jsonrpc":"2.0","id":"7","result":{}}`, true},
		"a fraction":            {`{"jsonrpc":"2.0","id":1.5,"result":{}}`, true},
		"a result for null":     {`{"jsonrpc":"2.0","id":null,"result":{}}`, true},
		"not JSON":              {`hello`, true},
		"in batches":            {"[" + strings.Repeat(`{"jsonrpc":"2.0","id":"x","result":{}},`, 49) + `{"jsonrpc":"2.0","id":"x","result":{}}]`, true},
		"in a file":             {`{"jsonrpc":"2.0","id":"x","result":{"t":"` + strings.Repeat("x", 2*intake.Small) + `"}}`, true},
		"a late answer":         {`{"jsonrpc":"2.0","id":7,"result":{}}`, false},
	} {
		in := new(deaf)
		m := newMux(new(atomic.Uint64), in, func([]byte) {})
		m.batches.Store(true)
		const n = 100
		l := newLines(strings.NewReader(strings.Repeat(tc.line+"\n", n)), room{limit: 16 << 20, scratch: intake.TempFile, server: "s"})
		l.line, l.late, l.lost, l.enough = m.dispatch, m.late, m.lost, m.enough
		if err := l.read(t.Context()); errors.Is(err, errGarbage) != tc.ends {
			t.Errorf("%s: the connection ended with %v, want %v: %v", name, err, errGarbage, tc.ends)
		}
		if in.unreadable > maxGarbage+1 {
			t.Errorf("%s: the log has %d lines, want at most %d", name, in.unreadable, maxGarbage+1)
		}
		if got := intake.Arriving().InUse(); got != 0 {
			t.Errorf("%s: %d bytes are counted in files when all is over, want 0", name, got)
		}
	}
}

// A batch whose connection ends amidst of it gives back at once what it counted.
func TestBatchOfGarbageGivesBack(t *testing.T) {
	m := newMux(new(atomic.Uint64), new(deaf), func([]byte) {})
	m.batches.Store(true)
	given := 0
	buf := new(bufpool.Buffer)
	buf.OnRelease(func() { given++ })
	err := m.dispatch([]byte("["+strings.Repeat("[],", 49)+"[]]"), buf)
	if !errors.Is(err, errGarbage) || given != 1 {
		t.Errorf("dispatch = %v and the batch was given back %d times, want %v and 1", err, given, errGarbage)
	}
}

// A line that cannot be read is shown without secrets, even if it is cut inside a secret,
// and whatever the secret's name.
func TestOddLinesAreShownWithoutSecrets(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	known := new(masked.Secrets)
	known.Learn(secret)
	p := New(Config{Server: servers.Server{Name: "srv"}, Mask: known.String})
	for name, line := range map[string]string{
		"whole":             "hello " + secret,
		"coloured":          "hello correct-\x1b[1mhorse-battery\x1b[0m-staple",
		"cut at 200":        strings.Repeat("é ", 62) + secret + strings.Repeat(" x", 100),
		"cut at 800":        strings.Repeat("\x1b[1m", 195) + secret + strings.Repeat(" x", 100),
		"in a token's name": `{"token":"` + secret + `"}`,
	} {
		if got := p.shown([]byte(line)); strings.Contains(got, "correct-horse") || len(got) > 202 {
			t.Errorf("%s: the line is shown as %s, want it without the secret and at most 200 bytes", name, got)
		}
	}
}
