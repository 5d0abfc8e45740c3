package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Shells complete the names of servers, secrets and providers, with and without a daemon, and of tools with one; a
// name that a shell would read as more than a word is left out.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for kind, daemon := range map[string]bool{"alone": false, "beside a daemon": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.edit("mcp.json", `{"mcpServers":{"one":{"command":"/nonexistent/x","disabled":true},"two":{"command":"/nonexistent/x","disabled":true}}}`)
			b.must("provider", "add", "local", "--plugin", "llm-echo")
			b.secret("token", "canary-value-0123456789")
			b.secret("to.ken", "canary-value-0123456789")
			if daemon {
				b.serve()
			}
			for _, tt := range []struct {
				line string
				want []string
			}{
				{"mcp restart ", []string{"one", "two"}},
				{"mcp get t", []string{"two"}},
				{"mcp get one ", nil},
				{"mcp logs nobody", nil},
				{"catalog update o", []string{"one"}},
				{"secret remove to", []string{"to.ken", "token"}},
				{"provider use lo", []string{"local"}},
			} {
				if got := b.completes(strings.Split(tt.line, " ")...); !slices.Equal(got, tt.want) {
					t.Errorf("%q is completed by %q, want %q", tt.line, got, tt.want)
				}
			}
		})
	}
}

// completes returns what the shell offers for the last of some words, sorted.
func (b *box) completes(words ...string) (got []string) {
	b.t.Helper()
	out, said, code := b.in(b.dir, append([]string{"__complete"}, words...)...)
	if code != 0 {
		b.t.Errorf("%q: the completion ends with %d: %s", words, code, said)
	}
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	return got
}

// A name that a shell would read as more than a word completes nothing.
func TestCompletedNamesAreWords(t *testing.T) {
	for name, want := range map[string]bool{"fs": true, "a.b-c_d/e": true, "": false, "-rf": false, "$(reboot)": false, "a b": false, "a;b": false, "a\nb": false, "é": false} {
		if got := simple().MatchString(name); got != want {
			t.Errorf("%s is a word: %v, want %v", fmt.Sprintf("%q", name), got, want)
		}
	}
}
