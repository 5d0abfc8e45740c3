package servers

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// Line returns the line on which a JSON file configures the named server; 0 if it is unknown.
func Line(file string, data []byte, format Format, name string) int {
	if ext := strings.ToLower(filepath.Ext(file)); ext == ".toml" || ext == ".yaml" || ext == ".yml" {
		return 0
	}
	doc, err := hujson.Parse(data)
	if err != nil {
		return 0
	}
	for _, top := range slices.Concat(dialects[format].top, anyTop) {
		if v := doc.Find("/" + top + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)); v != nil {
			return lineAt(data, v.StartOffset)
		}
	}
	return 0
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// withLine adds the line to an error of the strict check of a file, which names a byte offset.
func withLine(data []byte, err error) error {
	_, at, found := strings.Cut(err.Error(), " at byte ")
	offset, bad := strconv.Atoi(at)
	if !found || bad != nil {
		return err
	}
	return fmt.Errorf("line %d: %w", lineAt(data, offset), err)
}

// syntaxError rewords a parser's error for users, who do not know the package.
func syntaxError(err error) error {
	return errors.New("it is not JSON: " + strings.TrimPrefix(err.Error(), "hujson: "))
}
