package config_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/kernel/config"
)

// Derive computes its value once for each state of the configuration, whichever layer
// has changed, errors included.
func TestDerive(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s, err := config.Open(config.Options{Root: root, FileName: "f", File: []byte("[approval.groups]\nteam = [\"device:a\"]\n")})
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	derived := config.Derive(s, func(s *config.Store) ([]string, error) {
		made++
		groups, err := s.Groups()
		if len(groups["team"]) == 0 {
			err = errors.Join(err, errors.New("empty"))
		}
		return groups["team"], err
	})
	for _, step := range []struct {
		name   string
		change func() error
		want   []string
		made   int
		fails  bool
	}{
		{"the file's", func() error { return nil }, []string{"device:a"}, 1, false},
		{"nothing has changed", func() error { return nil }, []string{"device:a"}, 1, false},
		{"set", func() error { return s.Set("approval.groups.team", []byte(`["device:b"]`)) }, []string{"device:b"}, 2, false},
		{"an error", func() error { return s.Set("approval.groups.team", []byte(`[]`)) }, []string{}, 3, true},
		{"the same error", func() error { return nil }, []string{}, 3, true},
		{"a flag", func() error { return s.Override("approval.groups.team", `["device:c"]`) }, []string{"device:c"}, 4, false},
	} {
		if err := step.change(); err != nil {
			t.Fatalf("%s: the change = %v, want no error", step.name, err)
		}
		got, err := derived()
		if !slices.Equal(got, step.want) || made != step.made || (err != nil) != step.fails {
			t.Errorf("%s: got %v, %v, made %d times; want %v, made %d times", step.name, got, err, made, step.want, step.made)
		}
	}
	for key, v := range map[string]string{"approval.groups.x": `"device:a"`, "approval.groups": `["device:a"]`, "approval.groups.x.y z": `[]`} {
		if err := s.Set(key, []byte(v)); err == nil {
			t.Errorf("%s = %s is accepted", key, v)
		}
	}
}
