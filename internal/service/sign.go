package service

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/userfile"
)

const written = " Written by yaya service install, sum "

// signed puts a comment before a text that says who wrote it.
func signed(comment, text string) string {
	end := ""
	if comment == "<!--" {
		end = " -->"
	}
	return comment + written + sum(text) + end + "\n" + text
}

func sum(text string) string {
	all := sha256.Sum256([]byte(text))
	return hex.EncodeToString(all[:8])
}

// ours reports whether a file is as yaya wrote it.
func ours(text string) bool {
	_, rest, found := strings.Cut(text, written)
	first, body, whole := strings.Cut(rest, "\n")
	return found && whole && strings.TrimSuffix(first, " -->") == sum(body)
}

// States of a file of the service.
const (
	absent  = iota
	same    // it has this content
	older   // yaya wrote another content
	foreign // somebody else wrote it, or changed it
)

// look says what a file is, beside what it should be.
func look(path, want string) (state int, err error) {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return 0, err
	case !st.Mode().IsRegular():
		return foreign, nil
	}
	data, found, err := userfile.Read(path)
	switch text := string(data); {
	case err != nil:
		return 0, err
	case !found:
		return absent, nil
	case text == want:
		return same, nil
	case ours(text):
		return older, nil
	}
	return foreign, nil
}

// write puts files into a folder. Nothing is written if one of those that are there is not
// yaya's; changed says that something was.
func write(dir string, files []File) (changed []string, err error) {
	var todo []File
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		state, err := look(path, f.Text)
		switch {
		case err != nil:
			return nil, err
		case state == foreign:
			return nil, notOurs(path)
		case state != same:
			todo = append(todo, f)
		}
	}
	if len(todo) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:forbidigo,gosec // the service manager's folder, which others may read
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	for _, f := range todo {
		if _, err := atomicfile.WriteMode(root, f.Name, []byte(f.Text), 0o644); err != nil {
			return changed, fmt.Errorf("write %s: %w", filepath.Join(dir, f.Name), err)
		}
		changed = append(changed, filepath.Join(dir, f.Name))
	}
	return changed, nil
}

func notOurs(path string) error {
	return fmt.Errorf("%s was written or changed by somebody else, and yaya leaves it alone: move it away (put your changes into a drop-in, %s.d/), then run the command again", path, path)
}
