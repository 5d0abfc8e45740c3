package openapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
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
	mux := http.NewServeMux()
	api := New(mux, huma.Info{Title: "t", Version: "1"}, func(_ huma.Context, f *Failure) any { return f })
	type in struct {
		Body struct {
			Name string `json:"name"`
		}
	}
	ran := false
	huma.Register(api, Operation("t", http.MethodPost, "/x", "x", "s", "X", http.StatusNoContent), func(_ context.Context, i *in) (*struct{}, error) {
		ran = i.Body.Name == "ada"
		return nil, nil //nolint:nilnil // nothing is answered
	})
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x", strings.NewReader(`{"name":"ada"}`))
	r.Header.Set("Content-Type", "application/json")
	if err := Strict(w, r); err != nil {
		t.Fatal(err)
	}
	mux.ServeHTTP(w, r)
	if !ran || w.Code != http.StatusNoContent {
		t.Fatalf("the operation answered %d: %s", w.Code, w.Body)
	}
	if n := len(w.set); n > 0 && !w.set[n-1].IsZero() {
		t.Errorf("the handler runs with a read deadline of %v, want none", w.set[n-1])
	}
}
