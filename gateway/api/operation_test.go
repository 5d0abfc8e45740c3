package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/yaya-ai/yaya/auth"
)

// deadlines records the read deadlines that a handler sets.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// REL-3: the library leaves no deadline behind a body that has been read: it would
// cancel an operation that takes longer.
func TestOperationsHaveNoDeadline(t *testing.T) {
	a := New(Config{Base: "/x", Style: Detail, Info: huma.Info{Title: "t", Version: "1"}, Docs: For("s"), Rest: For("s")})
	type in struct {
		Body struct {
			Name string `json:"name"`
		}
	}
	ran := false
	Handle(a, Operation{Method: http.MethodPost, Path: "/x/y", ID: "x", Tag: "t", Summary: "X", Access: For("s"), Status: http.StatusNoContent}, func(_ context.Context, i *in) (*struct{}, error) {
		ran = i.Body.Name == "ada"
		return nil, nil //nolint:nilnil // nothing is answered
	})
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), auth.LocalOwner), http.MethodPost, "/x/y", strings.NewReader(`{"name":"ada"}`))
	r.Header.Set("Content-Type", "application/json")
	a.ServeHTTP(w, r)
	if !ran || w.Code != http.StatusNoContent {
		t.Fatalf("the operation answered %d: %s", w.Code, w.Body)
	}
	if n := len(w.set); n > 0 && !w.set[n-1].IsZero() {
		t.Errorf("the handler runs with a read deadline of %v, want none", w.set[n-1])
	}
}

// An operation that takes no body refuses one that says something.
func TestBodyOfAnOperationWithoutOne(t *testing.T) {
	a := New(Config{Base: "/x", Style: Detail, Info: huma.Info{Title: "t", Version: "1"}, Docs: For("s"), Rest: For("s")})
	ran := 0
	Handle(a, Operation{Method: http.MethodPost, Path: "/x/{id}/begin", ID: "x", Tag: "t", Summary: "X", Access: For("s"), Status: http.StatusNoContent}, func(context.Context, *struct {
		ID string `path:"id"`
	},
	) (*struct{}, error) {
		ran++
		return nil, nil //nolint:nilnil // nothing is answered
	})
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"none":                {"", 204},
		"an empty object":     {"{ }\n", 204},
		"spaces":              {" \n", 204},
		"a member":            {`{"force":true}`, 400},
		"an array":            {"[]", 400},
		"not JSON":            {"force=1", 400},
		"more than is looked": {strings.Repeat(" ", 2<<10), 400},
	} {
		ran = 0
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), auth.LocalOwner), http.MethodPost, "/x/1/begin", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/json")
		a.ServeHTTP(w, r)
		if w.Code != tt.want || (ran == 1) != (tt.want == 204) {
			t.Errorf("%s: got %d %s, ran %d times, want %d", name, w.Code, w.Body, ran, tt.want)
		}
		if tt.want == 400 && !strings.Contains(w.Body.String(), "POST /x/1/begin takes no body") {
			t.Errorf("%s: got %s, want it to say that there is no body", name, w.Body)
		}
	}
}
