package llmhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// Standard returns the client for SDKs that take only one of the standard library. Its errors are
// those of [Client.Do], also for statuses of 400 and above.
func (c *Client) Standard() *http.Client { return &http.Client{Transport: transport{c}} }

type transport struct{ c *Client }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.c.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the outer client names the request again
		}
		return nil, err
	}
	if f, ok := req.Context().Value(failureKey{}).(*Failure); ok {
		resp.Body = &told{resp.Body, f}
	}
	return resp, nil
}

// Failure is why the body of a response could not be read to its end. An SDK that logs such an
// error by itself sees the end of the body instead.
type Failure struct{ Err error }

type failureKey struct{}

// WithFailure returns a context for one request of [Client.Standard], which notes in f why the
// body could not be read.
func WithFailure(ctx context.Context, f *Failure) context.Context {
	return context.WithValue(ctx, failureKey{}, f)
}

type told struct {
	io.ReadCloser
	f *Failure
}

func (t *told) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.f.Err, err = err, io.EOF
	}
	return n, err
}

// Close says nothing about a body that nobody reads any longer.
func (t *told) Close() error {
	_ = t.ReadCloser.Close()
	return nil
}
