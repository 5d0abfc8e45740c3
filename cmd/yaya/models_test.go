package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// someModels is a list in the form of models.dev.
const someModels = `{"openai":{"models":{"gpt-next":{"id":"gpt-next","name":"GPT Next","tool_call":true,"limit":{"context":123000,"output":1000},"modalities":{"input":["text"],"output":["text"]},"cost":{"input":7,"output":9}}}}}`

// modelSource serves lists of models, and returns its address.
func modelSource(t *testing.T, at map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, at[r.URL.Path]) }))
	t.Cleanup(s.Close)
	return s.URL
}

// MIS-3: the list of models is shown, replaced by one from its source, and read again at the next
// start. yaya checks the list of the source, and keeps its own if that is wrong.
func TestModels(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if out := b.must("provider", "models", "anthropic", "HAIKU"); !strings.Contains(out, "claude-haiku-4-5") || strings.Contains(out, "gpt-5") || !strings.Contains(out, "models.dev") {
		t.Errorf("got %s, want the models with these words, and the source", out)
	}
	source := modelSource(t, map[string]string{"/": someModels, "/page": `<html>`, "/nothing": `{}`, "/empty": `{"openai":{"models":{}}}`})
	for _, bad := range []string{"http://example.com/api.json", "nonsense", "https://user:pass@example.com/"} {
		if out, err := b.run("config", "set", "models.source", bad); err == nil || !strings.Contains(out, "models.source must be an https URL") {
			t.Errorf("models.source=%s: got %v, %s; want it refused", bad, err, out)
		}
	}
	b.must("config", "set", "models.source", source+"/")
	if out := b.must("provider", "refresh"); !strings.Contains(out, " models from "+source) {
		t.Errorf("got %s, want the number of models and the source", out)
	}
	if out := b.must("provider", "models", "gpt-next"); !strings.Contains(out, "123k") || !strings.Contains(out, "7") {
		t.Errorf("after a restart: got %s, want the new model", out)
	}
	if out := b.must("provider", "models", "local"); !strings.Contains(out, "gpt-oss:20b") {
		t.Errorf("got %s, want the local models, too", out)
	}
	kept := filepath.Join(b.dir, "d", "models.json")
	before, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/page", "/nothing", "/empty", "/unknown"} {
		b.must("config", "set", "models.source", source+path)
		if out, err := b.run("provider", "refresh"); err == nil || !strings.Contains(out, source) {
			t.Errorf("%s: got %v, %s; want an error that names the source", path, err, out)
		}
	}
	if after, err := os.ReadFile(kept); err != nil || string(after) != string(before) {
		t.Errorf("the list has changed: %v, %s", err, after)
	}
	if err := os.WriteFile(kept, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, warned, _ := b.in(b.dir, "provider", "models", "claude-haiku"); !strings.Contains(out, "claude-haiku-4-5") || !strings.Contains(warned, "yaya provider refresh replaces it") {
		t.Errorf("with a damaged list: got %s and %s, want that of yaya, and a warning", out, warned)
	}
}
