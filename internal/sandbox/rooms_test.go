package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is a sandbox's proxy, and its way to a service of this machine, in a room.
type crowd struct {
	room           *room
	proxy, service string // addresses
	told           []string
}

// newCrowd serves in rooms. The service answers each connection with a word.
func newCrowd(t *testing.T, of *rooms) *crowd {
	t.Helper()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	service := listen()
	go func() {
		for {
			c, err := service.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "here")
			_ = c.Close()
		}
	}()
	c := &crowd{}
	c.room = &room{of: of, full: func(why string) { c.told = append(c.told, why) }}
	to := service.Addr().(*net.TCPAddr).AddrPort() //nolint:forcetypeassert // of TCP
	p := newProxy(Net{Mode: Hosts, Allow: []string{to.String()}})
	in := func() (net.Listener, string) {
		l, err := c.room.listener(listen())
		if err != nil {
			t.Fatal(err)
		}
		return l, l.Addr().String()
	}
	var l1, l2 net.Listener
	l1, c.proxy = in()
	l2, c.service = in()
	s, f := serveHTTP(l1, p), p.serveForward(l2, forward{at: to, to: []netip.AddrPort{to}})
	t.Cleanup(func() {
		s.close()
		f.close()
		_ = service.Close()
		of.mu.Lock()
		defer of.mu.Unlock()
		if c.room.held != 0 {
			t.Errorf("%d places are held after the end, want none", c.room.held)
		}
	})
	return c
}

// ask sends a request to the proxy on a connection, and reads its answer.
func (c *crowd) ask(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
}

func connected(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A sandbox that fills its room, in whichever way, waits by itself: the connections of
// others come through, and its own do when it closes one.
func TestRoomIsOfOneSandbox(t *testing.T) {
	for _, c := range []struct {
		name string
		hold func(t *testing.T, c *crowd) net.Conn
	}{
		{"idle between requests", func(t *testing.T, c *crowd) net.Conn {
			t.Helper()
			conn := connected(t, c.proxy)
			c.ask(t, conn)
			return conn
		}},
		{"an unfinished header", func(t *testing.T, c *crowd) net.Conn {
			t.Helper()
			conn := connected(t, c.proxy)
			if _, err := io.WriteString(conn, "G"); err != nil {
				t.Fatal(err)
			}
			return conn
		}},
		{"nothing sent", func(t *testing.T, c *crowd) net.Conn {
			t.Helper()
			return connected(t, c.proxy)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := newRooms(5 * 64)
			one, other := newCrowd(t, all), newCrowd(t, all)
			var held []net.Conn
			for range 64/4 - 2 { // its listeners have two of its quarter
				held = append(held, c.hold(t, one))
			}
			waits := connected(t, one.service)
			waitsToo := connected(t, one.proxy)
			for range 64 { // more than all have
				conn := connected(t, other.service)
				if said, err := io.ReadAll(conn); err != nil || string(said) != "here" {
					t.Fatalf("another sandbox's connection got %q, %v; want the service's word", said, err)
				}
				_ = conn.Close()
			}
			all.mu.Lock()
			if one.room.held != 64/4 {
				t.Errorf("the sandbox has %d places, want %d", one.room.held, 64/4)
			}
			all.mu.Unlock()
			_ = held[0].Close()
			_ = held[1].Close()
			if said, err := io.ReadAll(waits); err != nil || string(said) != "here" {
				t.Errorf("the connection that waited got %q, %v; want the service's word", said, err)
			}
			one.ask(t, waitsToo)
			all.mu.Lock()
			defer all.mu.Unlock()
			if len(one.told) != 1 || len(other.told) != 0 {
				t.Errorf("told %q and %q, want once that connections wait", one.told, other.told)
			}
		})
	}
}

// Connections without a tunnel end by themselves.
func TestIdleConnectionsEnd(t *testing.T) {
	for _, c := range []struct {
		name, send string
		want       time.Duration
	}{
		{"nothing sent", "", headerWithin},
		{"an unfinished header", "GET / HTTP/1.1\r\nHost:", headerWithin},
		{"idle after a request", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", idleRequests},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				s := serveHTTP(&oneConn{conn: theirs, in: theirs, gone: make(chan struct{})}, newProxy(Net{Mode: Hosts}))
				defer s.close()
				began := time.Now()
				if _, err := io.WriteString(ours, c.send); err != nil {
					t.Fatal(err)
				}
				if said, err := io.ReadAll(ours); err != nil {
					t.Errorf("read %q, %v; want an end", said, err)
				}
				if got := time.Since(began); got != c.want {
					t.Errorf("it ended after %v, want %v", got, c.want)
				}
				_ = ours.Close()
			})
		})
	}
}

// The limit of open files bounds the connections of all sandboxes, and of one.
func TestRooms(t *testing.T) {
	for _, c := range []struct {
		files    uint64
		one, all int
	}{{64, 16, 48}, {1024, 51, 153}, {4096, 204, 615}, {1 << 20, maxRoom, 49152}} {
		t.Run(fmt.Sprint(c.files), func(t *testing.T) {
			a := newRooms(c.files)
			count := func(r *room) (n int) {
				for range maxRoom {
					a.mu.Lock()
					ok := r.held < maxRoom && a.shares.Take(r, false)
					a.mu.Unlock()
					if !ok {
						break
					}
					n++
				}
				return n
			}
			total := count(&room{of: a})
			if total != c.one {
				t.Errorf("a sandbox has %d places, want %d", total, c.one)
			}
			for n := total; n > 0; total += n {
				n = count(&room{of: a})
			}
			if total != c.all {
				t.Errorf("all have %d places, want %d", total, c.all)
			}
		})
	}
}
