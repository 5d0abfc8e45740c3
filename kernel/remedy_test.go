package kernel_test

import (
	"strings"
	"testing"
)

// USE-6: an error of a service that can be remedied says how: how long to wait, for instance.
func TestRemedies(t *testing.T) {
	for name, tt := range map[string]struct{ failure, want string }{
		"busy for a while": {`{"kind":"status","status_code":429,"retry_after_s":299.5,"message":"slow down"}`, "status 429: slow down; wait 5m0s, or let others answer (setting model.fallbacks)"},
		"busy":             {`{"kind":"status","status_code":429,"message":"slow down"}`, "status 429: slow down; wait, or let others answer (setting model.fallbacks)"},
		"overloaded":       {`{"kind":"status","status_code":529,"message":"overloaded"}`, "status 529: overloaded; try again later, or let others answer (setting model.fallbacks)"},
		"too slow":         {`{"kind":"timeout","message":"no headers"}`, "no headers; try again later, or let others answer"},
		"nothing":          {`{"kind":"empty","message":"the model answered nothing"}`, "the model answered nothing; send a message to try again, or choose another model"},
		"not there":        {`{"kind":"status","status_code":404,"message":"no such model"}`, "status 404: no such model; does the service have this model, and is this the address of its API? (yaya provider list)"},
		"not paid for":     {`{"kind":"status","status_code":429,"message":"insufficient_quota"}`, "status 402: insufficient_quota; the account at the service has no credit left: add some there, or let others answer"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{script: `{"steps":[` + strings.Repeat(`{"error":`+tt.failure+`},`, 3) + `{"error":` + tt.failure + `}]}`}, func(t *testing.T, w *world) {
				if out := w.run("s1", "go"); out.Err == nil || !strings.Contains(out.Err.Error(), tt.want) {
					t.Errorf("got %v, want %q", out.Err, tt.want)
				}
				if n := len(w.web.all("llm.call.retry")); n > 0 && (name == "busy for a while" || name == "not paid for") {
					t.Errorf("the service was asked again %d times", n)
				}
			})
		})
	}
}
