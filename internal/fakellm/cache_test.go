package fakellm

import (
	"encoding/json"
	"strings"
	"testing"
)

// Prompts come from the cache in steps of 128 tokens, from 1024 on, as far as an earlier one began
// with the same bytes.
func TestCache(t *testing.T) {
	c := &cache{known: map[[32]byte]bool{}}
	prompt := func(text string) Prompt {
		raw, err := json.Marshal(map[string]any{"messages": []map[string]string{{"role": "user", "content": text}}})
		if err != nil {
			t.Fatal(err)
		}
		return c.read(Request{raw: raw})
	}
	long := strings.Repeat("0123456789abcdef", 300) // 1200 tokens
	for _, tc := range []struct {
		name, text string
		cached     int
	}{
		{"the first", long, 0},
		{"the same", long, 1152},
		{"longer", long + strings.Repeat("x", 512), 1152},
		{"as long", long + strings.Repeat("x", 512), 1280},
		{"another beginning", "x" + long, 0},
		{"a beginning that is too short", long[:3200], 0},
		{"another end", long[:4400] + strings.Repeat("y", 4000), 1024},
	} {
		if p := prompt(tc.text); p.Cached != tc.cached || p.Tokens < len(tc.text)/4 {
			t.Errorf("%s: %d of %d tokens come from the cache, want %d", tc.name, p.Cached, p.Tokens, tc.cached)
		}
	}
}
