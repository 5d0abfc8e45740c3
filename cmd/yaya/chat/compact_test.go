package chat

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/colorprofile"
)

// summarizing is an API whose summaries take a minute, unless the client goes away.
type summarizing struct {
	mu     sync.Mutex
	sent   []string
	left   bool   // a client has gone away
	status int    // of the response to a request for a summary
	body   string // of the same
}

func (s *summarizing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.sent = append(s.sent, r.Method+" "+r.URL.Path+" "+string(body))
	s.mu.Unlock()
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}
	if !strings.HasSuffix(r.URL.Path, "/compact") {
		return resp, nil
	}
	select {
	case <-time.After(time.Minute): // longer than other calls may take
		resp.StatusCode, resp.Body = s.status, io.NopCloser(strings.NewReader(s.body))
		return resp, nil
	case <-r.Context().Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = true
		return nil, r.Context().Err()
	}
}

// MIS-2: /compact has the conversation summarized and tells the gain, or why there is none. The status
// line shows it, messages are queued meanwhile, and Esc stops it.
func TestCompact(t *testing.T) {
	for name, c := range map[string]struct {
		line, sent string
		status     int
		body       string
		esc        bool
		says       string // on the screen at the end
	}{
		"with what to keep": {"/compact the  port, please", `{"keep":"the  port, please"}`, 200, `{"tokens_before":9000,"tokens_after":700}`, false, "the history has about 700 tokens now; before, it had 9000"},
		"without":           {"/compact", `{"keep":""}`, 200, `{"tokens_before":9000,"tokens_after":700}`, false, "the history has about 700 tokens now"},
		"refused":           {"/compact", `{"keep":""}`, 409, `{"error":{"code":"nothing_to_compact","message":"too short"}}`, false, "too short"},
		"stopped":           {"/compact", `{"keep":""}`, 200, `{}`, true, "stopped; the history is as it was"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &summarizing{status: c.status, body: c.body}
				x := start(t, 80, 24, colorprofile.ASCII, func(x *terminal) {
					x.m.api = &Client{HTTP: &http.Client{Transport: s}, Base: "http://yaya"}
				})
				x.keys(c.line, enter)
				if got := x.text(); !strings.Contains(got, "summarizing the conversation  Esc stops") {
					t.Errorf("while it is summarized the screen is\n%s", got)
				}
				x.keys("/compact", enter)
				if !strings.Contains(x.m.note, "summarizing the conversation: wait for its end") {
					t.Errorf("a second /compact says %q, want a refusal", x.m.note)
				}
				x.keys("hello", enter)
				if c.esc {
					x.keys(esc)
				}
				time.Sleep(2 * time.Minute)
				x.settle()
				if got := x.text(); !strings.Contains(got, c.says) || x.m.errand != nil {
					t.Errorf("at the end the screen is\n%s\nwant %q", got, c.says)
				}
				var queued struct{ Delivery string }
				if len(s.sent) != 2 || s.sent[0] != "POST /v1/sessions/sess_1/compact "+c.sent || json.Unmarshal([]byte(s.sent[1][strings.Index(s.sent[1], "{"):]), &queued) != nil || queued.Delivery != "queue" {
					t.Errorf("sent %q, want the request with %s, and the message into the queue", s.sent, c.sent)
				}
				if s.left != c.esc {
					t.Errorf("the request ended early: %v, want %v", s.left, c.esc)
				}
			})
		})
	}
}
