package sdk

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// The patterns name files, because a folder would be embedded without __init__.py, and with
// what an interpreter has cached there.
//
//go:embed go/*.go python/yaya_plugin/*.py python/yaya_plugin/py.typed typescript/*.js typescript/*.d.ts
var sources embed.FS

// folders are those of the sources, by language.
var folders = map[string]string{"go": "go", "python": "python/yaya_plugin", "typescript": "typescript"}

// Sources returns the files of the SDK of a language, by name: go, python or typescript.
func Sources(language string) (map[string][]byte, error) {
	dir, ok := folders[language]
	if !ok {
		return nil, fmt.Errorf("there is no SDK for %s", language)
	}
	entries, err := fs.ReadDir(sources, dir)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(entries))
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if out[e.Name()], err = sources.ReadFile(path.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return out, nil
}
