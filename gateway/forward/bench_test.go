package forward_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// BenchmarkForward compares a request that a node serves with one that it passes on, over a NATS
// server in this process.
func BenchmarkForward(b *testing.B) {
	r := newRig(b)
	answer := func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}
	r.serve(r.identity, answer)
	here := httptest.NewServer(http.HandlerFunc(answer))
	b.Cleanup(here.Close)
	r.as = auth.LocalOwner
	for name, url := range map[string]string{"here": here.URL, "there": r.url + "/south/"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				resp, err := http.Post(url, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)) //nolint:forbidigo // test
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Fatal(resp.Status)
				}
			}
		})
	}
}
