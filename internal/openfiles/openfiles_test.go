package openfiles_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/openfiles"
)

// REL-11, OP-54: the shares fit into the limit together, and a low limit is said with its remedy.
func TestShares(t *testing.T) {
	for _, tc := range []struct {
		limit uint64
		want  openfiles.Shares
		warns bool
	}{
		{256, openfiles.Shares{Connections: 128, Sandboxes: 64, Tapes: 32}, true},
		{1024, openfiles.Shares{Connections: 512, Sandboxes: 204, Tapes: 128}, true},
		{4096, openfiles.Shares{Connections: 2048, Sandboxes: 819, Tapes: 256}, false},
		{1 << 20, openfiles.Shares{Connections: 32 << 10, Sandboxes: 64 << 10, Tapes: 256}, false},
		{math.MaxUint64, openfiles.Shares{Connections: 32 << 10, Sandboxes: 64 << 10, Tapes: 256}, false},
	} {
		got := openfiles.Of(tc.limit)
		if got != tc.want {
			t.Errorf("Of(%d) = %+v, want %+v", tc.limit, got, tc.want)
		}
		if sum := got.Connections + got.Sandboxes + got.Tapes; uint64(sum) > tc.limit-tc.limit/10 { //nolint:gosec // small
			t.Errorf("Of(%d) gives away %d and leaves too little", tc.limit, sum)
		}
		if warning := openfiles.Warning(tc.limit); (warning != "") != tc.warns || tc.warns && !strings.Contains(warning, "ulimit -n 4096") {
			t.Errorf("Warning(%d) = %q, want one: %v, with the command", tc.limit, warning, tc.warns)
		}
	}
}

// OP-54: running out of descriptors is recognised however deep it is wrapped.
func TestExhausted(t *testing.T) {
	err := fmt.Errorf("open: %w", &os.PathError{Op: "open", Path: "/x", Err: syscall.EMFILE})
	if !openfiles.Exhausted(err) || openfiles.Exhausted(syscall.ENOENT) || openfiles.Exhausted(nil) {
		t.Error("Exhausted does not tell EMFILE from other errors")
	}
}
