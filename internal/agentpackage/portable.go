package agentpackage

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Identifiers of Agent Plugins 1.0.0. They are compared, and nothing is fetched.
const (
	schemas      = "https://agent-plugins.org/schemas/"
	pluginSchema = schemas + "1.0.0/plugin.schema.json"
	mcpSchema    = schemas + "1.0.0/mcp.schema.json"
)

// portableName is the name of a package (section 5.5); no two dots or dashes follow one another.
var portableName = lazyregexp.New(`^[a-z0-9]([a-z0-9.-]{0,62}[a-z0-9])?$`)

// portable reads a package of Agent Plugins (sections 5 to 8 of its specification).
func (r *reader) portable(m map[string]any, schema string) error {
	r.out.Format = AgentPlugins
	if schema != pluginSchema {
		return fmt.Errorf("it is of another version of Agent Plugins (%.120s), and yaya reads 1.0.0", schema)
	}
	texts := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		var err error
		switch v := m[key]; key {
		case "$schema":
		case "name", "version", "description", "homepage", "repository", "license":
			texts[key], err = text(v)
		case "author":
			err = author(v)
		case "keywords":
			_, err = list(v)
		case "extensions":
			if _, ok := v.(map[string]any); !ok {
				r.note("extensions in %s is not an object, and is ignored", portable)
			}
		default:
			r.note("%s has the unknown member %.80q, which is ignored", portable, key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	name := texts["name"]
	if !portableName().MatchString(name) || strings.Contains(name, "--") || strings.Contains(name, "..") {
		return fmt.Errorf("its name %.80q does not have 1 to 64 lower-case letters, digits, single dashes and dots between letters or digits", name)
	}
	if err := r.identify(name, texts["version"], texts["description"]); err != nil {
		return err
	}
	r.skills("skills")
	r.portableServers()
	r.sandboxes(m["extensions"])
	if data, ok := r.files[own+"/hooks.toml"]; ok {
		hooks, err := hookconf.Parse(data, own+"/hooks.toml")
		if err != nil {
			return err
		}
		r.out.Hooks = hooks
	}
	return nil
}

// sandboxes reads what the package asks for its servers in yaya's part of the manifest:
// {"com.yaya.agent": {"sandbox": {"<server>": {…}}}}, in the form of "sandbox" in an entry.
func (r *reader) sandboxes(v any) {
	all, _ := v.(map[string]any)
	mine, _ := all[own].(map[string]any)
	boxes, _ := mine["sandbox"].(map[string]any)
	for i := range r.out.Servers {
		if s := &r.out.Servers[i]; s.kind == "stdio" {
			s.sandbox = boxes[s.Name]
		}
	}
}

func text(v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", errors.New("it is not a text")
	}
	return s, nil
}

func list(v any) ([]string, error) {
	all, ok := v.([]any)
	if !ok {
		return nil, errors.New("it is not a list of texts")
	}
	out := make([]string, len(all))
	for i, x := range all {
		if out[i], ok = x.(string); !ok {
			return nil, errors.New("it is not a list of texts")
		}
	}
	return out, nil
}

func table(v any) (map[string]string, error) {
	all, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object of texts")
	}
	out := map[string]string{}
	for key, x := range all {
		if out[key], ok = x.(string); !ok {
			return nil, errors.New("it is not an object of texts")
		}
	}
	return out, nil
}

func author(v any) error {
	t, err := table(v)
	for key := range t {
		if key != "name" && key != "email" && key != "url" {
			err = fmt.Errorf("unknown member %.80q", key)
		}
	}
	return err
}

// portableServers reads mcp.json (section 7.2). A mistake costs the server that has it, or all
// servers, and nothing else.
func (r *reader) portableServers() {
	const file = "mcp.json"
	data, ok := r.files[file]
	if !ok {
		if r.has(file) {
			r.fault("%s is too large", file)
		}
		return
	}
	m, err := object(data, file)
	if err != nil {
		r.fault("%v", err)
		return
	}
	servers, ok := m["mcpServers"].(map[string]any)
	switch {
	case m["$schema"] != mcpSchema:
		r.fault("%s: its $schema is not %s", file, mcpSchema)
		return
	case !ok || len(m) != 2:
		r.fault(`%s: it needs "$schema" and "mcpServers", and has nothing else`, file)
		return
	}
	r.servers(file, servers, portableServer)
}

// members are those of the three kinds of servers, each beside its type.
var members = map[string][]string{
	"stdio":           {"command", "args", "env", "cwd"},
	"streamable-http": {"url", "headers"},
	"sse":             {"url", "headers"},
}

// portableServer reads one server (section 7.2.1).
func portableServer(entry map[string]any) (s Server, err error) {
	kind, _ := entry["type"].(string)
	may, ok := members[kind]
	if !ok {
		return s, errors.New(`its type is not "stdio", "streamable-http" or "sse"`)
	}
	s = Server{kind: kind, literal: true}
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		v := entry[key]
		switch {
		case key == "type":
			continue
		case !slices.Contains(may, key):
			return s, fmt.Errorf("a server of type %s has no member %.80q", kind, key)
		}
		switch key {
		case "command":
			s.command, err = text(v)
		case "args":
			s.args, err = list(v)
		case "env":
			s.env, err = table(v)
		case "cwd":
			s.dir, err = text(v)
		case "url":
			s.url, err = text(v)
		case "headers":
			s.headers, err = table(v)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", key, err)
		}
	}
	if kind == "streamable-http" {
		s.kind = "http"
	}
	if kind == "stdio" {
		return s, s.checkProgram()
	}
	return s, s.checkRemote()
}

// checkProgram checks the paths of a server that is started (section 7.2.1).
func (s Server) checkProgram() error {
	switch cut, relative := strings.CutPrefix(s.command, "./"); {
	case relative && !local(cut):
		return fmt.Errorf("its command %.200q leads out of the package", s.command)
	case s.command == "", !relative && strings.ContainsAny(s.command, `/\ `):
		return fmt.Errorf("its command %.200q is neither the name of a program nor a path that begins with ./", s.command)
	}
	for _, name := range reserved {
		if _, has := s.env[name]; has {
			return fmt.Errorf("its env has %s, which yaya sets", name)
		}
	}
	if s.dir == "" || s.dir == rootRef || s.dir == dataRef {
		return nil
	}
	for _, from := range []string{"./", rootRef + "/", dataRef + "/"} {
		if cut, ok := strings.CutPrefix(s.dir, from); ok && local(cut) {
			return nil
		}
	}
	return fmt.Errorf("its cwd %.200q does not begin with ./, %s or %s, or leads out of there", s.dir, rootRef, dataRef)
}

// local reports whether a path stays where it begins.
func local(p string) bool { return p == "" || filepath.IsLocal(filepath.FromSlash(p)) }

// checkRemote checks the address of a server (section 7.2.1).
func (s Server) checkRemote() error {
	u, err := url.Parse(s.url)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("its url %.200q is not an address", s.url)
	case u.User != nil || u.Fragment != "" || strings.Contains(s.url, "#"):
		return errors.New("its url has a user or a fragment")
	case u.Scheme == "http" && !loopback(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("its url %.200q is not https, and not on this machine", s.url)
	}
	seen := map[string]bool{}
	for name, value := range s.headers {
		key := strings.ToLower(name)
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || seen[key] {
			return fmt.Errorf("its header %.80q is not one, or is there twice", name)
		}
		seen[key] = true
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
