package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// maxProxyHead bounds the answer of an upstream proxy to CONNECT.
const maxProxyHead = 16 << 10

// upstream is the proxy that yaya's own environment names for a destination
// (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), nil without one. Networks of companies often
// resolve no outside names, so the upstream proxy looks the name up: whether it leads
// to a private address is its decision.
func (p *proxy) upstream(scheme, host string, port int) (*url.URL, error) {
	if addr, err := netip.ParseAddr(host); err == nil && !p.public(addr) && !p.named(addr, port) {
		return nil, nil // dial refuses it
	}
	u, err := p.environ(&http.Request{URL: &url.URL{Scheme: scheme, Host: net.JoinHostPort(host, strconv.Itoa(port))}})
	if err != nil || u == nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the sandbox cannot use the proxy %s: set HTTPS_PROXY of yaya to one that begins with http:// or https://", u.Redacted())
	}
	return u, nil
}

// notItself refuses a name that leads to yaya where the upstream proxy would look it up:
// one on this machine would connect to yaya as its user. Only for yaya's own ports is the
// name looked up here, too; one that is not known here is the upstream proxy's affair.
func (p *proxy) notItself(ctx context.Context, host string, port int) error {
	own := slices.ContainsFunc(p.listens(), func(text string) bool {
		at, err := netip.ParseAddrPort(text)
		return err == nil && int(at.Port()) == port
	})
	if !own {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	addrs, _ := p.resolve(within, host)
	for _, addr := range addrs {
		at := netip.AddrPortFrom(addr.Unmap(), uint16(port)) //nolint:gosec // splitHost bounds it
		if itsOwn(at, p.listens()) {
			return p.refuse(ctx, host, port, isYaya(at), "")
		}
	}
	return nil
}

// viaEnviron is the proxy of a plain HTTP request.
func (p *proxy) viaEnviron(r *http.Request) (*url.URL, error) {
	host, port, err := splitHost(r.URL.Host, 80)
	if err != nil {
		return nil, err
	}
	return p.upstream("http", host, port)
}

// RoundTrip sends a plain HTTP request that was allowed.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	switch u, err := p.viaEnviron(r); {
	case err != nil:
		return nil, err
	case u != nil:
		host, port, err := splitHost(r.URL.Host, 80)
		if err == nil {
			err = p.notItself(r.Context(), host, port)
		}
		if err != nil {
			return nil, err
		}
		res, err := p.chained.RoundTrip(r)
		if err != nil {
			return nil, p.failed(r.Context(), host, port, withoutAnswer(err))
		}
		return res, nil
	default:
		return p.direct.RoundTrip(r)
	}
}

// through opens a tunnel by an upstream proxy.
func through(ctx context.Context, u *url.URL, hostport string) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	at := u.Host
	if u.Port() == "" {
		at = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("reach %s by the proxy %s: %w", hostport, at, err)
		}
	}()
	if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", at); err != nil {
		return nil, err
	}
	raw := conn
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if u.Scheme == "https" {
		conn = tls.Client(raw, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
	}
	if err := connectBy(conn, u, hostport); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if !stop() {
		return nil, errors.Join(ctx.Err(), conn.Close())
	}
	return conn, nil
}

// withoutAnswer returns an error about an upstream proxy without what that proxy answered,
// which may repeat the request with its password: the program in the sandbox reads the error.
func withoutAnswer(err error) error {
	network, isNetwork := errors.AsType[*net.OpError](err)
	certificate, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	timeout, times := errors.AsType[net.Error](err)
	switch {
	case isNetwork:
		return fmt.Errorf("the proxy cannot be reached: %w", network)
	case isCertificate:
		return fmt.Errorf("the proxy cannot be trusted: %w", certificate)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the proxy closed the connection")
	case errors.Is(err, context.Canceled):
		return err
	case times && timeout.Timeout():
		return errors.New("the proxy did not answer in time")
	}
	return errors.New("the proxy's answer is not valid HTTP")
}

// connectBy asks a proxy for a tunnel. It reads no byte of what the tunnel carries.
func connectBy(conn net.Conn, u *url.URL, hostport string) error {
	head := "CONNECT " + hostport + " HTTP/1.1\r\nHost: " + hostport + "\r\n"
	if u.User != nil {
		password, _ := u.User.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
		return err
	}
	var answer []byte
	for one := make([]byte, 1); !bytes.HasSuffix(answer, []byte("\r\n\r\n")); answer = append(answer, one[0]) {
		if len(answer) == maxProxyHead {
			return errors.New("the proxy's answer is too long")
		}
		if _, err := io.ReadFull(conn, one); err != nil {
			return err
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return withoutAnswer(err)
	}
	_ = res.Body.Close() // a tunnel has none
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy answered with status %d", res.StatusCode)
	}
	return nil
}
