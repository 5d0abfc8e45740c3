package downstream_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// A call that a stop or a restart cuts off has an answer: that yaya stops, and that the call may
// have taken effect. Over HTTP and over standard streams.
func TestCutOffCalls(t *testing.T) {
	const want = `"id":"c1","error":{"code":-32603,"message":"yaya stops or restarts, and cut the call off before it ended; the call may or may not have taken effect, so look before you repeat it"}`
	const call = `{"jsonrpc":"2.0","id":"c1","method":"tools/call","params":{"name":"srv__hang"}}`
	begun := make(chan struct{}, 1)
	hang := relay("srv__hang", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	t.Run("HTTP", func(t *testing.T) {
		r := newRig(t, hang)
		s := r.session()
		done := make(chan answer, 1)
		go func() { done <- r.send("POST", call, s) }()
		<-begun
		r.srv.Close()
		if a := <-done; a.status != 200 || !strings.Contains(a.body, want) {
			t.Errorf("got %d %s, want %s", a.status, a.body, want)
		}
	})
	t.Run("late", func(t *testing.T) { // a client must not take a stop for the end of its session
		r := newRig(t, hang)
		s := r.session()
		r.srv.Close()
		if a := r.send("POST", call, s); a.status != 503 || !strings.Contains(a.body, "shutting down") {
			t.Errorf("got %d %s, want 503 that says that yaya is shutting down", a.status, a.body)
		}
		if a := r.send("DELETE", "", s); a.status != 503 {
			t.Errorf("got %d %s, want 503", a.status, a.body)
		}
	})
	t.Run("standard streams", func(t *testing.T) {
		r := newRig(t, hang)
		ctx, stop := context.WithCancel(t.Context())
		in, send := io.Pipe()
		var out bytes.Buffer
		done := make(chan error, 1)
		go func() { done <- r.srv.ServeStdio(ctx, tool.LocalOwner, in, &out, "") }()
		if _, err := io.WriteString(send, initialize+"\n"+call+"\n"); err != nil {
			t.Fatal(err)
		}
		<-begun
		stop()
		if err := <-done; err != nil {
			t.Errorf("ServeStdio = %v, want no error", err)
		}
		if err := send.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %s", &out, want)
		}
	})
}
