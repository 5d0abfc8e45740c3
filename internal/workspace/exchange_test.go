package workspace_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// AGT-4: edits with checks replace nothing that somebody writes while they are made, and neither do they when
// they are put back: a file is then either as it was, or as somebody else has written it.
func TestEditsWithChecks(t *testing.T) {
	errStay := errors.New("it has to stay")
	for name, tc := range map[string]struct {
		during func(t *testing.T, dir string, calls int) error // in each check of b
		want   map[string]string                               // nil: the edits are made
		kept   string                                          // the content of a temporary file that stays
	}{
		"nobody writes": {},
		"another content when it is moved": {
			during: func(_ *testing.T, _ string, _ int) error { return errStay },
			want:   map[string]string{"a": "one", "b": "one", "gone": "one"},
		},
		"written where it was": {
			during: func(_ *testing.T, dir string, calls int) error {
				if calls > 1 {
					return nil
				}
				return os.WriteFile(filepath.Join(dir, "b"), []byte("mine"), 0o600)
			},
			want: map[string]string{"a": "one", "b": "mine", "gone": "one"}, kept: "one",
		},
		"another one is written after its edit": {
			during: func(_ *testing.T, dir string, _ int) error {
				return errors.Join(errStay, os.WriteFile(filepath.Join(dir, "a"), []byte("mine"), 0o600))
			},
			want: map[string]string{"a": "mine", "b": "one", "gone": "one"}, kept: "one",
		},
		"another content in the end": {
			during: func(_ *testing.T, _ string, calls int) error {
				if calls > 1 {
					return errStay
				}
				return nil
			},
			want: map[string]string{"a": "one", "b": "one", "gone": "one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, n := range []string{"a", "b", "gone"} {
				if err := os.WriteFile(filepath.Join(dir, n), []byte("one"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w, err := (*workspace.Guard)(nil).Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.Close() }()
			calls := 0
			fine := func(string) error { return nil }
			err = w.Apply([]workspace.Edit{
				{Path: "a", Data: []byte("two"), Check: fine},
				{Path: "gone", Delete: true, Check: fine},
				{Path: "sub/new", Data: []byte("new"), Check: func(at string) error {
					if at != "" {
						t.Errorf("a new file was moved to %q, want none", at)
					}
					return nil
				}},
				{Path: "b", Data: []byte("two"), Check: func(at string) error {
					if calls++; tc.during == nil {
						return nil
					}
					if text, err := w.Text(at); err != nil || text != "one" {
						t.Errorf("b was moved to %s with %q, %v", at, text, err)
					}
					return tc.during(t, dir, calls)
				}},
			})
			want := tc.want
			if want == nil {
				want = map[string]string{"a": "two", "b": "two", "sub/new": "new"}
			}
			got, kept := map[string]string{}, ""
			werr := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(p)
				rel := strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(p, dir)), "/")
				if workspace.IsTemp(rel) {
					kept += string(data)
				} else {
					got[rel] = string(data)
				}
				return err
			})
			if werr != nil {
				t.Fatal(werr)
			}
			if (err == nil) != (tc.want == nil) || !maps.Equal(got, want) || kept != tc.kept {
				t.Errorf("Apply = %v, with %q, and %q kept; want %q, and %q", err, got, kept, want, tc.kept)
			}
		})
	}
}
