//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// toStdio is the address of an upstream on standard streams, which the relay starts.
const toStdio = "stdio"

// fixtureRelay relays messages as little code can: HTTP/1.1 by hand on both sides, and no rules.
// It shows what is left for yaya to save.
func fixtureRelay(to string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // lives as long as the program
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	dial := func() (exchange, error) {
		c, err := load.Endpoint{Addr: to, Path: "/mcp"}.Dial()
		if err != nil {
			return nil, err
		}
		return func(body []byte) ([]byte, error) {
			a, err := c.Post(body, "")
			return a.Body, err
		}, nil
	}
	if to == toStdio {
		p, err := startPipe()
		if err != nil {
			return err
		}
		dial = func() (exchange, error) { return p.exchange, nil }
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = c.Close() }()
			if ask, err := dial(); err == nil {
				relayCalls(c, ask)
			}
		}()
	}
}

// exchange sends a message and returns its answer, which is valid until the next call.
type exchange func(body []byte) ([]byte, error)

// relayCalls answers requests until the client leaves or something fails.
func relayCalls(c net.Conn, ask exchange) {
	in := bufio.NewReaderSize(c, 64<<10)
	var body, head []byte
	for {
		n, err := requestLength(in)
		if err != nil {
			return
		}
		body = slices.Grow(body[:0], n)[:n]
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		out, err := ask(body)
		if err != nil {
			return
		}
		head = append(head[:0], "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "...)
		head = append(strconv.AppendInt(head, int64(len(out)), 10), "\r\n\r\n"...)
		if _, err := (&net.Buffers{head, out}).WriteTo(c); err != nil {
			return
		}
	}
}

// maxRequest bounds a request; the client is this program.
const maxRequest = 64 << 20

// requestLength reads the head of a request and returns the length of its body.
func requestLength(in *bufio.Reader) (int, error) {
	n := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return n, nil
		}
		if k, v, _ := bytes.Cut(line, []byte(":")); strings.EqualFold(string(k), "Content-Length") {
			if n, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil || n < 0 || n > maxRequest {
				return 0, fmt.Errorf("got the length %q", v)
			}
		}
	}
}

// pipe is a server on standard streams that all clients share. Their ids differ, so nothing is
// rewritten.
type pipe struct {
	writing sync.Mutex // not held with mu: the server may wait until its answers are read
	in      io.Writer
	line    []byte

	mu      sync.Mutex
	waiting map[string]chan []byte // by id; nil after the server's end
}

func startPipe() (*pipe, error) {
	cmd := exec.Command(self(), "-fixture", "stdio") //nolint:noctx // ends with its input, with this program
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &pipe{in: in, waiting: map[string]chan []byte{}}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.read(bufio.NewReaderSize(out, 1<<20))
		_ = cmd.Wait()
	}()
	return p, nil
}

// read hands the answers to those who wait.
func (p *pipe) read(out *bufio.Reader) {
	for {
		line, err := out.ReadBytes('\n')
		p.mu.Lock()
		if err != nil {
			for _, c := range p.waiting {
				close(c)
			}
			p.waiting = nil
			p.mu.Unlock()
			return
		}
		id := string(member(line, "id"))
		c := p.waiting[id]
		delete(p.waiting, id)
		p.mu.Unlock()
		if c != nil {
			c <- line[:len(line)-1]
		}
	}
}

var errPipe = errors.New("the server on standard streams has ended")

func (p *pipe) exchange(body []byte) ([]byte, error) {
	c := make(chan []byte, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return nil, errPipe
	}
	p.waiting[string(member(body, "id"))] = c
	p.mu.Unlock()
	p.writing.Lock()
	p.line = append(append(p.line[:0], body...), '\n')
	_, err := p.in.Write(p.line)
	p.writing.Unlock()
	if err != nil {
		return nil, err
	}
	out, ok := <-c
	if !ok {
		return nil, errPipe
	}
	return out, nil
}
