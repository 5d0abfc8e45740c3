package main

import (
	"errors"
	"os"
	"runtime"

	"github.com/yaya-ai/yaya/internal/proc"
)

// openPage opens a URL in the user's browser, if there is a desktop. The browser outlives yaya.
func openPage(url string) error {
	var argv []string // no shell sees the URL
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", url}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no desktop")
		}
		argv = []string{"xdg-open", url}
	}
	return proc.StartForUser(argv...)
}
