package llmhttp

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The standard client has the errors of this one, and a body that breaks off ends, with the error
// noted beside it.
func TestStandard(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.Header().Set("Retry-After", "7")
			http.Error(w, `{"error":{"message":"busy"}}`, http.StatusServiceUnavailable)
		case "/away":
			http.Redirect(w, r, "http://127.0.0.2:1/", http.StatusFound)
		default:
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	defer s.Close()
	c := New()
	defer c.Close()
	get := func(path string, f *Failure) (*http.Response, error) {
		req, err := http.NewRequestWithContext(WithFailure(t.Context(), f), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Standard().Do(req)
	}
	if _, err := get("/busy", new(Failure)); err == nil {
		t.Error("got no error for a status of 503, want one")
	} else if e, ok := errors.AsType[*StatusError](err); !ok || e.StatusCode != 503 || e.RetryAfter != 7*time.Second || e.Message != "busy" {
		t.Errorf("got %v, want a StatusError 503 that asks to wait 7 s", err)
	}
	if _, err := get("/away", new(Failure)); err == nil || strings.Count(err.Error(), "Get ") != 1 || !strings.Contains(err.Error(), "redirected") {
		t.Errorf("got %v, want one refusal of the redirect", err)
	}
	var f Failure
	resp, err := get("/", &f)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if string(body) != "half" || err != nil || !errors.Is(f.Err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v and the failure %v, want the half, no error, and an unexpected end noted", body, err, f.Err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Errorf("Close = %v, want no error", err)
	}
}

// The page of a proxy is not the text of an error: the status is.
func TestMarkupOfAnError(t *testing.T) {
	for body, want := range map[string]string{
		"<!DOCTYPE html><html><body>oops</body></html>": "500 Internal Server Error",
		" \n<?xml version=\"1.0\"?><Error/>":            "500 Internal Server Error",
		`{"error":{"message":"<b> is unknown"}}`:        "500 Internal Server Error",
		`{"error":{"message":"a < b"}}`:                 "a < b",
		"plain":                                         "plain",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, body)
		}))
		c := New()
		_, err := c.Post(t.Context(), srv.URL, nil, nil)
		c.Close()
		srv.Close()
		if e, ok := errors.AsType[*StatusError](err); !ok || e.Message != want || e.Body != body {
			t.Errorf("%q: %v, want the text %q, and the body as it is", body, err, want)
		}
	}
}
