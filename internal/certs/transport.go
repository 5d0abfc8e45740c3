package certs

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// Bounds of an authority's responses in one attempt.
const (
	maxAnswer   = 1 << 20 // bytes of one answer
	maxRequests = 250
	requestTime = 30 * time.Second
	retries     = 3
	longestPoll = 30 // seconds between two looks at an order
)

// retryPause is how long to wait before the nth retry of a request. An authority that is
// asked too much is left alone: the next try is when it says.
func retryPause(n int, _ *http.Request, resp *http.Response) time.Duration {
	if n > retries || (resp != nil && resp.StatusCode == http.StatusTooManyRequests) {
		return 0
	}
	return time.Second << n
}

// httpClient is for one attempt: it follows no redirects, and counts requests.
func (a *ACME) httpClient() *http.Client {
	t := a.cfg.Transport
	if t == nil {
		t = &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: requestTime}).DialContext,
			// Connections are not kept: an attempt makes a few dozen requests, followed by
			// none for weeks.
			DisableKeepAlives: true, TLSHandshakeTimeout: requestTime, ResponseHeaderTimeout: requestTime,
			MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: false,
		}
	}
	return &http.Client{
		Transport: &bounded{next: t, origin: originOf(a.cfg.Directory)}, Timeout: requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
}

var errRedirect = errors.New("the authority redirects, and redirects are not followed: name its directory by its own address (--acme-directory)")

func originOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// bounded limits an authority: its addresses stay on its own host, and its answers,
// their number and the pauses that it asks for are limited.
type bounded struct {
	next   http.RoundTripper
	origin string
	n      atomic.Int32
}

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if got := r.URL.Scheme + "://" + r.URL.Host; got != b.origin {
		return nil, fmt.Errorf("the authority at %s gave the address %.200q of another host", b.origin, clean(r.URL.String()))
	}
	if b.n.Add(1) > maxRequests {
		return nil, fmt.Errorf("%d requests were not enough for the authority", maxRequests)
	}
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if after := resp.Header.Get("Retry-After"); after != "" && resp.StatusCode < 400 {
		// The protocol's client waits as long as the authority asks, and not at all if
		// that is negative.
		if n, err := strconv.Atoi(after); err != nil || n < 1 || n > longestPoll {
			resp.Header.Del("Retry-After")
		}
	}
	resp.Body = &limitedBody{resp.Body, maxAnswer}
	return resp, nil
}

// limitedBody fails when a body exceeds its limit.
type limitedBody struct {
	io.ReadCloser
	left int
}

// Read implements [io.Reader].
func (l *limitedBody) Read(p []byte) (int, error) {
	if l.left <= 0 {
		var one [1]byte
		if n, err := l.ReadCloser.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("the authority's answer is larger than %d bytes", maxAnswer)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
