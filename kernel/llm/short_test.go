package llm_test

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/freeport"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// The error of a service that cannot be reached names its host once, and the reason.
func TestShortErrors(t *testing.T) {
	host := freeport.Addr(t)
	_, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + host + "/v1/chat/completions")
	if err == nil {
		t.Fatal("a port that nobody listens on answers")
	}
	got := llm.AsError(err)
	_, isSystem := errors.AsType[syscall.Errno](got.Err)
	if text := got.Err.Error(); got.Kind != event.LLMConnection || !isSystem || !strings.HasPrefix(text, host+": ") || strings.Contains(text, "dial") || strings.Count(text, host) != 1 {
		t.Errorf("AsError(%v) = %v of the kind %s, want the host and the reason", err, got.Err, got.Kind)
	}
}
