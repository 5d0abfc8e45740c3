package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"time"
)

// speaksOne reports whether a host is known to answer with HTTP/1.1 over TLS.
func (d *direct) speaksOne(host string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.secure[host]
}

// learn makes a request with net/http, and sees which HTTP it was answered with.
func (d *direct) learn(req *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(req)
	if err != nil || resp.TLS == nil || resp.ProtoMajor != 1 {
		return resp, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.secure == nil || len(d.secure) >= maxCarried {
		d.secure = map[string]bool{}
	}
	d.secure[req.URL.Host] = true
	return resp, nil
}

// forget makes the next request to a host go to net/http.
func (d *direct) forget(host string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.secure, host)
}

// encrypt makes a fresh connection one for https, with the certificates and bounds that net/http's
// transport has.
func (c *directConn) encrypt(ctx context.Context, host string) error {
	cfg := c.owner.next.TLSClientConfig.Clone()
	if cfg == nil {
		cfg = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	cfg.NextProtos = []string{"http/1.1"}
	if cfg.ServerName == "" {
		cfg.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, c.owner.next.TLSHandshakeTimeout)
	defer cancel()
	secure := tls.Client(c.Conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	c.Conn, c.tls = secure, secure
	return nil
}

// quiet is alive for TLS, whose records may have arrived with the last answer. Nobody else uses the
// connection meanwhile.
func (c *directConn) quiet() bool {
	if !c.alive() || c.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	var one [1]byte
	n, err := c.Conn.Read(one[:]) // of what has been received: it may not wait
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}

// Close ends the connection without a word: it may be one that does not take any.
func (c *directConn) Close() error {
	if c.tls != nil {
		return c.tls.NetConn().Close()
	}
	return c.Conn.Close()
}
