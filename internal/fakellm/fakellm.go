// Package fakellm is a service with OpenAI's chat completions API for tests: it
// streams, calls tools, counts, and fails as it is told. It listens on loopback
// only.
package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Step is one answer.
type Step struct {
	Text      string
	Pieces    []string // of text, each a delta, after Text
	ToolCalls []Call
	// Status is an error instead; with RetryAfter as header, and Body or OpenAI's
	// shape with Text as body.
	Status     int
	RetryAfter string
	Body       string
	// Raw is written as it is, as the stream.
	Raw string
	// Cut ends the connection in the middle. Open keeps it open after Raw, until the client closes it.
	Cut   bool
	Open  bool
	Delay time.Duration // before each chunk
	Sent  func()        // is called before the first chunk is sent
}

// Call is a tool call; its arguments are streamed in two pieces.
type Call struct{ Name, Args string }

// Request is a client's request.
type Request struct {
	Authorization string
	Path          string
	Body          map[string]any
	Header        http.Header
	raw           []byte
}

// prompt returns what the model reads, in the order in which services keep it: tools, then
// messages, as the client wrote them.
func (r Request) prompt() []byte {
	var b struct {
		Tools    json.RawMessage `json:"tools"`
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(r.raw, &b) != nil {
		return nil
	}
	return append(b.Tools, bytes.TrimSuffix(b.Messages, []byte("]"))...)
}

// Prefix returns how many bytes of the prompts, after the first, are the beginning that they
// share with the prompt before them, and how many there are: what a service would find in its
// cache.
func Prefix(requests []Request) (shared, all int) {
	for i := 1; i < len(requests); i++ {
		was, is := requests[i-1].prompt(), requests[i].prompt()
		n := 0
		for n < len(was) && n < len(is) && was[n] == is[n] {
			n++
		}
		shared, all = shared+n, all+len(is)
	}
	return shared, all
}

// Server answers with its steps one after the other, and then repeats the last.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	steps   []Step
	answer  func(Prompt) Step // instead of steps
	cache   *cache
	next    int
	refused int
	got     []Request
}

// New starts a server; the caller closes it.
func New(steps ...Step) *Server {
	s := &Server{steps: steps}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Requests returns what clients have sent so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.got...)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20)) //nolint:forbidigo // bounded
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req := Request{r.Header.Get("Authorization"), r.URL.Path, body, r.Header.Clone(), raw}
	usage := `{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":40}}`
	s.mu.Lock()
	var st Step
	if s.answer != nil {
		p := s.cache.read(req)
		st, usage = s.answer(p), p.usage()
	} else {
		st = s.steps[min(s.next, len(s.steps)-1)]
		s.got = append(s.got, req)
	}
	s.next++
	s.mu.Unlock()
	if st.Status != 0 {
		if st.RetryAfter != "" {
			w.Header().Set("Retry-After", st.RetryAfter)
		}
		if st.Body == "" {
			st.Body = fmt.Sprintf(`{"error":{"message":%s,"type":"x"}}`, quoted(st.Text))
		}
		w.WriteHeader(st.Status)
		_, _ = w.Write([]byte(st.Body))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(line string) {
		if st.Delay > 0 {
			select {
			case <-time.After(st.Delay):
			case <-r.Context().Done():
				return
			}
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", line)
		w.(http.Flusher).Flush()
	}
	if st.Sent != nil {
		st.Sent()
	}
	if st.Raw != "" {
		_, _ = w.Write([]byte(st.Raw))
		if st.Cut {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		if st.Open {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		return
	}
	for _, word := range append(strings.SplitAfter(st.Text, " "), st.Pieces...) {
		send(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%s}}]}`, quoted(word)))
	}
	if st.Cut {
		panic(http.ErrAbortHandler)
	}
	for i, c := range st.ToolCalls {
		half := len(c.Args) / 2
		send(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"call_%d_%d","type":"function","function":{"name":%q,"arguments":%s}}]}}]}`, i, s.count(), i, c.Name, quoted(c.Args[:half])))
		send(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}}]}`, i, quoted(c.Args[half:])))
	}
	reason := "stop"
	if len(st.ToolCalls) > 0 {
		reason = "tool_calls"
	}
	send(fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason))
	send(`{"choices":[],"usage":` + usage + `}`)
	send("[DONE]")
}

func (s *Server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// quoted returns a text as a string of JSON.
func quoted(text string) []byte {
	raw, err := json.Marshal(text)
	if err != nil { // a string can always be written
		panic(err)
	}
	return raw
}
