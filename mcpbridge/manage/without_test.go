package manage_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// A server that lacks a secret runs with nothing, although the bridge has it as it is: whoever sets
// the secret is told that the server starts with it.
func TestWithoutASecret(t *testing.T) {
	set := map[string]bool{}
	r := start(t, `"a":{"command":"true","env":{"K":"${secret:key}"}},"b":{"command":"true","disabled":true,"env":{"K":"${secret:key}"}},"c":{"command":"true"}`, "", func(cfg *manage.Config, _ *rig) {
		cfg.Secret = func(name string) (string, error) {
			if !set[name] {
				return "", fmt.Errorf("there is no secret %q", name)
			}
			return "x", nil
		}
	})
	if got := r.Without("key"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Without() of a secret that is not set = %q, want the server that refers to it", got)
	}
	set["key"] = true
	if got := r.Without("key"); len(got) != 0 {
		t.Errorf("Without() of a secret that its server runs with = %q, want none", got)
	}
}
