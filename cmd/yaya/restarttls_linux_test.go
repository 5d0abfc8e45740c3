package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/certs/certstest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// OP-99: connections with TLS end at a restart, and new ones wait for the next program. None is
// passed on without its TLS: not one that idles, and not one on which nothing was sent yet. They
// do not make the restart wait.
func TestRestartWithTLS(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	cert, key := certstest.SelfSigned(t, b.dir, 1)
	pemData, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pemData)
	conf := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1"}
	b.daemon("serve", "--listen", b.addr, "--tls-cert", cert, "--tls-key", key, "--host", "yaya.example")
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true}}
	get := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+b.addr+"/health", nil)
		if err != nil {
			return err
		}
		req.Host = "yaya.example"
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode == http.StatusOK {
			return err
		}
		return errors.New(resp.Status)
	}
	eventually.True(t, "yaya serves", func() bool { return get(t.Context()) == nil })

	const request = "GET /health HTTP/1.1\r\nHost: yaya.example\r\n\r\n"
	idle, err := tls.Dial("tcp", b.addr, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if _, err := io.WriteString(idle, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(idle)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	silent, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if err := get(t.Context()); err != nil { // silent was accepted before it
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var served atomic.Int64
	for range 4 {
		work.Go(func() {
			for ctx.Err() == nil {
				if err := get(context.WithoutCancel(ctx)); err != nil {
					t.Errorf("a new connection during a restart: %v", err)
					return
				}
				served.Add(1)
			}
		})
	}
	defer work.Wait()
	defer cancel()
	eventually.True(t, "requests before the restart", func() bool { return served.Load() > 8 })
	b.restarted() // and drained
	from := served.Load()
	eventually.True(t, "requests after the restart", func() bool { return served.Load() > from+8 || t.Failed() })
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		t.Errorf("an idle connection has %q, %v; want its end", rest, err)
	}
	if _, err := io.WriteString(silent, request); err == nil {
		if resp, err := http.ReadResponse(bufio.NewReader(silent), nil); err == nil {
			_ = resp.Body.Close()
			t.Errorf("without TLS, the address of TLS answers %s, want the connection closed", resp.Status)
		}
	}
}
