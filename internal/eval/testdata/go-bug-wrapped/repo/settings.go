package settings

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
)

func read(name string) (string, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("settings %s: %w", name, err)
	}
	return string(raw), nil
}

// Load reads lines of the form key=value.
func Load(name string) (map[string]string, error) {
	text, err := read(name)
	if err == fs.ErrNotExist {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			out[k] = v
		}
	}
	return out, nil
}
