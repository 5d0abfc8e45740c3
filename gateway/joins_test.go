package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/nodes"
)

// joins answers with an error, or with the request in capitals.
type joins struct{ err error }

// Answer implements [Joins].
func (j *joins) Answer(_ context.Context, request []byte) ([]byte, error) {
	return []byte(strings.ToUpper(string(request))), j.err
}

// CL-06: a node that asks to join gets the answer, or learns why not; who tries invitations is
// held up, and nobody learns what is wrong with the log. A yaya that is alone answers nobody.
func TestJoins(t *testing.T) {
	j := new(joins)
	base, _ := serving(t, Config{Joins: j, MCP: http.NotFoundHandler()})
	post := func(body string) answer {
		t.Helper()
		return ask(t, http.DefaultClient, "POST", base+JoinPath, body)
	}
	raw, err := json.Marshal(JoinBody{[]byte("hello")})
	if err != nil {
		t.Fatal(err)
	}
	var got JoinBody
	if a := post(string(raw)); a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &got) != nil || string(got.Sealed) != "HELLO" {
		t.Errorf("got %+v, want the answer", a)
	}
	for _, tt := range []struct {
		err    error
		status int
		want   string
	}{
		{fmt.Errorf("%w: choose another one", nodes.ErrTaken), http.StatusConflict, "choose another one"},
		{fmt.Errorf("%w: /secret/disk", control.ErrUnavailable), http.StatusServiceUnavailable, "nothing can be changed now"},
		{nodes.ErrRefused, http.StatusForbidden, "was used"},
	} {
		j.err = tt.err
		if a := post(string(raw)); a.status != tt.status || !strings.Contains(a.body, tt.want) || strings.Contains(a.body, "/secret") {
			t.Errorf("%v: got %+v, want %d and %q", tt.err, a, tt.status, tt.want)
		}
	}
	for _, bad := range []string{"", "{}x", `{"sealed":1}`, `{"sealed":"` + strings.Repeat("A", 3*nodes.MaxJoin) + `"}`} {
		if a := post(bad); a.status < 400 || a.status >= 500 {
			t.Errorf("%.20q: got %d, want that it is refused", bad, a.status)
		}
	}
	j.err = nodes.ErrRefused
	blocked := false
	for range 50 {
		blocked = blocked || post(string(raw)).status == http.StatusTooManyRequests
	}
	if !blocked {
		t.Error("invitations can be tried without an end")
	}
	alone, _ := serving(t, Config{MCP: http.NotFoundHandler()})
	if a := ask(t, http.DefaultClient, "POST", alone+JoinPath, string(raw)); a.status != http.StatusNotFound {
		t.Errorf("a yaya that is alone: got %d, want 404", a.status)
	}
}
