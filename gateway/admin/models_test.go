package admin_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A test that measures has times and a speed, and says whether the model calls tools.
func TestTestMeasures(t *testing.T) {
	w := newWorld(t)
	for id, script := range map[string]string{
		"caller": `{"scenarios":[{"match":"numbers","steps":[{"text":"one two three four","delay_ms":1}]},{"match":"ping","steps":[{"tool_calls":[{"name":"ping","args":{"text":"pong"}}]}]}]}`,
		"talker": `{"scenarios":[{"match":"numbers","steps":[{"text":"one two","delay_ms":1}]},{"match":"ping","steps":[{"text":"pong"}]}]}`,
		"broken": `{"scenarios":[{"match":"numbers","steps":[{"text":"one two","delay_ms":1}]},{"match":"ping","steps":[{"error":{"kind":"status","status_code":400,"message":"no tools here"}}]}]}`,
	} {
		for k, v := range map[string]string{"plugin": `"llm-echo"`, "script": script} {
			if err := w.cfg.Set("providers."+id+"."+k, json.RawMessage(v)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id, want := range map[string]string{"caller": `"tools":"yes"`, "talker": `"tools":"no"`, "broken": `"tools":"failed","tool_error":"status 400: no tools here"`} {
		eventually.True(t, "the script of "+id+" is in force", func() bool { // until the plugin has heard of it
			_, body := w.do("POST", "/api/llm-providers/"+id+"/test?measure=true", "")
			return strings.Contains(body, want) && strings.Contains(body, `"first_ms":`) && strings.Contains(body, `"ok":true`)
		})
	}
}

// Services of models on this machine are found by what they answer; others are not waited for.
func TestLocalModels(t *testing.T) {
	w := newWorld(t)
	serve := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			if status == http.StatusFound {
				rw.Header().Set("Location", "http://127.0.0.1:1/")
			}
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, body)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	good := serve(http.StatusOK, `{"object":"list","data":[{"id":"qwen3"},{"id":""},{"id":"`+strings.Repeat("x", 201)+`"}]}`)
	w.admin.LocalModels = map[string]string{"good": good}
	w.admin.LocalModels["page"] = serve(http.StatusOK, "<html>")
	w.admin.LocalModels["huge"] = serve(http.StatusOK, `{"data":["`+strings.Repeat("x", 300<<10)+`"]}`)
	w.admin.LocalModels["elsewhere"] = serve(http.StatusFound, "")
	w.admin.LocalModels["absent"] = "http://127.0.0.1:1/v1"
	w.rebuild()
	if got, want := w.want("GET", "/api/local-models", "", 200, ""), `[{"name":"good","url":"`+good+`","models":["qwen3"]}]`; strings.TrimSpace(got) != want {
		t.Errorf("GET /api/local-models = %s, want %s", got, want)
	}
}
