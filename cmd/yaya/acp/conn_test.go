package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with the method, waits for the end of the request in "wait", and notes notifications.
type echo struct{ told chan string }

func (e *echo) request(method string, params []byte) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		if method == "wait" {
			e.told <- "waits"
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return method + string(params), nil
	}
}

func (e *echo) notification(method string, _ []byte) { e.told <- method }

func (e *echo) answered(any) {}

// connected returns a connection, what writes to it, and what reads the lines that it writes.
func connected(t *testing.T) (*conn, *echo, io.WriteCloser, func() string) {
	t.Helper()
	h := &echo{make(chan string, 4)}
	toConn, ours := io.Pipe()
	theirs, fromConn := io.Pipe()
	c := newConn(fromConn, h)
	ended := make(chan error, 1)
	go func() {
		err := c.serve(t.Context(), toConn)
		_ = toConn.Close()
		_ = fromConn.Close()
		ended <- err
	}()
	lines := bufio.NewReader(theirs)
	t.Cleanup(func() {
		_ = ours.Close()
		if _, err := io.Copy(io.Discard, lines); err != nil { // with the answers to the cancelled requests
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve = %v, want no error at the end of the input", err)
		}
	})
	return c, h, ours, func() string {
		t.Helper()
		l, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(l, "\n")
	}
}

// Malformed lines are answered where somebody waits, and the connection goes on.
func TestConn(t *testing.T) {
	t.Parallel()
	c, h, in, line := connected(t)
	for _, tc := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}`, `{"jsonrpc":"2.0","id":1,"result":"m{\"a\":1}"}`},
		{`{"jsonrpc":"2.0","id":"x","method":"m"}`, `{"jsonrpc":"2.0","id":"x","result":"m"}`},
		{"\n\r\n" + `{"jsonrpc":"2.0","id":2,"method":"m"}`, `{"jsonrpc":"2.0","id":2,"result":"m"}`},
		{`{"jsonrpc":"2.0","id":3,"method":"m"`, `"error":{"code":-32700`},
		{`[{"jsonrpc":"2.0","id":4,"method":"m"}]`, `"error":{"code":-32700`},
		{`not JSON`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{`{"jsonrpc":"2.0","id":77,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":5,"method":"m"}`, `{"jsonrpc":"2.0","id":5,"result":"m"}`}, // an answer to nothing
	} {
		if _, err := io.WriteString(in, tc.in+"\n"); err != nil {
			t.Fatal(err)
		}
		if got := line(); !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %s, want %s", tc.in, got, tc.want)
		}
	}
	// A request that the editor withdraws is cancelled, and answered.
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":6,"method":"wait"}`+"\n")
	<-h.told
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":6}}`+"\n")
	if got := line(); !strings.Contains(got, `"id":6,"error":{"code":-32800`) {
		t.Errorf("got %s, want the error of a cancelled request", got)
	}
	// A question to the editor: its answer, its refusal, and one that is withdrawn.
	type answer struct {
		err error
		got struct{ A int }
	}
	ask := func(ctx context.Context) chan answer {
		done := make(chan answer, 1)
		go func() {
			var a answer
			a.err = c.call(ctx, "q", struct{}{}, &a.got)
			done <- a
		}()
		return done
	}
	var q struct{ ID json.RawMessage }
	asked := func() {
		if err := json.Unmarshal([]byte(line()), &q); err != nil {
			t.Fatal(err)
		}
	}
	done := ask(t.Context())
	asked()
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":`+string(q.ID)+`,"result":{"a":7}}`+"\n")
	if a := <-done; a.err != nil || a.got.A != 7 {
		t.Errorf("got %v, %v, want 7", a.got, a.err)
	}
	done = ask(t.Context())
	asked()
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":`+string(q.ID)+`,"error":{"code":-1,"message":"no"}}`+"\n")
	if a := <-done; a.err == nil || !strings.Contains(a.err.Error(), "no") {
		t.Errorf("got %v, want the refusal", a.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done = ask(ctx)
	asked()
	cancel()
	if got := line(); !strings.Contains(got, `"method":"$/cancel_request","params":{"requestId":`+string(q.ID)) {
		t.Errorf("got %s, want that the question is withdrawn", got)
	}
	if a := <-done; !errors.Is(a.err, context.Canceled) {
		t.Errorf("got %v, want that it was withdrawn", a.err)
	}
}

// More requests than are worked on at once are refused, and a line without an end ends the connection.
func TestConnBounds(t *testing.T) {
	t.Parallel()
	_, h, in, line := connected(t)
	for range maxAtOnce {
		_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"wait"}`+"\n")
		<-h.told
	}
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"m"}`+"\n")
	if got := line(); !strings.Contains(got, `"id":2,"error":`) || !strings.Contains(got, "being worked on") {
		t.Errorf("got %s, want a refusal", got)
	}
	c := newConn(io.Discard, h)
	if err := c.serve(t.Context(), strings.NewReader(strings.Repeat(" ", maxLine+1))); err == nil || !strings.Contains(err.Error(), "32 MiB") {
		t.Errorf("got %v, want that the line is too long", err)
	}
}
