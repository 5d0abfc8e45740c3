package worded_test

import (
	"context"
	"errors"
	"testing"

	"github.com/yaya-ai/yaya/internal/worded"
)

// The text is the given one, and programs still find the cause.
func TestError(t *testing.T) {
	err := worded.Error(context.DeadlineExceeded, "the lock %s is taken", "x")
	if got, want := err.Error(), "the lock x is taken"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("errors.Is does not find the cause")
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 matches", 1: "1 match", 2: "2 matches", -1: "-1 matches"} {
		if got := worded.Count(n, "match", "matches"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
