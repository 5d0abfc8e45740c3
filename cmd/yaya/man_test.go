package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The manual page has every command with its flags, and no line that man would take for a request.
func TestManual(t *testing.T) {
	root := newRoot()
	page := manual(root)
	commands, flags := 0, 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if !sub.IsAvailableCommand() || sub.Name() == "help" {
				continue
			}
			if !sub.HasAvailableSubCommands() {
				commands++
				if !strings.Contains(page, ".SS "+roff(sub.UseLine())+"\n") {
					t.Errorf("the page has no section %q", sub.UseLine())
				}
			}
			look(sub)
		}
	}
	look(root)
	for line := range strings.Lines(page) {
		request, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case request == ".B":
			flags++
		case strings.HasPrefix(line, "."):
			if !strings.Contains(" .TH .SH .SS .PP .TP .I .nf .fi ", " "+request+" ") {
				t.Errorf("got a request %s in the page, want those of man(7)", line)
			}
		case strings.HasPrefix(line, "'"):
			t.Errorf("the line %q begins like a request", line)
		}
	}
	if commands < 60 || flags < 60 {
		t.Errorf("got %d commands and %d flags, want all", commands, flags)
	}
}

// Text that looks like requests and escapes of man stays text.
func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		".so /etc/passwd": `\&.so /etc/passwd`,
		"a\n'b":           "a\n" + `\&'b`,
		`\n--x`:           `\en\-\-x`,
	} {
		if got := roff(in); got != want {
			t.Errorf("roff(%q) = %q, want %q", in, got, want)
		}
	}
}
