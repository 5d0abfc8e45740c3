//go:build unix

package proc_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/proc"
)

// USE-10: a command that is missing is named with where it was looked for, in one
// line however long PATH is.
func TestMissingCommand(t *testing.T) {
	many := "/a"
	for range 40 {
		many += ":/some/folder/" + strings.Repeat("x", len(many)%7)
	}
	for _, tc := range []struct{ name, path, want string }{
		{"no PATH", "", `command "no-such" was not found: PATH names no folder; give its full path`},
		{"relative folders count for nothing", "bin:.", `command "no-such" was not found: PATH names no folder; give its full path`},
		{"few", "/a:/b:/a", `command "no-such" was not found in PATH (/a, /b); install it, or give its full path`},
		{"many", "/a:/b:/c:/d:/e", `command "no-such" was not found in PATH (5 folders, /a to /e); install it, or give its full path`},
		{"very many", many + ":/z", `folders, /a to /z); install it, or give its full path`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m proc.Manager
			defer m.Close(t.Context())
			_, err := m.Start(proc.Spec{Path: "no-such", Env: []string{"PATH=" + tc.path}})
			if err == nil || !strings.HasSuffix(err.Error(), tc.want) || len(err.Error()) > 200 {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if !errors.Is(err, exec.ErrNotFound) {
				t.Errorf("%v is not exec.ErrNotFound", err)
			}
		})
	}
}
