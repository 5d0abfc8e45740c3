//go:build unix

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

// member returns the raw value of a scalar member, by the first place where its
// name stands: enough for messages that this program has written itself.
func member(msg []byte, name string) []byte {
	_, rest, ok := bytes.Cut(msg, []byte(`"`+name+`":`))
	if !ok {
		return nil
	}
	if rest[0] == '"' {
		end := bytes.IndexByte(rest[1:], '"')
		return rest[:end+2]
	}
	return rest[:bytes.IndexAny(rest, ",}")]
}

// fixtureAnswer answers one message as a minimal MCP server with a tool that
// returns its argument.
func fixtureAnswer(dst, msg []byte) []byte {
	id := member(msg, "id")
	reply := func(kind, body string) []byte {
		return append(fmt.Appendf(dst, `{"jsonrpc":"2.0","id":%s,"%s":`, id, kind), body+"}"...)
	}
	switch string(member(msg, "method")) {
	case `"tools/call"`:
		dst = append(append(append(dst, `{"jsonrpc":"2.0","id":`...), id...), `,"result":{"content":[{"type":"text","text":`...)
		dst = append(dst, member(msg, "text")...)
		return append(dst, `}]}}`...)
	case `"initialize"`:
		return reply("result", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fixture","version":"1"}}`)
	case `"tools/list"`:
		return reply("result", `{"tools":[{"name":"echo","description":"returns its argument","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"wait","description":"takes a second","inputSchema":{"type":"object"}}]}`)
	}
	if id == nil {
		return nil
	}
	return reply("error", `{"code":-32601,"message":"unknown method"}`)
}

// slow is how long the tool "wait" takes.
const slow = time.Second

func fixtureStdio() error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	var mu sync.Mutex // of out
	var buf []byte
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil //nolint:nilerr // the end of the input is the end
		}
		buf = fixtureAnswer(buf[:0], line)
		if len(buf) > 0 && string(member(line, "name")) == `"wait"` {
			late := append(bytes.Clone(buf), '\n')
			time.AfterFunc(slow, func() {
				mu.Lock()
				defer mu.Unlock()
				_, _ = out.Write(late)
				_ = out.Flush()
			})
			buf = buf[:0]
		}
		// One write answers everything that has arrived.
		mu.Lock()
		if len(buf) > 0 {
			_, _ = out.Write(append(buf, '\n'))
		}
		if in.Buffered() == 0 {
			err = out.Flush()
		}
		mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// fixtureProxy stands between the client and the upstream as yaya does, without
// knowing MCP: as a copy of TCP streams, which is the limit for one hop, or as
// the standard library's reverse proxy.
func fixtureProxy(mode, to string, protocols ...string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // lives as long as the program
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	if mode == "reverse" {
		there, err := url.Parse(to)
		if err != nil {
			return err
		}
		p := httputil.NewSingleHostReverseProxy(there)
		if p.Transport, err = toProxy(); err != nil {
			return err
		}
		return serveHTTP(l, p, protocols)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			u, err := net.Dial("tcp", to) //nolint:noctx // loopback
			if err != nil {
				return
			}
			defer u.Close()
			go func() { _, _ = io.Copy(u, c); _ = u.Close() }()
			_, _ = io.Copy(c, u)
		}()
	}
}

// serveHTTP serves with HTTP/1.1, or over TLS with the given protocols.
func serveHTTP(l net.Listener, h http.Handler, protocols []string) error {
	srv := &http.Server{Handler: h} //nolint:gosec // bench
	if len(protocols) == 0 {
		return srv.Serve(l)
	}
	srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	if slices.Contains(protocols, "h2") {
		srv.TLSNextProto = nil // net/http's own
	}
	file := os.Getenv(certFile)
	return srv.ServeTLS(l, file, file)
}

// fixtureHTTP serves on a port of its own and prints the address.
func fixtureHTTP(protocols ...string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // lives as long as the program
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return serveHTTP(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		out := fixtureAnswer(make([]byte, 0, len(body)+128), body)
		if out == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(out)
	}), protocols)
}
