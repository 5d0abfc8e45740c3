package main

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// openPage opens a URL in the user's browser, if there is a desktop. The browser is its
// user's from then on: it is not ended with yaya.
func openPage(url string) error {
	var argv []string // no shell sees the URL (R21)
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
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:forbidigo,gosec,noctx // it outlives yaya, on purpose
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // so that nothing of it is left while yaya runs
	return nil
}
