package manage_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// A tool that is switched off is in the entry's list, and nothing else changes; one that is
// switched on is not. A change is recorded before it happens.
func TestSwitchTool(t *testing.T) {
	const before = `{"mcpServers":{"one":{"command":"cat","disabled_tools":["b"]}}}`
	r := start(t, `"one":{"command":"cat","disabled_tools":["b"]}`, "")
	ctx := t.Context()
	r.bridge.takes()
	for _, c := range []struct {
		name, tool string
		on         bool
		fails      error
		records    int
		file       string
	}{
		{"on, as it is", "a", true, nil, 0, before},
		{"off, unrecorded", "a", false, errors.New("the audit cannot be written"), 1, before},
		{"off", "a", false, nil, 1, `{"mcpServers":{"one":{"command":"cat","disabled_tools":["b","a"]}}}`},
		{"off, as it is", "a", false, nil, 0, `{"mcpServers":{"one":{"command":"cat","disabled_tools":["b","a"]}}}`},
		{"on", "b", true, nil, 1, `{"mcpServers":{"one":{"command":"cat","disabled_tools":["a"]}}}`},
		{"the last one on", "a", true, nil, 1, `{"mcpServers":{"one":{"command":"cat"}}}`},
	} {
		n := 0
		err := r.SwitchTool(ctx, "one", c.tool, c.on, func() error { n++; return c.fails })
		if !errors.Is(err, c.fails) || n != c.records {
			t.Errorf("%s: SwitchTool() = %v, recorded %d times, want %v and %d", c.name, err, n, c.fails, c.records)
		}
		if got := r.read(); got != c.file {
			t.Errorf("%s: the file is %s, want %s", c.name, got, c.file)
		}
	}
	r.did("stop one", "start one", "stop one", "start one", "stop one", "start one")
	wantError(t, "SwitchTool() of no server", r.SwitchTool(ctx, "two", "a", false, recorded), manage.ErrUnknown, `there is no server "two"`)
}

// A list of offered tools gets the tool; a pattern that withholds it is not the switch's to
// change.
func TestSwitchToolInLists(t *testing.T) {
	r := start(t, `"one":{"command":"cat","enabled_tools":["a"],"disabled_tools":["x_*"]}`, "")
	if err := r.SwitchTool(t.Context(), "one", "b", true, recorded); err != nil {
		t.Fatal(err)
	}
	if got := r.read(); !strings.Contains(got, `"enabled_tools":["a","b"]`) {
		t.Errorf("the file is %s, want b among its tools", got)
	}
	wantError(t, "SwitchTool() against a pattern", r.SwitchTool(t.Context(), "one", "x_y", true, recorded), manage.ErrRefused, "a pattern in disabled_tools")
}

func TestSwitchToolOfNamedFiles(t *testing.T) {
	r := start(t, one, "", func(c *manage.Config, _ *rig) { c.Own = false })
	wantError(t, "SwitchTool()", r.SwitchTool(t.Context(), "one", "a", false, recorded), manage.ErrRefused, "--mcp-config")
	r.did()
}
