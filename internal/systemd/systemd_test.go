package systemd

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// OP-73: the service manager is told in datagrams, and the watchdog has half of its time.
func TestNotifier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	env := map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}
	n, err := New(func(name string) string { return env[name] }, 7)
	if err != nil || !n.On() || n.Watchdog() != 15*time.Second {
		t.Fatalf("New() = %+v, %v; want a notifier with 15 s", n, err)
	}
	if err := n.Tell(Ready, Status("serves\nhere")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	got, err := l.Read(buf)
	if err != nil || string(buf[:got]) != "READY=1\nSTATUS=serves here" {
		t.Errorf("told %q, %v; want READY and a status in one line", buf[:got], err)
	}
	if lines := Reload("restarts"); lines[0] != Reloading || !strings.HasPrefix(lines[1], "MONOTONIC_USEC=") {
		t.Errorf("Reload() = %q, want RELOADING and its time", lines)
	}
}

// OP-73: variables of another process and those that no manager sets.
func TestNotifierOfNobody(t *testing.T) {
	for name, tt := range map[string]struct {
		env  map[string]string
		on   bool
		fail bool
	}{
		"none":                            {map[string]string{}, false, false},
		"a watchdog of another process":   {map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "8"}, true, false},
		"a socket that is none of a host": {map[string]string{"NOTIFY_SOCKET": "vsock:2:1"}, false, true},
		"a watchdog without a number":     {map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}, false, true},
	} {
		n, err := New(func(name string) string { return tt.env[name] }, 7)
		if (err != nil) != tt.fail || n.On() != tt.on || n.Watchdog() != 0 {
			t.Errorf("%s: New() = %+v, %v; want on %v, failed %v, and no watchdog", name, n, err, tt.on, tt.fail)
		}
	}
	if err := (Notifier{}).Tell(Ready); err != nil {
		t.Errorf("Tell() without a manager = %v, want nil", err)
	}
}

// listening returns a socket as a service manager passes it.
func listening(t *testing.T, name string) (Socket, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	s, err := Keep(name, l)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, s.addr(t)
}

func (s Socket) addr(t *testing.T) string {
	t.Helper()
	l, err := s.Listener()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// OP-74: a passed socket is found by its name, or as the first one; it has to be where the
// flag says, and one that nobody takes is an error.
func TestPassed(t *testing.T) {
	main, at := listening(t, "yaya.socket")
	local, elsewhere := listening(t, "local")
	p, err := Open([]Socket{main, local}, "listen", "local")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Addr("listen"); got != at {
		t.Errorf("Addr(listen) = %q, want %q", got, at)
	}
	if l, err := p.Take("local", "tcp", at); err == nil || l != nil || !strings.Contains(err.Error(), elsewhere) {
		t.Errorf("Take() at another address = %v, %v; want an error that names %s", l, err, elsewhere)
	}
	l, err := p.Take("listen", "tcp", "127.0.0.1:0")
	if err != nil || l == nil {
		t.Fatalf("Take(listen) = %v, %v; want the listener", l, err)
	}
	defer l.Close()
	if again, err := p.Take("listen", "tcp", at); again != nil || err != nil {
		t.Errorf("Take(listen) again = %v, %v; want none", again, err)
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "local") {
		t.Errorf("Close() = %v, want an error that names the socket that nobody took", err)
	}
	c, err := net.Dial("tcp", at) //nolint:noctx // test
	if err != nil {
		t.Fatalf("Dial(%s) = %v, want the socket open", at, err)
	}
	_ = c.Close()
	if l, err := (*Passed)(nil).Take("listen", "tcp", at); l != nil || err != nil {
		t.Errorf("Take() of nothing = %v, %v; want none", l, err)
	}
}

// OP-74: addresses are compared as addresses.
func TestSameAddr(t *testing.T) {
	for _, tt := range []struct {
		at, wanted string
		want       bool
	}{
		{"127.0.0.1:80", "127.0.0.1:80", true}, {"127.0.0.1:80", "127.0.0.1:0", true}, {"127.0.0.1:80", "localhost:80", true}, {"127.0.0.1:80", "localhost:81", false},
		{"[::]:80", ":80", true}, {"[::]:80", "0.0.0.0:80", true}, {"127.0.0.1:80", ":80", false}, {"127.0.0.1:80", "127.0.0.2:80", false}, {"127.0.0.1:80", "nowhere", false},
	} {
		if got := sameAddr(tt.at, tt.wanted); got != tt.want {
			t.Errorf("sameAddr(%q, %q) = %v, want %v", tt.at, tt.wanted, got, tt.want)
		}
	}
}

// OP-74: variables for another process are ignored, and no child sees them.
func TestSocketsOfAnother(t *testing.T) {
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()+1))
	t.Setenv("LISTEN_FDS", "2")
	if got, err := Sockets(); len(got) != 0 || err != nil {
		t.Errorf("Sockets() = %v, %v; want none", got, err)
	}
	if _, there := os.LookupEnv("LISTEN_FDS"); there {
		t.Error("LISTEN_FDS is still set")
	}
	t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	t.Setenv("LISTEN_FDS", "many")
	if _, err := Sockets(); err == nil {
		t.Error("Sockets() with LISTEN_FDS=many = nil, want an error")
	}
}
