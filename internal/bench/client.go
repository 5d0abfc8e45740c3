//go:build unix

package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/internal/bench/load"
)

// target is an MCP endpoint, spoken to in the legacy era, or in the modern one, without a session.
type target struct {
	addr, path string
	tool       string
	modern     bool
	tls        *tls.Config // nil without TLS
	name       string      // that the client announces; "" for bench
	session    string
	// lenient targets may lose a connection now and then, as the standard
	// library's reverse proxy does under quick successions on one connection.
	lenient bool
}

func (t *target) dial() (*load.Conn, error) {
	e := load.Endpoint{Addr: t.addr, Path: t.path, TLS: t.tls}
	if t.modern {
		e.Header = "Mcp-Protocol-Version: " + modernVersion + "\r\nMcp-Method: tools/call\r\nMcp-Name: " + t.tool + "\r\n"
	}
	return e.Dial()
}

const modernVersion = "2026-07-28"

// meta holds the part of a modern call that describes its client.
const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernVersion + `","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// open starts a session.
func (t *target) open() error {
	c, err := t.dial()
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	a, err := c.Post([]byte(t.hello()), "")
	t.session = a.Session
	return err
}

// hello begins a session.
func (t *target) hello() string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + cmp.Or(t.name, "bench") + `","version":"1"}}}`
}

// figures holds the measurements of one round.
type figures struct {
	perSecond float64
	calls     int
	latencies []time.Duration
}

func (f figures) quantile(q float64) time.Duration { return load.Quantile(f.latencies, q) }

var errWrong = errors.New("a wrong answer")

// run keeps inFlight calls with size bytes of argument going for d.
func (t *target) run(inFlight, size int, d time.Duration) (figures, error) {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	all := make([][]time.Duration, inFlight)
	end := `"}}}`
	if t.modern {
		end = `"}` + meta + `}}`
	}
	end = strings.Repeat("x", size) + end
	deadline := time.Now().Add(d)
	start := time.Now()
	for i := range inFlight {
		wg.Go(func() {
			err := func() error {
				c, err := t.dial()
				if err != nil {
					return err
				}
				defer func() { _ = c.Close() }()
				for n := 0; time.Now().Before(deadline); n++ {
					// Ids differ between the connections that share a session.
					id := strconv.Itoa(i*100_000_000 + n)
					body := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + t.tool + `","arguments":{"text":"` + end)
					begun := time.Now()
					a, err := c.Post(body, t.session)
					if err != nil && t.lenient {
						_ = c.Close()
						if c, err = t.dial(); err != nil {
							return err
						}
						continue
					}
					if err != nil {
						return err
					}
					all[i] = append(all[i], time.Since(begun))
					if out := a.Body; !bytes.HasPrefix(out, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result"`)) || len(out) < size {
						return fmt.Errorf("%w: %.200s", errWrong, out)
					}
				}
				return nil
			}()
			if err != nil {
				err = fmt.Errorf("%s: %w", t.addr, err)
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return figures{}, *err
	}
	lat := slices.Concat(all...)
	slices.Sort(lat)
	return figures{float64(len(lat)) / took.Seconds(), len(lat), lat}, nil
}
