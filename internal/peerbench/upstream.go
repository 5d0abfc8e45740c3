//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Revisions of the protocol.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// maxMessage bounds one message of either side.
const maxMessage = 8 << 20

// upstream is the server that every gateway stands before. It writes its answers
// by hand, so that they have everything the protocol allows, numbers included,
// and none of it has been through an SDK.
type upstream struct {
	modern bool   // it also speaks the modern era, over HTTP
	crash  func() // what the tool "crash" does

	mu       sync.Mutex
	added    int // tools that came later
	sessions map[string]*session
	http     map[string]*httpSession
	// waiting and ended count the calls of "wait".
	waiting, ended atomic.Int64
	ids            atomic.Int64
}

func newUpstream() *upstream {
	return &upstream{sessions: map[string]*session{}, http: map[string]*httpSession{}, crash: func() { os.Exit(3) }}
}

// session is one client of the upstream.
type session struct {
	up *upstream
	// tell sends what belongs to no request.
	tell func(msg []byte)

	mu      sync.Mutex
	asked   map[string]chan []byte             // questions to the client, by id
	running map[string]context.CancelCauseFunc // calls, by id
}

func (u *upstream) newSession(tell func([]byte)) *session {
	s := &session{up: u, tell: tell, asked: map[string]chan []byte{}, running: map[string]context.CancelCauseFunc{}}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sessions[fmt.Sprint(u.ids.Add(1))] = s
	return s
}

// errCancelled is why a call ends that the client has cancelled.
var errCancelled = errors.New("the client cancelled it")

// arrived handles a notification or a response.
func (s *session) arrived(m *jsonrpc.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Method == "notifications/cancelled":
		if end := s.running[string(m.Params.Get("requestId"))]; end != nil {
			end(errCancelled)
		}
	case m.IsResponse():
		id := string(m.ID)
		if c := s.asked[id]; c != nil {
			delete(s.asked, id)
			if m.Err != nil {
				c <- bytes.Clone(m.Err)
			} else {
				c <- bytes.Clone(m.Result.Raw())
			}
		}
	}
}

// slow reports whether a request notifies, asks or waits before its answer.
func slow(m *jsonrpc.Message) bool {
	if m.Method != "tools/call" {
		return false
	}
	name, _ := m.Params.String("name")
	switch name {
	case "progress", "wait", "log", "elicit", "sample", "change":
		return true
	}
	return false
}

// answer appends the answer of a request to dst. send sends what belongs to it.
func (s *session) answer(ctx context.Context, dst []byte, m *jsonrpc.Message, send func([]byte)) []byte {
	if slow(m) {
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		id := string(m.ID)
		s.mu.Lock()
		s.running[id] = end
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.running, id)
			s.mu.Unlock()
			end(nil)
		}()
	}
	result, err := s.result(ctx, m, send)
	if err != nil {
		return jsonrpc.AppendError(dst, m.ID, err)
	}
	return jsonrpc.AppendResult(dst, m.ID, result)
}

func (s *session) result(ctx context.Context, m *jsonrpc.Message, send func([]byte)) ([]byte, *jsonrpc.Error) {
	switch m.Method {
	case "tools/call":
		return s.call(ctx, m, send)
	case "initialize":
		version, _ := m.Params.String("protocolVersion")
		if !slices.Contains([]string{"2024-11-05", "2025-03-26", "2025-06-18"}, version) {
			version = legacy
		}
		return []byte(`{"protocolVersion":"` + version + `","capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true},"prompts":{"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"upstream","version":"1"}}`), nil
	case "ping", "logging/setLevel":
		return []byte(`{}`), nil
	case "tools/list":
		cursor, _ := m.Params.String("cursor")
		return s.up.page(cursor), nil
	case "resources/list":
		return []byte(`{"resources":[{"uri":"` + resourceURI + `","name":"text","mimeType":"text/plain"}]}`), nil
	case "resources/templates/list":
		return []byte(`{"resourceTemplates":[{"uriTemplate":"bench://item/{id}","name":"item"}]}`), nil
	case "resources/read":
		uri, _ := m.Params.String("uri")
		return fmt.Appendf(nil, `{"contents":[{"uri":%q,"mimeType":"text/plain","text":%q}]}`, uri, "content of "+uri), nil
	case "prompts/list":
		return []byte(`{"prompts":[{"name":"greet","description":"Greets","arguments":[{"name":"name","required":true}]}]}`), nil
	case "prompts/get":
		args, err := jsonrpc.ParseObject(m.Params.Get("arguments"))
		if err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no arguments"}
		}
		name, _ := args.String("name")
		return fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":%q}}]}`, "Hello "+name), nil
	case "completion/complete":
		return []byte(`{"completion":{"values":["Ada","Adele"],"total":2,"hasMore":false}}`), nil
	case "server/discover":
		if s.up.modern {
			return []byte(`{"resultType":"complete","supportedVersions":["` + modern + `","` + legacy + `"],"capabilities":{"tools":{}},"serverInfo":{"name":"upstream","version":"1"},"ttlMs":0,"cacheScope":"private"}`), nil
		}
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "unknown method " + m.Method}
}

const resourceURI = "bench://text"

// ask puts a question to the client and returns the raw result, or error.
func (s *session) ask(ctx context.Context, send func([]byte), method, params string) []byte {
	id := fmt.Sprintf(`"ask-%d"`, s.up.ids.Add(1))
	c := make(chan []byte, 1)
	s.mu.Lock()
	s.asked[id] = c
	s.mu.Unlock()
	send(jsonrpc.AppendRequest(nil, []byte(id), method, []byte(params)))
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	select {
	case r := <-c:
		return r
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, id)
		return []byte(`"the client did not answer"`)
	}
}

// serveStdio serves until the input ends.
func (u *upstream) serveStdio(input io.Reader, output io.Writer) error {
	in := bufio.NewReaderSize(input, 1<<20)
	out := bufio.NewWriterSize(output, 1<<20)
	var mu sync.Mutex // of out
	write := func(msg []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = out.Write(append(msg, '\n'))
		_ = out.Flush()
	}
	s := u.newSession(write)
	ctx, cancel := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	var buf []byte
	for {
		// One write answers everything that has arrived.
		if in.Buffered() == 0 {
			mu.Lock()
			err := out.Flush()
			mu.Unlock()
			if err != nil {
				return err
			}
		}
		line, err := readLine(in)
		if err != nil || len(line) > maxMessage {
			return nil //nolint:nilerr // the end of the input is the end
		}
		var m jsonrpc.Message
		if m.Parse(line) != nil {
			continue
		}
		if !m.IsRequest() {
			s.arrived(&m)
			continue
		}
		if slow(&m) {
			calls.Go(func() {
				var m jsonrpc.Message
				if m.Parse(line) == nil {
					write(s.answer(ctx, nil, &m, write))
				}
			})
			continue
		}
		buf = s.answer(ctx, buf[:0], &m, write)
		mu.Lock()
		_, err = out.Write(append(buf, '\n'))
		mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// readLine reads a line of its own memory, and no more than a message may have.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if err != bufio.ErrBufferFull || len(line) > maxMessage { //nolint:errorlint // bufio returns it as it is
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

// runUpstream is the program of an upstream: "stdio", or the address to serve at.
func runUpstream(where string) error {
	u := newUpstream()
	if where == "stdio" {
		return u.serveStdio(os.Stdin, os.Stdout)
	}
	if !strings.HasPrefix(where, "127.0.0.1:") {
		return fmt.Errorf("the upstream serves loopback only, not %s", where)
	}
	return u.serveHTTP(where)
}
