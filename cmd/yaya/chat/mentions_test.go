package chat

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/colorprofile"
)

// offering is an API with the servers docs and mute, which never answers.
type offering struct {
	mu   sync.Mutex
	sent []string                   // messages and attachments
	keys []string                   // of the messages
	down func(try int) (status int) // of messages; optional
}

const (
	hostileURI  = "doc://evil\x1b]0;owned\x07\u202e"
	manyServers = `{"servers":[{"name":"docs","resources":true,"prompts":true},{"name":"mute","resources":true,"prompts":true},{"name":"x\u001b[2J","resources":true,"prompts":true}]}`
)

func (o *offering) RoundTrip(r *http.Request) (*http.Response, error) {
	var in map[string]any
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			return nil, err
		}
	}
	status, body := http.StatusOK, "{}"
	quoted := func(v any) string { raw, _ := json.Marshal(v); return string(raw) }
	path := strings.TrimPrefix(r.URL.Path, "/v1/sessions/sess_1")
	prefix := r.URL.Query().Get("prefix")
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case strings.HasPrefix(path, "/servers/mute/"):
		o.mu.Unlock()
		<-r.Context().Done()
		o.mu.Lock()
		return nil, r.Context().Err()
	case path == "/servers":
		body = manyServers
	case path == "/servers/docs/resources" && r.Method == http.MethodGet:
		type resource struct {
			URI  string `json:"uri"`
			Name string `json:"name"`
		}
		list := []resource{}
		for _, x := range []resource{{"doc://guide", "The guide\x1b[31m\u202e"}, {"ask://what?", "A question"}, {"doc://two words", "x"}, {hostileURI, "x"}, {"long://" + strings.Repeat("y", 8000), "long"}} {
			if strings.HasPrefix(x.URI, prefix) {
				list = append(list, x)
			}
		}
		for i := 0; i < 10_000 && strings.HasPrefix("many://", prefix) && prefix != ""; i++ {
			list = append(list, resource{fmt.Sprintf("many://%d", i), "n"})
		}
		body = quoted(map[string]any{"resources": list})
	case path == "/servers/docs/resources":
		if in["uri"] != "doc://guide" && in["uri"] != "ask://what?" {
			status, body = http.StatusNotFound, quoted(map[string]any{"error": map[string]string{"code": "not_found", "message": fmt.Sprintf("%q of the server \"docs\" cannot be read: gone", in["uri"])}})
			break
		}
		status, body = http.StatusCreated, `{"ref":"attachments/att_1.txt"}`
	case path == "/servers/docs/prompts" && r.Method == http.MethodGet:
		body = `{"prompts":[{"name":"summarize","title":"Sum it up","arguments":[{"name":"topic","required":true},{"name":"tone"}]},{"name":"bad name","arguments":[]}]}`
	case path == "/servers/docs/prompts":
		args, _ := in["arguments"].(map[string]any)
		if args["topic"] == nil {
			status, body = http.StatusBadRequest, `{"error":{"code":"bad_request","message":"the prompt \"summarize\" of the server \"docs\" needs the argument topic"}}`
			break
		}
		body = quoted(map[string]any{"text": fmt.Sprint("Summarize ", args["topic"])})
	case path == "/attachments":
		data, err := base64.StdEncoding.DecodeString(in["data"].(string))
		if err != nil {
			return nil, err
		}
		o.sent = append(o.sent, "attach "+string(data))
		status, body = http.StatusCreated, `{"ref":"attachments/att_2.txt","mime_type":"text/plain"}`
	case path == "/messages" && o.down != nil && o.down(len(o.keys)) != 0:
		status = o.down(len(o.keys))
		o.keys = append(o.keys, fmt.Sprint(in["id"]))
		if body = `{"error":{"code":"bad_request","message":"no"}}`; status == http.StatusConflict {
			body = `{"error":{"code":"idempotency_conflict","message":"no"}}`
		}
	case path == "/messages":
		o.keys = append(o.keys, fmt.Sprint(in["id"]))
		o.sent = append(o.sent, fmt.Sprint(in["delivery"], " ", quoted(in["parts"])))
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// take returns what was sent since the last time.
func (o *offering) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := strings.Join(o.sent, "\n")
	o.sent = nil
	return out
}

// mentioning starts the program with an [offering].
func mentioning(t *testing.T) (*terminal, *offering) {
	t.Helper()
	o := new(offering)
	x := start(t, 80, 24, colorprofile.ASCII, func(x *terminal) {
		x.m.api = &Client{HTTP: &http.Client{Transport: o}, Base: "http://yaya"}
		x.m.workspace = "/on/another/machine"
	})
	return x, o
}

// USE-12, MIS-5: Tab offers connected servers beside files, their resources and prompts, and the
// arguments of these, but none that nobody can type.
func TestCompletionOfServers(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		want string // the input
	}{
		"a server":                   {[]string{"see @do", tab}, "see @docs:"},
		"a resource":                 {[]string{"see @docs:doc", tab}, "see @docs:doc://guide "},
		"one that ends in a mark":    {[]string{"@docs:ask", tab}, "@docs:<ask://what?> "},
		"one in brackets":            {[]string{"@docs:<doc", tab}, "@docs:doc://guide "},
		"a long one":                 {[]string{"@docs:long", tab}, "@docs:long://" + strings.Repeat("y", 8000) + " "},
		"one of many":                {[]string{"@docs:many", tab, esc}, "@docs:many://"},
		"a server with prompts":      {[]string{"/do", tab}, "/docs:"},
		"a prompt":                   {[]string{"/docs:s", tab}, "/docs:summarize "},
		"an argument of a prompt":    {[]string{"/docs:summarize to", tab, tab}, "/docs:summarize to"},
		"the arguments":              {[]string{"/docs:summarize top", tab}, "/docs:summarize topic="},
		"of a server that is silent": {[]string{"@mute:", tab, "still here"}, "@mute:still here"},
		"of no server":               {[]string{"@nobody:", tab}, "@nobody:"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, _ := mentioning(t)
				x.keys(c.keys...)
				if got := x.m.input.Value(); got != c.want {
					t.Errorf("the input is %.100q, want %.100q", got, c.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		x, _ := mentioning(t)
		x.keys("@", tab)
		golden(t, "80x24-servers", x.text())
		x.keys(esc, "docs:", tab)
		golden(t, "80x24-resources", x.text())
	})
}

// USE-12, MIS-5: resources that a message mentions go with it, and a message that cannot be put together
// stays in the input.
func TestMentions(t *testing.T) {
	const guide = `queue [{"text":"%s","type":"text"},{"name":"docs:doc://guide","ref":"attachments/att_1.txt","type":"file"}]`
	for name, c := range map[string]struct {
		keys             []string
		sent, input, say string
	}{
		"a resource, twice, in a sentence": {[]string{"see @docs:doc://guide and @docs:doc://guide.", enter}, fmt.Sprintf(guide, "see @docs:doc://guide and @docs:doc://guide."), "", ""},
		"one in angle brackets":            {[]string{"@docs:<ask://what?>, then", enter}, `queue [{"text":"@docs:\u003cask://what?\u003e, then","type":"text"},{"name":"docs:ask://what?","ref":"attachments/att_1.txt","type":"file"}]`, "", ""},
		"a word of no server":              {[]string{"ask @ada:example.org", enter}, `queue [{"text":"ask @ada:example.org","type":"text"}]`, "", ""},
		"a URI of no server":               {[]string{"see @nobody:doc://guide", enter}, "", "see @nobody:doc://guide", `no connected server "nobody" has resources`},
		"leaving meanwhile":                {[]string{"see @mute:x", enter, "\x04"}, "", "", "press Ctrl+D again to leave without it"},
		"a mail address":                   {[]string{"ada@docs:1", enter}, `queue [{"text":"ada@docs:1","type":"text"}]`, "", ""},
		"one that cannot be read":          {[]string{"see @docs:doc://gone", enter}, "", "see @docs:doc://gone", `@docs:doc://gone: "doc://gone" of the server "docs" cannot be read: gone`},
		"steering":                         {[]string{"@docs:doc://guide", "\x13"}, strings.Replace(fmt.Sprintf(guide, "@docs:doc://guide"), "queue", "steer", 1), "", ""},
		"a server that hangs, and esc":     {[]string{"see @mute:x", enter, esc}, "", "see @mute:x", "stopped; the message was not sent"},
		"and more typed meanwhile":         {[]string{"see @mute:x", enter, "more", esc}, "", "more", "stopped; the message was not sent; Ctrl+Y brings the message back"},
		"and another message":              {[]string{"see @mute:x", enter, "more", enter}, "", "more", "sending the message: wait for its end"},
		"too many":                         {[]string{"\x1b[200~@docs:" + strings.Join(strings.Fields(strings.Repeat("x ", 17)), "1 @docs:") + "\x1b[201~", enter}, "", "", ""},
		"a prompt":                         {[]string{`/docs:summarize topic="two words" tone='it'"'"'s'`, enter}, `queue [{"text":"Summarize two words","type":"text"}]`, "", ""},
		"a prompt without an argument":     {[]string{"/docs:summarize tone=x", enter}, "", "/docs:summarize tone=x", "needs the argument topic"},
		"a prompt with a word":             {[]string{"/docs:summarize all", enter}, "", "/docs:summarize all", "all is not NAME=VALUE"},
		"a quote that is open":             {[]string{`/docs:summarize topic="x`, enter}, "", `/docs:summarize topic="x`, `the value of topic has no closing "`},
		"a prompt of a server that hangs":  {[]string{"/mute:x", enter, ctrlC}, "", "/mute:x", "stopped; the message was not sent"},
		"no prompt":                        {[]string{"/docs:", enter}, "", "/docs:", "/SERVER:PROMPT"},
		"a path":                           {[]string{"/usr/bin/x:y is a path", enter}, `queue [{"text":"/usr/bin/x:y is a path","type":"text"}]`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "too many" {
				var all []string
				for i := range maxMentions + 1 {
					all = append(all, fmt.Sprintf("@docs:%d", i))
				}
				c.input, c.say = strings.Join(all, " "), "a message mentions at most 16 resources, not 17"
				c.keys[0] = "\x1b[200~" + c.input + "\x1b[201~"
			}
			synctest.Test(t, func(t *testing.T) {
				x, o := mentioning(t)
				x.keys(c.keys...)
				if got := o.take(); got != c.sent {
					t.Errorf("sent %s\nwant %s", got, c.sent)
				}
				if got := x.m.input.Value(); got != c.input || !strings.Contains(x.m.note, c.say) {
					t.Errorf("the input is %q below %q, want %q below %q", got, x.m.note, c.input, c.say)
				}
			})
		})
	}
}

// A message whose sending failed may have arrived: sent again as it is, it is the same message; changed, it
// is another.
func TestSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		keys  []string
		again int // status of the second sending
		same  bool
		input string
	}{
		"as it is":                {[]string{enter}, 0, true, ""},
		"which had arrived":       {[]string{enter}, http.StatusConflict, true, ""},
		"changed":                 {[]string{"!", enter}, 0, false, ""},
		"changed, and refused":    {[]string{"!", enter}, http.StatusConflict, false, "TEXT!"},
		"as it is, twice refused": {[]string{enter}, http.StatusBadRequest, true, "TEXT"},
	} {
		for _, text := range []string{"see @docs:doc://guide", "hello"} {
			t.Run(name+"/"+text, func(t *testing.T) { sentAgain(t, text, c.keys, c.again, c.same, c.input) })
		}
	}
}

// sentAgain sends a text that fails late, then types keys, of which the second sending gets the status.
func sentAgain(t *testing.T, text string, keys []string, status int, same bool, input string) {
	synctest.Test(t, func(t *testing.T) {
		x, o := mentioning(t)
		o.down = func(try int) int {
			if try < 5 {
				return http.StatusBadGateway
			}
			return status
		}
		x.keys(text, enter)
		time.Sleep(time.Minute)
		x.settle()
		if got := x.m.input.Value(); got != text || len(o.keys) != 5 {
			t.Fatalf("after %d tries the input is %q below %q, want the message after 5", len(o.keys), got, x.m.note)
		}
		x.keys(keys...)
		if got := o.keys[4] == o.keys[5]; got != same || len(o.keys) != 6 {
			t.Errorf("the ids are %q, want the last the same: %v", o.keys, same)
		}
		if got := x.m.input.Value(); got != strings.ReplaceAll(input, "TEXT", text) {
			t.Errorf("then the input is %q below %q, want %q", got, x.m.note, input)
		}
	})
}

// The same words later are another message: after others, and when the first has arrived after all, which
// empties the input.
func TestSameWordsLater(t *testing.T) {
	for _, text := range []string{"see @docs:doc://guide", "hello"} {
		for _, arrives := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				x, o := mentioning(t)
				o.down = func(try int) int {
					if try < 5 {
						return http.StatusBadGateway
					}
					return 0
				}
				x.keys(text, enter)
				time.Sleep(time.Minute)
				x.settle()
				if arrives {
					x.m.send(happened{"sess_1", []Event{{Type: "message_added", Data: json.RawMessage(fmt.Sprintf(`{"message":{"id":%q,"role":"user"}}`, o.keys[4]))}}})
					x.settle()
					if got := x.m.input.Value(); got != "" || !strings.Contains(x.m.note, "has arrived") {
						t.Errorf("when the message arrives after all, the input is %q below %q, want it empty", got, x.m.note)
					}
				} else {
					x.keys(strings.Repeat("\x7f", len(text)), "another", enter)
				}
				x.keys(text, enter)
				if last := len(o.keys) - 1; o.keys[last] == o.keys[4] {
					t.Errorf("%q was sent later with the id of the message before it, arrived: %v", text, arrives)
				}
			})
		}
	}
}

// A message that was not sent comes back where it was written: not in another session, to which Enter would
// send it.
func TestUnsentElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, o := mentioning(t)
		first := x.m.id
		x.keys("a secret @mute:x", enter)
		x.p.Send(returned{nil, func(m *model) { m.switchTo(Session{ID: "sess_2", Workspace: "/w"}) }})
		x.settle()
		x.keys(esc)
		if got := x.m.input.Value(); got != "" || !strings.Contains(x.m.note, first) || o.take() != "" {
			t.Errorf("the input of another session has %q below %q, want nothing, and a word about %s", got, x.m.note, first)
		}
		x.p.Send(returned{nil, func(m *model) { m.switchTo(Session{ID: first, Workspace: "/w"}) }})
		x.settle()
		if got := x.m.input.Value(); got != "a secret @mute:x" {
			t.Errorf("back in its session, the input has %q, want the message", got)
		}
	})
}

// While a command runs, messages are sent as ever.
func TestSayBesideACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, o := mentioning(t)
		x.m.errand = &errand{what: "running make", cancel: func() {}}
		x.keys("go on", enter)
		if got := o.take(); got != `queue [{"text":"go on","type":"text"}]` {
			t.Errorf("sent %s, want the message", got)
		}
		x.m.errand = nil
	})
}
