package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"reflect"
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

// A request carries the same fields on every road: configured ones that net/http would write itself
// or leave out do not make a second message of it.
func TestFieldsOfRequests(t *testing.T) {
	var got []http.Header
	var hosts []string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got, hosts = append(got, r.Header.Clone()), append(hosts, r.Host)
	}))
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	d := NewTransport().(*direct) //nolint:forcetypeassert // what it makes
	defer d.CloseIdleConnections()
	post := func(traced bool, h http.Header) error {
		ctx := t.Context()
		if traced { // net/http sends it
			ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{})
		}
		req := (&http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: h, Body: newRawBody([]byte("x")), ContentLength: 1}).WithContext(ctx)
		resp, err := d.RoundTrip(req)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close()
	}
	for _, h := range []http.Header{
		{"X-Own": {"1"}}, {"User-Agent": {"mine"}},
		{"Host": {"other.example"}, "Content-Length": {"5"}, "Transfer-Encoding": {"chunked"}, "Trailer": {"X"}},
	} {
		got, hosts = nil, nil
		for _, traced := range []bool{true, false} {
			if err := post(traced, h.Clone()); err != nil {
				t.Fatalf("%v: RoundTrip = %v, want no error", h, err)
			}
		}
		for _, g := range got {
			g.Del("Accept-Encoding")
		}
		if len(got) != 2 || !reflect.DeepEqual(got[0], got[1]) || hosts[0] != hosts[1] {
			t.Errorf("%v: net/http sends %v to %v, and yaya %v", h, got[0], hosts, got[1:])
		}
	}
	for _, h := range []http.Header{{"X Y": {"1"}}, {"X-Y": {"a\nb"}}, {"X-Y:": {"1"}}} {
		if post(false, h) == nil {
			t.Errorf("%q is sent, want an error", h)
		}
	}
}
