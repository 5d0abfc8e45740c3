package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of what a server sends.
const (
	maxMessage = 4 << 20 // bytes
	maxHeaders = 20
	maxURI     = 8 << 10 // bytes
	maxToken   = 128     // bytes of the id of a request or of work
	maxItems   = 100     // of settings that one request asks for
	maxReplies = 1000    // that wait until the server reads them
)

// message is one of JSON-RPC 2.0.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *failure        `json:"error,omitempty"`
}

type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (f *failure) Error() string {
	return fmt.Sprintf("the language server answered %.300q (code %d)", f.Message, f.Code)
}

// readMessage reads one message with its header (base protocol). io.EOF is the end between two.
func readMessage(r *bufio.Reader) (m message, err error) {
	size, err := readHeader(r)
	if err != nil {
		return m, err
	}
	var data bytes.Buffer // takes memory as the message arrives, not as it is announced
	if _, err := io.CopyN(&data, r, int64(size)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // io.EOF is the end between two messages
		}
		return m, fmt.Errorf("a message ends too early: %w", err)
	}
	if err := json.Unmarshal(data.Bytes(), &m); err != nil {
		return m, fmt.Errorf("a message is not JSON-RPC: %w", err)
	}
	return m, nil
}

// readHeader returns the size of the message behind a header.
func readHeader(r *bufio.Reader) (int, error) {
	size := -1
	for n := 0; ; n++ {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && n == 0 && len(line) == 0 {
			return 0, io.EOF
		}
		if err != nil || n == maxHeaders {
			return 0, fmt.Errorf("the server does not write the headers of the protocol: %.80q", line)
		}
		name, value, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		switch {
		case name == "" && !ok && size >= 0:
			return size, nil
		case !ok:
			return 0, fmt.Errorf("the server does not write the headers of the protocol: %.80q", line)
		case strings.EqualFold(name, "Content-Length"):
			size, err = strconv.Atoi(strings.TrimSpace(value))
			if err != nil || size < 0 || size > maxMessage {
				return 0, fmt.Errorf("the server announces a message of %.20q bytes, and %d are the most", value, maxMessage)
			}
		}
	}
}

// write sends a message; one at a time.
func (s *Server) write(m message) error {
	m.Version = "2.0"
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.out.Lock()
	defer s.out.Unlock()
	_, err = fmt.Fprintf(s.w, "Content-Length: %d\r\n\r\n%s", len(data), data)
	return err
}
