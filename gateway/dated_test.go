package gateway

import (
	"math"
	"net/http"
	"testing"
	"time"
)

// CL-02: answers of a node say how old they may be when it does not hear of the others' changes, those of a
// yaya that is alone do not.
func TestAnswersSayTheirAge(t *testing.T) {
	var age time.Duration
	base, _ := serving(t, Config{MCP: http.NotFoundHandler(), Age: func() time.Duration { return age }})
	alone, _ := serving(t, Config{MCP: http.NotFoundHandler()})
	for _, c := range []struct {
		age  time.Duration
		want string
	}{{0, ""}, {1500 * time.Millisecond, ""}, {2 * time.Second, "2"}, {3900 * time.Millisecond, "3"}, {math.MaxInt64, "unknown"}} {
		age = c.age
		for url, want := range map[string]string{base: c.want, alone: ""} {
			resp, err := http.Get(url + "/health") //nolint:noctx // test
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if got := resp.Header.Get("Yaya-Stale"); got != want {
				t.Errorf("an answer of %v before says %q, want %q", c.age, got, want)
			}
		}
	}
}
