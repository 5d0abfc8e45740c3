package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// large are servers that answer over HTTP with a text, of which they may keep the end.
type large struct {
	*httptest.Server
	stalled chan struct{} // one for each answer that stalls
	over    chan struct{}
}

func newLarge(t *testing.T) *large {
	l := &large{stalled: make(chan struct{}, 8), over: make(chan struct{})}
	l.Server = httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(func() {
		close(l.over)
		l.Close()
	})
	return l
}

// serve answers in the way that the path says.
func (l *large) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var msg jsonrpc.Message
	if err != nil || r.Method != http.MethodPost || msg.Parse(body) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	head, tail := "", ""
	switch r.URL.Path {
	case "/json":
		w.Header().Set("Content-Type", "application/json")
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		head, tail = "data: ", "\n\n"
	}
	answer := func(result string) {
		_, _ = fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"result":%s}%s`, head, msg.ID, result, tail)
	}
	switch msg.Method {
	case "initialize":
		answer(initResult)
	case "tools/list":
		answer(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	case "tools/call":
		args := string(msg.Params.Get("arguments"))
		_, _ = fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s`, head, msg.ID, strings.Repeat("x", 5_000_000))
		_ = http.NewResponseController(w).Flush()
		if strings.Contains(args, "stalls") {
			l.stalled <- struct{}{}
			select {
			case <-l.over:
			case <-r.Context().Done():
			}
			return
		}
		_, _ = fmt.Fprintf(w, `"}]}}%s`, tail)
	case "":
		w.WriteHeader(http.StatusAccepted)
	default:
		_, _ = fmt.Fprintf(w, `%s{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}%s`, head, msg.ID, tail)
	}
}

// addWhole adds a server whose messages may have the usual 64 MiB.
func (r *rig) addWhole(s servers.Server) *upstream.Provider {
	r.t.Helper()
	root, err := os.OpenRoot(r.t.TempDir())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = root.Close() })
	p := upstream.New(upstream.Config{Server: s, Environ: func() []string { return s.Environ(os.LookupEnv) }, Procs: r.procs, HTTP: r.http, Name: "yaya", Artifacts: tool.NewStore(root)})
	if err := r.host.Install(r.t.Context(), feature.Contribution{Name: s.Name, Providers: []feature.Provider{p}}); err != nil {
		r.t.Fatal(err)
	}
	r.ready(s.Name)
	return p
}

// FID-3: a server that stalls in the middle of a large answer keeps no memory that the
// answers of others wait for, over no transport.
func TestStalledAnswersKeepNoRoom(t *testing.T) {
	r := newRig(t)
	l := newLarge(t)
	stalls := r.addWhole(fakeServer(t, "stdio", "sizes"))
	r.addWhole(servers.Server{Name: "json", Transport: servers.HTTP, URL: l.URL + "/json"})
	r.addWhole(servers.Server{Name: "stream", Transport: servers.HTTP, URL: l.URL + "/stream"})
	r.addWhole(fakeServer(t, "other", "sizes"))
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, call := range []string{"stdio__echo", "json__echo", "stream__echo"} {
		wg.Go(func() { r.callDuring(ctx, &client{name: call}, call, `{"bytes":5000000,"stalls":true}`) })
	}
	<-l.stalled
	<-l.stalled
	eventually.True(t, "the server stalls", func() bool {
		return strings.Contains(stalls.Detail().(upstream.Detail).Stderr, "stalled")
	})
	if got := intake.Answers().InUse(); got != 0 {
		t.Errorf("%d bytes are held for answers that are not complete, want 0", got)
	}
	c := &client{name: "c"}
	for _, call := range []string{"other__echo", "json__echo", "stream__echo"} {
		if got := len(textOf(t, whole(t, r.callFor(c, call, `{"bytes":5000000}`)))); got != 5_000_000 {
			t.Errorf("%s: got a text of %d bytes, want 5000000", call, got)
		}
	}
	if got := intake.Answers().InUse(); got != 0 {
		t.Errorf("%d bytes are still held, want 0", got)
	}
}

// FID-3: a large question of a server does not keep the room of answers while its
// client thinks about it, and an answer that comes meanwhile comes through.
func TestLargeQuestionsKeepNoRoomOfAnswers(t *testing.T) {
	r := newRig(t)
	r.addWhole(fakeServer(t, "asks", "ask-large"))
	r.addWhole(fakeServer(t, "other", "sizes"))
	var held, unasked int64
	c := &client{name: "c", caps: `{"elicitation":{}}`}
	c.answer = func(string, []byte) (relay.Reply, error) {
		held, unasked = intake.Answers().InUse(), intake.Unasked().InUse()
		if got := len(textOf(t, whole(t, r.callFor(&client{name: "d"}, "other__echo", `{"bytes":5000000}`)))); got != 5_000_000 {
			t.Errorf("during the question: got a text of %d bytes, want 5000000", got)
		}
		o, err := jsonrpc.ParseObject([]byte(`{"action":"accept"}`))
		return relay.Reply{Result: o}, err
	}
	if got := native(t, r.callFor(c, "asks__echo", `{}`)); !strings.Contains(got, "1 answers") {
		t.Errorf("got %.300s, want one answer", got)
	}
	if held != 0 || unasked < 3<<20 {
		t.Errorf("during the question %d bytes of answers and %d of questions were held, want none and 3 MiB", held, unasked)
	}
	eventually.True(t, "the question's memory is given back", func() bool { return intake.Unasked().InUse() == 0 })
}

// FID-3: a large answer that somebody has to look into is given back at once, and not
// when the collector finds it.
func TestLargeAnswersAreGivenBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r := newRig(t)
	l := newLarge(t)
	s := servers.Server{Name: "bounded", Transport: servers.HTTP, URL: l.URL + "/json", MaxResult: 10_000}
	r.addWhole(s)
	res := r.callFor(&client{name: "c"}, "bounded__echo", `{}`)
	res.Native.Buffer.Release()
	if got := intake.Answers().InUse(); got != 0 || !res.OK {
		t.Errorf("%d bytes are still held after %v, want 0", got, res.Text())
	}
}
