package main

import (
	"errors"
	"os"
	"runtime"

	"github.com/yaya-ai/yaya/internal/proc"
)

// openPage opens a URL in the browser that BROWSER names, else in the system's default, if there
// is a desktop. The browser outlives yaya.
func openPage(url string) error {
	var argv []string // no shell sees the URL
	browser := os.Getenv("BROWSER")
	switch {
	case browser != "":
		argv = []string{browser, url}
	case runtime.GOOS == "darwin":
		argv = []string{"open", url}
	case runtime.GOOS == "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return errors.New("there is no desktop")
		}
		argv = []string{"xdg-open", url}
	}
	return proc.StartForUser(argv...)
}
