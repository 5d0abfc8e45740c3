package manage

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Entry parses the configuration of one server like a file. The notes list omitted members, and
// those with another meaning in yaya.
func Entry(name string, config any) (s servers.Server, notes []string, err error) {
	file, err := json.Marshal(map[string]any{"mcpServers": map[string]any{name: config}})
	if err != nil {
		return servers.Server{}, nil, err
	}
	const source = "command line"
	cfg, err := servers.Parse(source, file, servers.FormatYaya)
	switch {
	case err != nil:
		return servers.Server{}, nil, err
	case len(cfg.Invalid) > 0:
		return servers.Server{}, nil, fmt.Errorf("server %q: %w", name, cfg.Invalid[0].Err)
	case len(cfg.Servers) != 1:
		return servers.Server{}, nil, fmt.Errorf("server %q: this is not the configuration of one server", name)
	}
	notes = notesOf(source, name, cfg.Warnings)
	for _, change := range cfg.Changes {
		notes = append(notes, change.Text)
	}
	return cfg.Servers[0], notes, nil
}

// notesOf are warnings about one server, without its name.
func notesOf(source, name string, warnings []string) (notes []string) {
	for _, w := range warnings {
		notes = append(notes, strings.TrimPrefix(w, fmt.Sprintf("%s: server %q: ", source, name)))
	}
	return notes
}

// Entries reads server entries, by name, from JSON as people copy it: one entry, an object of
// entries, a whole file, or a fragment of a file without its outer braces.
func Entries(name string, text []byte) (map[string]any, error) {
	const file = "the JSON"
	doc, err := servers.Decode(file, text)
	if err != nil && strings.HasPrefix(strings.TrimSpace(string(text)), `"`) {
		if inner, ierr := servers.Decode(file, []byte("{"+string(text)+"}")); ierr == nil {
			doc, err = inner, nil
		}
	}
	if err != nil {
		return nil, err
	}
	isEntry := func(v any) bool {
		m, ok := v.(map[string]any)
		return ok && (m["command"] != nil || m["url"] != nil || m["serverUrl"] != nil || m["httpUrl"] != nil)
	}
	if isEntry(doc) {
		if name == "" {
			return nil, errors.New("the JSON has no name for the server: yaya mcp add-json NAME JSON")
		}
		return map[string]any{name: doc}, nil
	}
	for _, key := range []string{"mcp", "mcpServers", "servers", "mcp_servers", "context_servers"} { // VS Code nests them
		if inner, ok := doc[key].(map[string]any); ok && !isEntry(inner) {
			doc = inner
		}
	}
	for n, v := range doc {
		if !isEntry(v) {
			return nil, fmt.Errorf("%q is not a server entry: it has neither a command nor a url", n)
		}
	}
	switch {
	case len(doc) == 0:
		return nil, errors.New("the JSON has no server: an entry has a command or a url")
	case name == "":
		return doc, nil
	case doc[name] != nil:
		return map[string]any{name: doc[name]}, nil
	case len(doc) > 1:
		return nil, fmt.Errorf("the JSON has several servers, but none named %q: name one of %s, or omit NAME to add all", name, strings.Join(slices.Sorted(maps.Keys(doc)), ", "))
	}
	for _, v := range doc {
		return map[string]any{name: v}, nil
	}
	return nil, nil
}

// IsURL reports whether a server's command is in fact the address of a remote server.
func IsURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// serverName matches names that can be typed everywhere. Files may contain others.
var serverName = lazyregexp.New(`^[\pL\pN][\pL\pN._-]{0,127}$`) // five megabytes

// CheckName rejects a name that cannot be typed everywhere.
func CheckName(name string) error {
	if !serverName().MatchString(name) {
		return fmt.Errorf("the name %q must begin with a letter or digit and contain only letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// scheme matches the beginning of an address.
var scheme = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// CheckCommand rejects words that cannot be meant as a server's command: an address with a
// scheme that MCP does not use, and a command line quoted as one word.
func CheckCommand(name, command string, more bool) error {
	if IsURL(command) {
		if u, err := url.Parse(command); !strings.Contains(command, "${") && (err != nil || u.Host == "") {
			return fmt.Errorf("the URL %q names no host", command)
		}
		return nil
	}
	if s := scheme().FindString(command); s != "" {
		return fmt.Errorf("MCP uses http:// and https://, not %s: use the server's http address", s)
	}
	if more || !strings.ContainsAny(command, " \t") || strings.Contains(command, "${") {
		return nil
	}
	if _, err := exec.LookPath(command); err == nil { // a path with spaces
		return nil
	}
	return fmt.Errorf("the command %q is one word: remove the quotes around the whole command, as in yaya mcp add %s %s", command, name, command)
}
