package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/mounts"
	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// A rule holds at the second path of a file, unless the policy names that.
func TestRulesOfSecondPaths(t *testing.T) {
	top := besidetmp.Dir(t)
	// A link stands for what a kernel would show at a second path.
	secret, second := filepath.Join(top, "home/.netrc"), filepath.Join(top, "scratch/x/.netrc")
	if err := errors.Join(os.MkdirAll(filepath.Dir(secret), 0o700), os.MkdirAll(filepath.Dir(second), 0o700), os.WriteFile(secret, []byte("words"), 0o600), os.Link(secret, second)); err != nil {
		t.Fatal(err)
	}
	table, err := mounts.Parse(strings.NewReader(strings.ReplaceAll("1 0 8:1 / / rw - ext4 x rw\n2 1 8:1 TOP/home TOP/scratch/x rw - ext4 x rw\n", "TOP", top)))
	if err != nil {
		t.Fatal(err)
	}
	shown := &Run{box: &Box{}, mounts: table}
	err = shown.secondPaths(&rules{all: []inside.Rule{{Path: secret, Access: inside.Hide}, {Path: "/tmp", Access: inside.Private, From: filepath.Join(top, "scratch")}}}, &inside.Plan{Mounts: true})
	if err == nil || !strings.Contains(err.Error(), "unmount "+second) {
		t.Errorf("in what the sandbox has as its /tmp: got %v, want that the path is named", err)
	}
	for name, c := range map[string]struct {
		policy Policy
		rules  []inside.Rule
		want   []string // hidden in the end
	}{
		"something else is shown there":    {Policy{}, []inside.Rule{{Path: secret, Access: inside.Read, From: filepath.Join(top, "other")}}, []string{second}},
		"the policy names the second path": {Policy{Read: []Path{{name: second}}}, []inside.Rule{{Path: secret, Access: inside.Hide}, {Path: second, Access: inside.Read}}, []string{secret}},
		"nothing is hidden":                {Policy{}, []inside.Rule{{Path: secret, Access: inside.Read}}, nil},
		"it is read-only":                  {Policy{}, []inside.Rule{{Path: top, Access: inside.Write}, {Path: secret, Access: inside.Read}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Run{box: &Box{}, policy: c.policy, mounts: table}
			s, plan := &rules{all: c.rules}, &inside.Plan{Mounts: true}
			if err := r.secondPaths(s, plan); err != nil {
				t.Fatal(err)
			}
			sorted := inside.Sort(s.all)
			for _, at := range c.want {
				if got := inside.Effective(sorted, at, inside.Read); got != inside.Hide {
					t.Errorf("%s: got %s, want it hidden", at, got)
				}
			}
			hidden := 0
			for _, rule := range sorted {
				if rule.Access == inside.Hide {
					hidden++
				}
			}
			if hidden != len(c.want) {
				t.Errorf("%d paths are hidden by %v, want %d", hidden, sorted, len(c.want))
			}
			if name == "it is read-only" && inside.Effective(sorted, second, inside.Hide) != inside.Read {
				t.Errorf("%s can be written by %v, want it read-only", second, sorted)
			}
		})
	}
}

// More second paths than a plan has room for refuse the start.
func TestTooManySecondPaths(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"1 0 8:1 / / rw - ext4 x rw"}
	secret := filepath.Join(top, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range maxSecond + 1 {
		at := filepath.Join(top, "a"+strings.Repeat("b", i%200), strings.Repeat("c", i/200+1))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.Link(secret, at)); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, "2 1 8:1 "+secret+" "+at+" rw - ext4 x rw")
	}
	for n, want := range map[int]string{maxSecond: "", maxSecond + 1: "more than"} {
		table, err := mounts.Parse(strings.NewReader(strings.Join(lines[:n+1], "\n")))
		if err != nil {
			t.Fatal(err)
		}
		r := &Run{box: &Box{}, mounts: table}
		s := &rules{all: []inside.Rule{{Path: secret, Access: inside.Hide}}}
		err = r.secondPaths(s, &inside.Plan{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with %d second paths: got %v, want %q", n, err, want)
		}
	}
}
