package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// fake is as much of the session API as a prompt needs. It notes the messages and cancellations
// that it gets, and answers a message when held lets it.
type fake struct {
	held chan struct{} // takes one value for each message; nil for no waiting

	mu   sync.Mutex
	got  []string
	came chan struct{} // a message is there
	more chan string   // events
}

func (f *fake) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, what)
}

func (f *fake) noted() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch at := strings.TrimPrefix(r.URL.Path, "/v1/sessions"); r.Method + " " + at {
	case "POST ":
		_, _ = io.WriteString(w, `{"session_id":"s"}`)
	case "POST /s/messages":
		var m struct{ ID string }
		_ = json.NewDecoder(r.Body).Decode(&m)
		f.came <- struct{}{}
		if f.held != nil {
			<-f.held
		}
		f.more <- fmt.Sprintf(`{"type":"message_added","turn_id":"t","data":{"message":{"id":%q,"role":"user","turn_id":"t"}}}`, m.ID)
		f.note("message")
		_, _ = io.WriteString(w, `{}`)
	case "POST /s/cancel":
		f.note("cancel")
		f.more <- `{"type":"session_canceled","turn_id":"t","data":{}}`
		_, _ = io.WriteString(w, `{}`)
	case "POST /s/compact":
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not see that the client goes
		f.came <- struct{}{}
		<-r.Context().Done()
		f.note("no summary")
	case "GET /s/queue":
		_, _ = io.WriteString(w, `{"queue":[]}`)
	case "GET /s/events":
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case ev := <-f.more:
				_, _ = io.WriteString(w, "data: "+ev+"\n\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		_, _ = io.WriteString(w, `{}`)
	}
}

// editor returns an editor that has the session s open: where it writes, and a function that reads the
// next message of which keep is true.
func editor(t *testing.T, f *fake) (io.WriteCloser, func(keep string) string, chan error) {
	t.Helper()
	ours, next, ended := serveEditor(t, f, f)
	say(t, ours, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	if got := next(`"id":1`); !strings.Contains(got, `"sessionId":"s"`) {
		t.Fatalf("got %s, want a session", got)
	}
	return ours, next, ended
}

// serveEditor is editor without the session, of a yaya that answers with api.
func serveEditor(t *testing.T, f *fake, api http.Handler) (io.WriteCloser, func(keep string) string, chan error) {
	t.Helper()
	f.came, f.more = make(chan struct{}, 1), make(chan string, 8)
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	in, ours := io.Pipe()
	theirs, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := Serve(t.Context(), &chat.Client{HTTP: client, Base: srv.URL}, Options{}, in, out)
		_ = out.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		_, _ = io.Copy(io.Discard, theirs) // or what is still told would have no reader
	})
	lines := bufio.NewReader(theirs)
	next := func(keep string) string {
		for {
			l, err := lines.ReadString('\n')
			if err != nil {
				return err.Error()
			}
			if strings.Contains(l, keep) {
				return l
			}
		}
	}
	return ours, next, ended
}

func say(t *testing.T, w io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

const (
	prompts = `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hello"}]}}`
	cancels = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`
)

// A turn goes on when its editor goes.
func TestTurnOutlivesEditor(t *testing.T) {
	f := &fake{}
	in, next, ended := editor(t, f)
	say(t, in, prompts)
	<-f.came
	say(t, in, `{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":"other"}}`)
	next(`"id":3`)
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if got := next(`"id":2`); !strings.Contains(got, "error") {
		t.Errorf("the prompt was answered by %s, want an error", got)
	}
	if got := next("nothing more"); got != "EOF" {
		t.Errorf("the output ended with %s, want EOF", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if got := f.noted(); slices.Contains(got, "cancel") {
		t.Errorf("yaya got %q, want no cancellation", got)
	}
}

// A prompt that is cancelled while its message is on the way is cancelled when it is there, however it
// is cancelled; until then nothing is, because a running turn would be somebody else's.
func TestCancelFollowsMessage(t *testing.T) {
	for name, cancel := range map[string]string{"session/cancel": cancels, "$/cancel_request": `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`} {
		t.Run(name, func(t *testing.T) {
			f := &fake{held: make(chan struct{})}
			in, next, _ := editor(t, f)
			say(t, in, prompts+"\n"+cancel)
			<-f.came
			say(t, in, `{"jsonrpc":"2.0","id":3,"method":"nonsense"}`) // the cancellation has been read then
			next(`"id":3`)
			f.held <- struct{}{}
			if got := next(`"id":2`); !strings.Contains(got, `"stopReason":"cancelled"`) {
				t.Errorf("the prompt was answered by %s, want that it is cancelled", got)
			}
			if got := f.noted(); !slices.Equal(got, []string{"message", "cancel"}) {
				t.Errorf("yaya got %q, want the message and then its cancellation", got)
			}
		})
	}
}

// A command of yaya's own ends with its prompt, however that is cancelled, and cancels no turn.
func TestCancelledCommand(t *testing.T) {
	for name, cancel := range map[string]string{"session/cancel": cancels, "$/cancel_request": `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			in, next, ended := editor(t, f)
			say(t, in, strings.Replace(prompts, "hello", "/compact the names", 1))
			<-f.came
			say(t, in, cancel)
			if got := next(`"id":2`); !strings.Contains(got, `"stopReason":"cancelled"`) {
				t.Errorf("the prompt was answered by %s, want that it is cancelled", got)
			}
			if got := f.noted(); slices.Contains(got, "cancel") || slices.Contains(got, "message") {
				t.Errorf("yaya got %q, want neither a message nor a cancellation of a turn", got)
			}
			say(t, in, strings.Replace(prompts, `"id":2`, `"id":3`, 1)) // the session has room for the next one
			<-f.came
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			next("nothing more")
			if err := <-ended; err != nil {
				t.Errorf("Serve = %v, want nil", err)
			}
		})
	}
}

// A prompt whose answer was refused ends like another one, because it is part of the next; the editor is told
// why in words.
func TestARefusedPrompt(t *testing.T) {
	f := &fake{}
	in, next, _ := editor(t, f)
	say(t, in, prompts)
	eventually.True(t, "its turn begins", func() bool { return slices.Contains(f.noted(), "message") })
	f.more <- `{"type":"notice","turn_id":"t","data":{"text":"the model refused"}}`
	f.more <- `{"type":"turn_completed","turn_id":"t","data":{"reason":"refusal"}}`
	if got := next("agent_message_chunk"); !strings.Contains(got, "the model refused") {
		t.Errorf("the editor got %s, want the notice", got)
	}
	if got := next(`"id":2`); !strings.Contains(got, `"stopReason":"end_turn"`) {
		t.Errorf("the prompt was answered by %s, want end_turn", got)
	}
}

// A session/cancel that comes when nothing runs is over then: it does not cancel the prompt that follows.
func TestCancelOfNothing(t *testing.T) {
	for range 50 {
		f := &fake{}
		in, next, ended := editor(t, f)
		say(t, in, cancels+"\n"+prompts)
		<-f.came
		say(t, in, `{"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}`)
		next(`"id":3`)
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		next("nothing more")
		if err := <-ended; err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
		if got := f.noted(); slices.Contains(got, "cancel") {
			t.Fatalf("yaya got %q, want no cancellation", got)
		}
	}
}

// R18: a question shows all that would run, whatever its beginning is, and nothing invisible.
func TestQuestionShowsAll(t *testing.T) {
	s := &session{id: "s", folder: "/w"}
	long := "echo " + strings.Repeat("x", 500) + "; touch last\nrm \u202efdp.exe"
	for _, tc := range []struct {
		tool, brief string
		input       any
		want        []string
	}{
		{"shell", "run: rm \u202efdp.exe " + long[:80], map[string]any{"command": long, "outside": true}, []string{"touch last\n│ rm ", "outside: true"}},
		{"propose_plan", "begin the work with this plan", map[string]any{"plan": "# Steps\n1. a\u202eb"}, []string{"# Steps\n1. a"}},
		{"db__drop", "", map[string]any{"table": "users"}, []string{"table: users"}},
		{"edit", "change a.txt", map[string]any{"path": "a.txt", "old_text": "a", "new_text": "b", "replace_all": true}, []string{"wherever it is"}},
		{"apply_patch", "", map[string]any{"patch": "not a patch; touch last\n\u202ex"}, []string{"not a patch; touch last\n"}},
		{"edit", "", map[string]any{"path": "a\u202e.txt", "old_text": "a", "new_text": "b\u2066"}, []string{`b\u{2066}`}},
		{"apply_patch", "", map[string]any{"patch": "*** Begin Patch\n*** Delete File: a\u202eb\n*** Update File: x\n*** Move to: \u202ey\n*** End Patch\n"}, []string{`deletes a\u{202e}b`, `to \u{202e}y`}},
	} {
		raw, err := json.Marshal(tc.input)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		asked := s.asked(chat.Ask{Tool: tc.tool, Brief: tc.brief, Input: raw}).Call
		text.WriteString(asked.Title + "\n")
		for _, c := range asked.Content {
			if c.Content != nil {
				text.WriteString(c.Content.Text)
			}
		}
		for _, want := range tc.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the question about %s shows %q, want %q in it", tc.tool, text.String(), want)
			}
		}
		if strings.Contains(text.String(), "\u202e") {
			t.Errorf("the question about %s has a character that turns others around", tc.tool)
		}
	}
}

// The progress of a call shows what the tool says: numbers alone where they are parts of something, or where
// it says nothing.
func TestProgress(t *testing.T) {
	f := &fake{}
	w, next, _ := editor(t, f)
	say(t, w, prompts)
	<-f.came
	f.more <- `{"type":"tool_call_started","turn_id":"t","data":{"tool_call":{"id":"c","name":"shell","input":{}}}}`
	for data, want := range map[string]string{
		`"progress":37,"message":"building"`:           `"text":"building"`,
		`"progress":1,"total":3,"message":"first one"`: `"text":"1 of 3 first one"`,
		`"progress":5`: `"text":"5"`,
	} {
		f.more <- `{"type":"tool_progress","turn_id":"t","data":{"tool_call_id":"c",` + data + `}}`
		if got := next(`"toolCallId":"c","content"`); !strings.Contains(got, want) {
			t.Errorf("%s is told as %s, want %s", data, got, want)
		}
	}
	say(t, w, cancels)
	next(`"id":2`)
}

// The editor learns of retries and of other models that answer, of a failed turn that is not its own, and
// once of the reason of a failed call.
func TestWhatYayaDoesIsTold(t *testing.T) {
	f := &fake{}
	w, next, _ := editor(t, f)
	say(t, w, prompts)
	<-f.came
	for _, c := range []struct{ event, next, want string }{
		{`{"type":"model_retry","turn_id":"t","data":{"attempt":1,"wait_seconds":5,"error":"status 429"}}`, "agent_thought_chunk", "the model did not answer (status 429); asked again after 5.0 s"},
		{`{"type":"model_fallback","turn_id":"t","data":{"failed":{"provider":"a"},"next":{"provider":"b"},"error":"down"}}`, "agent_thought_chunk", "cannot answer (down)"},
		{`{"type":"session_failed","turn_id":"another","data":{"error":"no such model"}}`, "agent_message_chunk", "The turn failed: no such model"},
		{`{"type":"tool_call_completed","turn_id":"t","data":{"tool_result":{"id":"c","ok":false,"error":"rejected: no","parts":[{"type":"text","text":"rejected: no, use printf"}]}}}`, `"status":"failed"`, "```\\nrejected: no, use printf\\n```"},
	} {
		f.more <- c.event
		if got := next(c.next); !strings.Contains(got, c.want) {
			t.Errorf("%s is told as %s, want %s", c.event, got, c.want)
		}
	}
	say(t, w, cancels)
	next(`"id":2`)
}

// A text stays in its block, and the block is made in one pass: a model may send a megabyte of fences.
func TestFenced(t *testing.T) {
	for _, body := range []string{"", "a", "```", "a ```` b", strings.Repeat("`", 1<<20)} {
		got := fenced(body)
		fence := got[:strings.IndexByte(got, '\n')]
		if strings.Contains(body, fence) || len(fence) < 3 || !strings.HasSuffix(got, "\n"+fence) || strings.Trim(fence, "`") != "" {
			t.Errorf("fenced(%.20q) begins with %.20q, want a fence that is not in it", body, got)
		}
	}
}
