package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Server is a language server.
type Server struct {
	root string
	w    io.Writer
	out  sync.Mutex // held while a message is written

	replies chan message // to requests of the server, which wait to be written

	checking chan struct{} // has room for the one call of Check
	versions int           // of files; used by Check
	pulls    bool          // it answers textDocument/diagnostic
	utf8     bool          // its columns are bytes

	done chan struct{}  // closed when nothing more can be read
	work sync.WaitGroup // reading, and answering requests

	mu      sync.Mutex
	end     error // why nothing more can be read
	last    int64
	waiting map[int64]chan message
	open    map[string]File // of which the server has a copy, by URI
	found   map[string]*findings
	busy    map[string]bool // tokens of work that has begun
	change  chan struct{}   // closed at the next change of found or busy
}

// findings are those of a file as the server has told them last.
type findings struct {
	version *int // of the file, if it says so
	list    diagnostics
}

// New returns the server of a folder, which is an absolute path without links, over the server's
// output and input. It reads from r until that ends.
func New(root string, r io.Reader, w io.Writer) *Server {
	s := &Server{
		root: root, w: w, replies: make(chan message, maxReplies), checking: make(chan struct{}, 1), done: make(chan struct{}),
		waiting: map[int64]chan message{}, open: map[string]File{}, found: map[string]*findings{}, busy: map[string]bool{}, change: make(chan struct{}),
	}
	s.work.Go(func() {
		defer close(s.done)
		err := s.read(bufio.NewReaderSize(r, 64<<10))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.end == nil {
			s.end = err
		}
	})
	s.work.Go(s.reply)
	return s
}

// Initialize introduces us to the server, once, before all else. options are the server's own, or nil.
func (s *Server) Initialize(ctx context.Context, options any) error {
	folder := map[string]any{"uri": uri(s.root), "name": filepath.Base(s.root)}
	var answer struct {
		Capabilities struct {
			Encoding   string          `json:"positionEncoding"`
			Diagnostic json.RawMessage `json:"diagnosticProvider"`
		} `json:"capabilities"`
	}
	err := s.ask(ctx, "initialize", map[string]any{
		"processId": nil, // a server in a sandbox would not find ours, and end
		"rootPath":  s.root, "rootUri": folder["uri"], "workspaceFolders": []any{folder},
		"clientInfo": map[string]any{"name": "yaya"}, "initializationOptions": options,
		"capabilities": map[string]any{
			"general": map[string]any{"positionEncodings": []string{"utf-8", "utf-16"}},
			"window":  map[string]any{"workDoneProgress": true},
			"workspace": map[string]any{
				"configuration": true, "workspaceFolders": true,
			},
			"textDocument": map[string]any{
				"synchronization":    map[string]any{"didSave": true},
				"publishDiagnostics": map[string]any{"versionSupport": true},
				"diagnostic":         map[string]any{},
			},
		},
	}, &answer)
	if err != nil {
		return err
	}
	s.utf8 = answer.Capabilities.Encoding == "utf-8"
	s.pulls = len(answer.Capabilities.Diagnostic) > 0 && string(answer.Capabilities.Diagnostic) != "null"
	return s.tell("initialized", map[string]any{})
}

// Done is closed when nothing more can be read from the server.
func (s *Server) Done() <-chan struct{} { return s.done }

// Wait waits until nothing is read or written. Call it once the process has ended.
func (s *Server) Wait() { s.work.Wait() }

// Close asks the server to end. Its caller ends the process, and calls [Server.Wait].
func (s *Server) Close(ctx context.Context) error {
	if err := s.ask(ctx, "shutdown", nil, nil); err != nil {
		return err
	}
	return s.tell("exit", nil)
}

// tell sends a notification.
func (s *Server) tell(method string, params any) error {
	raw, err := parameters(params)
	if err != nil {
		return err
	}
	return s.write(message{Method: method, Params: raw})
}

func parameters(params any) (json.RawMessage, error) {
	if params == nil {
		return nil, nil
	}
	return json.Marshal(params)
}

// ask sends a request, and decodes its result into out, unless that is nil.
func (s *Server) ask(ctx context.Context, method string, params, out any) error {
	raw, err := parameters(params)
	if err != nil {
		return err
	}
	got := make(chan message, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.waiting[id] = got
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, id)
	}()
	if err := s.write(message{ID: strconv.AppendInt(nil, id, 10), Method: method, Params: raw}); err != nil {
		return err
	}
	select {
	case m := <-got:
		if m.Error != nil {
			return m.Error
		}
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(m.Result, out); err != nil {
			return fmt.Errorf("the language server's result of %s: %w", method, err)
		}
		return nil
	case <-s.done:
		return s.ended()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ended returns why nothing more can be read.
func (s *Server) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil || errors.Is(s.end, io.EOF) {
		return errors.New("the language server has ended")
	}
	return s.end
}

// read takes messages until the server ends, or writes one that cannot be read.
func (s *Server) read(r *bufio.Reader) error {
	for {
		m, err := readMessage(r)
		if err != nil {
			return err
		}
		switch {
		case m.Method == "":
			s.answered(m)
		case len(m.ID) > 0:
			if err := s.answer(m); err != nil {
				return err
			}
		default:
			s.heard(m)
		}
	}
}

func (s *Server) answered(m message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return // nobody waits for it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.waiting[id]; got != nil {
		delete(s.waiting, id)
		got <- m
	}
}

// answer answers a request. Some servers wait for it before they go on.
func (s *Server) answer(m message) error {
	if len(m.ID) > maxToken {
		return fmt.Errorf("the language server sent a request whose id has more than %d bytes", maxToken)
	}
	reply := message{ID: m.ID, Result: json.RawMessage("null")}
	switch m.Method {
	case "workspace/configuration":
		var p struct {
			Items count `json:"items"`
		}
		if json.Unmarshal(m.Params, &p) != nil {
			break
		}
		if p.Items > maxItems {
			reply.Result, reply.Error = nil, &failure{-32602, fmt.Sprintf("more than %d items", maxItems)}
			break
		}
		all, err := json.Marshal(make([]any, p.Items))
		if err != nil {
			return err
		}
		reply.Result = all
	case "workspace/workspaceFolders", "window/workDoneProgress/create", "window/showMessageRequest", "client/registerCapability", "client/unregisterCapability", "workspace/diagnostic/refresh":
	case "workspace/applyEdit":
		reply.Result = json.RawMessage(`{"applied":false,"failureReason":"yaya lets a language server change nothing"}`)
	default:
		reply.Result, reply.Error = nil, &failure{-32601, "yaya does not know the method " + cut.Text(m.Method, maxToken)}
	}
	select {
	case s.replies <- reply:
		return nil
	default:
		return fmt.Errorf("the language server does not read its input: %d answers to its requests wait", maxReplies)
	}
}

// reply writes the answers to requests, so that reading goes on while the server does not read.
func (s *Server) reply() {
	for {
		select {
		case m := <-s.replies:
			if err := s.write(m); err != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.end == nil {
					s.end = err
				}
				return
			}
		case <-s.done:
			return
		}
	}
}

// count is the number of elements of a list, of which no more than one beyond maxItems are counted.
type count int

// UnmarshalJSON implements [json.Unmarshaler]: it keeps nothing of the elements.
func (n *count) UnmarshalJSON(data []byte) error {
	*n = 0
	return elements(data, func(dec *json.Decoder) (bool, error) {
		var element json.RawMessage
		*n++
		return *n <= maxItems, dec.Decode(&element)
	})
}

// heard takes a notification.
func (s *Server) heard(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Method {
	case "textDocument/publishDiagnostics":
		var p struct {
			URI     string      `json:"uri"`
			Version *int        `json:"version"`
			List    diagnostics `json:"diagnostics"`
		}
		if json.Unmarshal(m.Params, &p) != nil || len(p.URI) > maxURI {
			return // it says nothing that can be used
		}
		at := same(p.URI)
		if _, ours := s.within(at); !ours {
			return
		}
		if _, known := s.found[at]; !known && len(s.found) >= maxFiles {
			return
		}
		if n := s.room(at); n < len(p.List) {
			p.List = append(diagnostics(nil), p.List[:n]...) // a part of a slice keeps all of it in memory
		}
		s.found[at] = &findings{p.Version, p.List}
	case "$/progress":
		var p struct {
			Token json.RawMessage `json:"token"`
			Value struct {
				Kind string `json:"kind"`
			} `json:"value"`
		}
		if json.Unmarshal(m.Params, &p) != nil || len(p.Token) > maxToken {
			return
		}
		switch token := string(p.Token); {
		case p.Value.Kind == "end":
			delete(s.busy, token)
		case p.Value.Kind == "begin" && len(s.busy) < maxFiles:
			s.busy[token] = true
		}
	default:
		return
	}
	close(s.change)
	s.change = make(chan struct{})
}

// same returns a URI as [uri] writes it: servers escape other characters.
func same(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "file" {
		return at
	}
	return uri(u.Path)
}

// uri returns the URI of an absolute path.
func uri(p string) string {
	p = filepath.ToSlash(p)
	if len(p) > 0 && p[0] != '/' { // a drive
		p = "/" + p
	}
	return (&url.URL{Scheme: "file", Path: p}).String()
}

// room is how many findings of a file are kept: of one that the server has a copy of, all, and of another one as
// many as all of these may have together. mu is held.
func (s *Server) room(at string) int {
	if _, open := s.open[at]; open {
		return maxFindings
	}
	n := maxOthers
	for other, f := range s.found {
		if _, open := s.open[other]; !open && other != at {
			n -= len(f.list)
		}
	}
	return max(0, n)
}
