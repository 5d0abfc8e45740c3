package unread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/unread"
)

// Errors of the system and marked ones say nothing about a file's content, whatever wraps them.
func TestIs(t *testing.T) {
	_, missing := os.Open("/none/there")
	for name, c := range map[string]struct {
		err  error
		want bool
		hint string
	}{
		"permission denied":  {fmt.Errorf("x: %w", &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}), true, "chown"},
		"not permitted":      {syscall.EPERM, true, "chown"},
		"a disk that fails":  {errors.Join(errors.New("x"), syscall.EIO), true, "dmesg"},
		"no descriptors":     {syscall.EMFILE, true, "ulimit"},
		"a folder":           {syscall.EISDIR, true, "in its place"},
		"a file that went":   {missing, true, ""},
		"a deadline":         {fmt.Errorf("key: %w", context.DeadlineExceeded), true, ""},
		"a marked error":     {fmt.Errorf("x: %w", unread.Error(errors.New("no key"))), true, "no key"},
		"not JSON":           {json.Unmarshal([]byte("{"), new(any)), false, ""},
		"a file that is cut": {io.ErrUnexpectedEOF, false, ""},
		"no error":           {unread.Error(nil), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unread.Is(c.err); got != c.want {
				t.Errorf("Is(%v) = %v, want %v", c.err, got, c.want)
			}
			if c.want && !strings.Contains(unread.Problem(c.err), c.hint) {
				t.Errorf("Problem(%v) = %q, want %q in it", c.err, unread.Problem(c.err), c.hint)
			}
		})
	}
}
