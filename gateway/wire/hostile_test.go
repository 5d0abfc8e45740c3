package wire_test

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// upgrade is a WebSocket by hand: what follows the upgrade is up to the test.
func upgrade(t *testing.T, w *wiretest.World, header ...string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", w.HTTP.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	extra := ""
	for i := 0; i < len(header); i += 2 {
		extra += header[i] + ": " + header[i+1] + "\r\n"
	}
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n%s\r\n",
		w.HTTP.Listener.Addr(), base64.StdEncoding.EncodeToString(make([]byte, 16)), extra)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, r, resp
}

// closeCode reads frames to the end, and returns the code of a close frame, 0 if
// there was none, -1 if the connection stays.
func closeCode(t *testing.T, conn net.Conn, r *bufio.Reader) int {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(eventually.Limit))
	for {
		var head [2]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return -1
			}
			return 0
		}
		n := int(head[1] & 0x7f)
		switch n {
		case 126:
			var b [2]byte
			_, _ = io.ReadFull(r, b[:])
			n = int(b[0])<<8 | int(b[1])
		case 127:
			t.Fatal("a very large frame")
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return 0
		}
		if head[0]&0xf == websocket.CloseMessage && n >= 2 {
			return int(body[0])<<8 | int(body[1])
		}
	}
}

// WS-06, WS-07, WS-09: malformed frames end the connection, at once or by the
// deadline, and nothing is set aside for what they declare.
func TestBrokenFrames(t *testing.T) {
	w := wiretest.New(t)
	mask := "\x00\x00\x00\x00"
	for name, tt := range map[string]struct {
		data  string
		codes []int
	}{
		"declares 2^62":       {"\x82\xff\x40\x00\x00\x00\x00\x00\x00\x00" + mask + "x", []int{1002, 1009, 0}},
		"declares 2^63+5":     {"\x82\xff\x80\x00\x00\x00\x00\x00\x00\x05" + mask + "x", []int{1002, 1009, 0}},
		"declares the most":   {"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff" + mask + "x", []int{1002, 1009, 0}},
		"not masked":          {"\x81\x02{}", []int{1002, 0}},
		"RSV1 (compressed)":   {"\xc1\x82" + mask + "{}", []int{1002, 0}},
		"RSV2":                {"\xa1\x82" + mask + "{}", []int{1002, 0}},
		"reserved opcode":     {"\x83\x82" + mask + "{}", []int{1002, 0}},
		"long ping":           {"\x89\xfe\x00\x7e" + mask + strings.Repeat("x", 126), []int{1002, 0}},
		"fragmented ping":     {"\x09\x80" + mask, []int{1002, 0}},
		"continues nothing":   {"\x80\x82" + mask + "{}", []int{1002, 0}},
		"close with one byte": {"\x88\x81" + mask + "x", []int{1000, 1002, 0}}, // its own close is answered
	} {
		conn, r, resp := upgrade(t, w, "Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")
		if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Extensions") != "" {
			t.Fatalf("%s: got %v %v, want StatusCode 101, no Sec-WebSocket-Extensions", name, resp.Status, resp.Header)
		}
		if _, err := io.WriteString(conn, tt.data); err != nil {
			t.Fatal(err)
		}
		got, good := closeCode(t, conn, r), false
		for _, code := range tt.codes {
			good = good || got == code
		}
		if !good {
			t.Errorf("%s: closed with %d", name, got)
		}
		_ = conn.Close()
	}
}

// WS-27, R8: a token in the subprotocol is of no use, and is not sent back.
func TestTokenAsSubprotocol(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	_, r, resp := upgrade(t, w, "Sec-WebSocket-Protocol", "yaya.json, "+g.Token)
	if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != "yaya.json" {
		t.Errorf("the subprotocol is %q", got)
	}
	head := make([]byte, 40)
	if _, err := io.ReadFull(r, head); err != nil || !strings.Contains(string(head), "auth_challenge") {
		t.Errorf(`got %q, %v, want head with "auth_challenge"`, head, err)
	}
}

// WS-30: HTTP/2, and a request that does not upgrade, are refused cleanly.
func TestNoUpgrade(t *testing.T) {
	w := wiretest.New(t)
	for name, request := range map[string]string{
		"HTTP/2":      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"h2c":         "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
		"plain":       "GET /ws HTTP/1.1\r\nHost: x\r\n\r\n",
		"old version": "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
		"no key":      "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
		"POST":        "POST /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nContent-Length: 0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", w.HTTP.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request)
		_ = conn.SetReadDeadline(time.Now().Add(eventually.Limit))
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 4") && !strings.HasPrefix(line, "HTTP/1.1 5") {
			t.Errorf("%s: got %q, %v, want a status of 4xx or 5xx", name, line, err)
		}
		_ = conn.Close()
	}
	if resp, err := w.HTTP.Client().Get(w.HTTP.URL + "/ws"); err != nil || resp.StatusCode == 101 {
		t.Errorf("got %v, %v, want StatusCode not 101", resp, err)
	} else {
		_ = resp.Body.Close()
	}
	// The places of those that were refused are free again.
	g := w.Enroll("phone")
	for range 40 {
		_ = w.Connect(g, false, true).WS.Close()
	}
}

// SEC-9: 256 connections of 16 addresses that say nothing lock out neither a device
// nor the local owner; each of those that come takes the place of one of them.
func TestStrangersLockNobodyOut(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	addr := w.HTTP.Listener.Addr().String()
	var idle []*websocket.Conn
	for n := range 16 {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n+1))}}
		d := websocket.Dialer{NetDialContext: from.DialContext}
		for range 16 {
			ws, resp, err := d.Dial("ws://"+addr+"/ws", nil)
			if err != nil {
				if n == 0 {
					t.Skip("this machine has one loopback address:", err)
				}
				t.Fatalf("Dial of /ws = %v, %v; want a connection", err, resp)
			}
			_ = resp.Body.Close()
			defer ws.Close()
			idle = append(idle, ws)
		}
	}
	for n := range 20 {
		c := w.Connect(g, n%2 == 0, true) // fails the test if it does not get in
		if status, _ := c.Ask("phoenix", "heartbeat", map[string]any{}); status != "ok" {
			t.Errorf("device %d: a heartbeat got %q, want ok", n, status)
		}
	}
	owner := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.Wire.Local().ServeHTTP(rw, r.WithContext(auth.WithPrincipal(r.Context(), auth.LocalOwner)))
	}))
	defer owner.Close()
	for range 40 { // more than one network may have that has not authenticated
		ws, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(owner.URL, "http"), nil)
		if err != nil {
			t.Fatalf("the local owner: %v, %v", resp, err)
		}
		_ = resp.Body.Close()
		defer ws.Close()
		if _, first, err := ws.ReadMessage(); err != nil || !strings.Contains(string(first), "auth_ok") {
			t.Errorf("the local owner got %q, %v, want auth_ok", first, err)
		}
	}
	closed := 0
	for _, ws := range idle[:2] { // the oldest of one of the networks that had most
		_ = ws.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, _, _ = ws.ReadMessage() // the challenge
		if _, _, err := ws.ReadMessage(); websocket.IsCloseError(err, wire.CloseTooMany) {
			closed++
		}
	}
	if closed == 0 {
		t.Error("none of the oldest has given way")
	}
}

// WS-13: a peer that is there no more, and says nothing, is given up, and so is its
// presence; one that answers pings stays.
func TestHalfOpen(t *testing.T) {
	defer wire.SetTimes(200*time.Millisecond, 2*time.Second)() // a busy machine may answer late
	w := wiretest.New(t)
	gone, there := w.Enroll("gone"), w.Enroll("there")
	_ = w.Connect(gone, false, true) // nobody reads, so nobody answers
	c := w.Connect(there, false, true)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for {
			if _, _, err := c.WS.ReadMessage(); err != nil {
				return
			}
		}
	}()
	_ = c.WS.SetReadDeadline(time.Time{})
	for deadline := time.Now().Add(eventually.Limit); strings.Join(w.Wire.Present(), " ") != "there"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %v present, want only there", w.Wire.Present())
		}
	}
	time.Sleep(2500 * time.Millisecond) // more than silence may last
	if got := strings.Join(w.Wire.Present(), " "); got != "there" {
		t.Errorf("present: %q", got)
	}
	_ = c.WS.Close()
	<-stop
}

// HT-29: a client that has not authenticated does not delay the end; every client is told to
// come back.
func TestCloseTellsEverybody(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	var all []*wiretest.Client
	for n := range 20 {
		if n < 10 {
			all = append(all, w.Dial(false, true))
		} else {
			all = append(all, w.Connect(g, n%2 == 0, true))
		}
	}
	begun := time.Now()
	w.Stop()
	if d := time.Since(begun); d >= 10*time.Second { // the time to authenticate
		t.Errorf("it took %v", d)
	}
	for n, c := range all {
		if code := c.Closed(); code != 1012 {
			t.Errorf("client %d was closed with %d", n, code)
		}
	}
}

// LD-02, WS-04: while one address floods the server with connections, half of them
// garbage and half of them upgrades that never authenticate, those who are in are
// served, and whoever comes from elsewhere gets in.
func TestFlood(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	inside := w.Connect(g, true, true)
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 5 * time.Second}
	addr := w.HTTP.Listener.Addr().String()
	if conn, err := from.DialContext(t.Context(), "tcp", addr); err != nil {
		t.Skip("no second loopback address:", err)
	} else {
		_ = conn.Close()
	}
	stop := make(chan struct{})
	var flood sync.WaitGroup
	var sent, upgraded atomic.Int64
	for n := range 8 {
		flood.Go(func() {
			var kept []net.Conn
			defer func() {
				for _, c := range kept {
					_ = c.Close()
				}
			}()
			for {
				select {
				case <-stop:
					return
				default:
				}
				conn, err := from.DialContext(t.Context(), "tcp", addr)
				if err != nil {
					continue
				}
				sent.Add(1)
				time.Sleep(2 * time.Millisecond) // the ports of this machine are for other tests, too
				if n%2 == 0 {
					_, _ = io.WriteString(conn, "\x16\x03\x01garbage\r\n\r\n")
					_ = conn.Close()
					continue
				}
				_, _ = fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", addr, base64.StdEncoding.EncodeToString(make([]byte, 16)))
				if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
					upgraded.Add(1)
				}
				if kept = append(kept, conn); len(kept) > 50 {
					_ = kept[0].Close()
					kept = kept[1:]
				}
			}
		})
	}
	for n := range 40 {
		if status, _ := inside.Ask("phoenix", "heartbeat", map[string]any{}); status != "ok" {
			t.Errorf("a heartbeat: %s", status)
		}
		c := w.Connect(g, n%2 == 0, true) // fails the test if it does not get in
		if status, _ := c.Ask("phoenix", "heartbeat", map[string]any{}); status != "ok" {
			t.Errorf("a heartbeat of one that has come: %s", status)
		}
		_ = c.WS.Close()
		time.Sleep(25 * time.Millisecond)
	}
	close(stop)
	flood.Wait()
	if sent.Load() < 100 || upgraded.Load() == 0 {
		t.Errorf("got %d connections and %d upgrades, want a flood: at least 100 and 1", sent.Load(), upgraded.Load())
	}
	t.Logf("%d connections, %d upgrades", sent.Load(), upgraded.Load())
}
