package main

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
)

// A yaya that is there and does not say where it listens is not taken for none.
func TestDaemonThatDoesNotAnswer(t *testing.T) {
	dir, err := os.MkdirTemp("", "yy") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := daemon.Paths{Data: dir}
	if got, _, _, err := daemon.RunningOwn(t.Context(), p); err != nil || got != nil {
		t.Errorf("without a yaya: %q, %v, want nothing", got, err)
	}
	l, err := net.Listen("unix", p.Socket())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	if _, _, _, err := daemon.RunningOwn(t.Context(), p); err == nil || !strings.Contains(err.Error(), "the running yaya does not report") {
		t.Errorf("got %v, want that it does not answer", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close of the socket = %v, want no error", err)
	}
	<-ended
}
