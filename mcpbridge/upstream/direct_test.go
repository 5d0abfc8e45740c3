package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"testing"
)

// SEC-8: a request that is traced says to what address it was connected, which
// authorization is judged by; the others pay nothing for it.
func TestTracedRequestsSayTheirConnection(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := NewTransport().(*direct) //nolint:forcetypeassert // what it makes
	defer d.CloseIdleConnections()
	for _, traced := range []bool{false, true, false} {
		got := ""
		ctx := t.Context()
		if traced {
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { got = i.Conn.RemoteAddr().String() }})
		}
		req := (&http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: http.Header{}, Body: newRawBody([]byte("x")), ContentLength: 1}).WithContext(ctx)
		resp, err := d.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("traced %v: got %v, %v", traced, resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if want := map[bool]string{true: u.Host}[traced]; got != want {
			t.Errorf("traced %v: connected to %q, want %q", traced, got, want)
		}
	}
}
