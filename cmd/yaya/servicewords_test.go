package main

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/service"
)

// The commands of a service of the system find its folders and its configuration file.
func TestCommandsOfAService(t *testing.T) {
	for args, want := range map[string]string{
		"serve --no-open --data-dir /d --config-dir /c --config /f --listen=:1": "sudo -u yaya /bin/yaya --data-dir /d --config-dir /c --config /f",
		"serve --no-open --data-dir /d --config-dir /c":                         "sudo -u yaya /bin/yaya --data-dir /d --config-dir /c",
		"serve --no-open --listen=:1":                                           "sudo -u yaya /bin/yaya",
	} {
		got := strings.Join(ofService(service.Spec{System: true, User: "yaya", Program: "/bin/yaya", Args: strings.Fields(args)}), " ")
		if got != want {
			t.Errorf("of %q: got %q, want %q", args, got, want)
		}
	}
}
