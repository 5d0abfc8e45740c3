package upstream

import (
	"io"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/leaky"
	"github.com/yaya-ai/yaya/internal/masked"
)

// A secret that extends over several lines, as in base64 that a program has wrapped, is hidden
// in each line of standard error and of output that is not MCP.
func TestSecretsOverSeveralLines(t *testing.T) {
	const secret = `Cn4ry+/"&<=%zQ8t\K7-wX2`
	known := new(masked.Secrets)
	known.Declare(secret)
	var lines []string
	p := &Provider{cfg: Config{Secrets: known, Log: func(_, _, text string) { lines = append(lines, text) }}}
	block := "the key:\n" + leaky.Block(secret) + "\nthat was it\n"
	if _, err := io.WriteString(p.stderr(), block); err != nil {
		t.Fatal(err)
	}
	s := &session{p: p}
	for line := range strings.Lines(block) {
		s.unread([]byte(strings.TrimSuffix(line, "\n")), io.ErrUnexpectedEOF)
	}
	for _, line := range lines {
		for _, how := range leaky.Spellings(secret) {
			for _, half := range []string{how[:len(how)/2], how[len(how)/2:]} {
				if len(half) >= masked.Shortest && strings.Contains(line, half) {
					t.Errorf("the line %q has a half of the secret: %q", line, half)
				}
			}
		}
	}
	if all := strings.Join(lines, "\n"); strings.Count(all, "that was it") != 2 || strings.Count(all, "the key:") != 2 || !strings.Contains(all, masked.Mask) {
		t.Errorf("got the lines %q, want the others unchanged, and the secret hidden", lines)
	}
}
