package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A refusal of several lines is shown in lines, none of which passes for one of yaya's own.
func TestRefusalLines(t *testing.T) {
	t.Parallel()
	resp := &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/problem+json"}}, Body: io.NopCloser(strings.NewReader(`{"detail":"go build failed:\n./main.go:2\u001b[2K\n"}`))}
	const want = "go build failed:\n  ./main.go:2\\u{1b}[2K"
	if got := refusedBy(resp, "/x").Error(); got != want {
		t.Errorf("refusedBy() = %q, want %q", got, want)
	}
}
