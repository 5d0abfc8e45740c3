// Package llmhttp is the HTTP side of services whose address a user sets, model providers and web
// searches: their plugins have no network code of their own. It has deadlines, bounded bodies, no
// redirects to other hosts, and failures as an error that keeps status and Retry-After.
package llmhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Bounds of a service's answers.
const (
	MaxBody  = 64 << 20 // bytes of an answer
	maxError = 64 << 10 // bytes of an error
)

// StatusError is an answer with a status of 400 or above.
type StatusError struct {
	StatusCode int
	RetryAfter time.Duration // 0 if the service did not say
	Message    string        // its text, bounded, without the key of the request
	Body       string        // the whole answer, bounded, to be searched: it is not for people
}

func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.StatusCode, e.Message) }

// Client makes requests. It is safe for concurrent use.
type Client struct{ http *http.Client }

// New returns a client with connections of its own.
func New() *Client {
	return &Client{&http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  5 * time.Minute, // reasoning models think before they speak
			IdleConnTimeout:        90 * time.Second,
			MaxIdleConnsPerHost:    8,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errors.New("redirected to another place")
			}
			return nil
		},
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do sends a request. A status of 400 or above is a [*StatusError].
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req) //nolint:gosec // the address is the user's own setting
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 400 {
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxError)) //nolint:forbidigo // bounded by the reader
		if err != nil {
			body = append(body, " (and the rest could not be read)"...)
		}
		return nil, &StatusError{resp.StatusCode, retryAfter(resp.Header, time.Now()), message(body, resp.Status, keys(req.Header)), string(body)}
	}
	resp.Body = &limited{resp.Body, MaxBody}
	return resp, nil
}

// Post sends a value as JSON, with headers that have a value, and returns the body of the response,
// which the caller closes. Errors are those of [Client.Do].
func (c *Client) Post(ctx context.Context, address string, header map[string]string, body any) (io.ReadCloser, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, v := range header {
		if v != "" {
			req.Header.Set(name, v)
		}
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Bearer returns the header of a key, "" without one.
func Bearer(key string) string {
	if key == "" {
		return ""
	}
	return "Bearer " + key
}

// retryAfter reads the header, in seconds or as a date (RFC 9110, 10.2.3), and
// the milliseconds that some services send.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// keys returns those of a request, as the services take them.
func keys(h http.Header) []string {
	return []string{strings.TrimPrefix(h.Get("Authorization"), "Bearer "), h.Get("X-Api-Key"), h.Get("X-Goog-Api-Key"), h.Get("X-Subscription-Token")}
}

// message returns the text of an error body: OpenAI's field, or the whole body. Of markup, which people
// cannot read, it returns the status.
func message(body []byte, status string, keys []string) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	text := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &e) == nil && len(e.Error) > 0 {
		var obj struct {
			Message string `json:"message"`
		}
		var s string
		if json.Unmarshal(e.Error, &obj) == nil && obj.Message != "" {
			text = obj.Message
		} else if json.Unmarshal(e.Error, &s) == nil && s != "" {
			text = s
		}
	}
	if text == "" || text[0] == '<' { // the page of a proxy, in HTML or XML
		text = status
	}
	for _, key := range keys {
		if len(key) > 4 {
			text = strings.ReplaceAll(text, key, "****")
		}
	}
	return strings.ToValidUTF8(cut.Text(text, 2000), "\ufffd")
}

type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer exceeds %d bytes", MaxBody)
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
