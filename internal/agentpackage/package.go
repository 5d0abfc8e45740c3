// Package agentpackage reads packages for agents: folders with skills, MCP servers and hooks,
// which a plugin.json describes. It knows three formats: Agent Plugins 1.0.0
// (https://agent-plugins.org), and the plugins of Claude Code and of Codex.
//
// [Read] works on the content of files and touches none, so what it returns is made of the bytes
// that somebody has digested. It is bounded by the size of what it is given. A part that is broken
// or unknown to yaya is a note, and the rest of the package counts; hooks that cannot be read
// refuse the package, because a guard that is left out guards nothing.
package agentpackage

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/hookconf"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Format is how a package is described.
type Format string

// The formats.
const (
	AgentPlugins Format = "Agent Plugins 1.0.0"
	ClaudeCode   Format = "Claude Code"
	Codex        Format = "Codex"
)

// Manifests are the files that describe a package; the first that is there counts.
var Manifests = []string{portable, ".claude-plugin/plugin.json", ".codex-plugin/plugin.json"}

const (
	portable = "plugin.json"
	// own is the folder for what Agent Plugins leaves to yaya.
	own = "com.yaya.agent"

	maxServers = 64
	maxNotes   = 100
)

// Package is a package, without the files that its parts consist of.
type Package struct {
	Format Format
	// Name is made of the author's, so that it is a name of a plugin: "acme.tools" is "acme-tools".
	Name string
	// Version is a semantic version: 0.0.0 if the author gives another one, or none.
	Version     string
	Description string
	Servers     []Server // by name
	// Skills are the names of the skills that can be used, and SkillFolders the folders that have
	// them, relative to the package's.
	Skills       []string
	SkillFolders []string
	Hooks        []hookconf.Hook
	// Notes say what yaya leaves out, and Faults what is broken and left out for it.
	Notes, Faults []string
}

// Wanted reports whether a file with this slash-separated name describes a part of a package.
func Wanted(name string) bool {
	if strings.HasPrefix(name, "node_modules/") || strings.Contains(name, "/node_modules/") {
		return false
	}
	return path.Ext(name) == ".json" || path.Base(name) == agentskill.FileName || name == own+"/hooks.toml"
}

// Is reports whether files are those of a package.
func Is(has func(name string) bool) bool { return slices.ContainsFunc(Manifests, has) }

// reader reads one package.
type reader struct {
	names []string // of all files
	files map[string][]byte
	out   Package
}

// Read reads a package. names are all its files, and files has the contents of those that are
// [Wanted].
func Read(names []string, files map[string][]byte) (Package, error) {
	r := &reader{names: names, files: files}
	err := r.read()
	if err != nil {
		return Package{}, err
	}
	slices.Sort(r.out.Skills)
	r.out.Notes, r.out.Faults = r.out.Notes[:min(len(r.out.Notes), maxNotes)], r.out.Faults[:min(len(r.out.Faults), maxNotes)]
	return r.out, nil
}

func (r *reader) note(format string, args ...any) {
	r.out.Notes = append(r.out.Notes, fmt.Sprintf(format, args...))
}

func (r *reader) fault(format string, args ...any) {
	r.out.Faults = append(r.out.Faults, fmt.Sprintf(format, args...))
}

// read reads the manifest that counts. A plugin.json without the schema of Agent Plugins is some
// other client's.
func (r *reader) read() error {
	top, found := r.files[portable]
	client, format := "", Format("")
	for i, f := range []Format{ClaudeCode, Codex} {
		if _, ok := r.files[Manifests[i+1]]; ok && client == "" {
			client, format = Manifests[i+1], f
		}
	}
	if found {
		m, err := object(top, portable)
		if schema, _ := m["$schema"].(string); err != nil && client == "" || strings.HasPrefix(schema, schemas) {
			if err == nil {
				err = r.portable(m, schema)
			}
			if err == nil && client != "" { // what the portable format does not have
				err = r.clientHooks(client)
			}
			return named(portable, err)
		}
		if client == "" {
			return fmt.Errorf(`%s: it has no "$schema" of Agent Plugins, such as %s`, portable, pluginSchema)
		}
	}
	if client == "" {
		return errors.New("there is no " + strings.Join(Manifests, ", "))
	}
	m, err := object(r.files[client], client)
	if err == nil {
		err = r.client(m, client, format)
	}
	return named(client, err)
}

// named is an error of a file with its name, unless it has one.
func named(file string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), file) {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// object decodes a JSON object.
func object(data []byte, file string) (map[string]any, error) {
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%s: it is not a JSON object: %w", file, err)
	}
	if m == nil {
		return nil, fmt.Errorf("%s: it is not a JSON object", file)
	}
	return m, nil
}

var (
	notOfName = lazyregexp.New(`[^a-z0-9]+`)
	semver    = lazyregexp.New(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// identify takes over the name and version of the author.
func (r *reader) identify(name, version, description string) error {
	is := strings.Trim(notOfName().ReplaceAllString(strings.ToLower(name), "-"), "-")
	if is == "" {
		return fmt.Errorf("its name %.80q has no letter or digit", name)
	}
	if is[0] >= '0' && is[0] <= '9' {
		is = "p-" + is
	}
	is = strings.TrimRight(is[:min(len(is), 64)], "-")
	if is != name {
		r.note("in yaya its name is %s, since %.80q is not a name of a plugin", is, name)
	}
	r.out.Name, r.out.Version, r.out.Description = is, version, description
	if len(version) > 64 || !semver().MatchString(version) {
		r.out.Version = "0.0.0"
		if version != "" {
			r.note("in yaya its version is 0.0.0, since %.80q is not a semantic version", version)
		}
	}
	return nil
}

// skills finds the skills in a folder.
func (r *reader) skills(folder string) {
	for _, name := range r.names {
		dir, file := path.Split(name)
		if file != agentskill.FileName || path.Dir(path.Clean(dir)) != folder {
			continue
		}
		dir = path.Base(dir)
		if s, _, err := agentskill.Parse(r.files[name], dir); err != nil {
			r.fault("skill %.80q: %v", dir, err)
		} else {
			r.out.Skills = append(r.out.Skills, s.Name)
			if !slices.Contains(r.out.SkillFolders, folder) {
				r.out.SkillFolders = append(r.out.SkillFolders, folder)
			}
		}
	}
}

// count counts the files that match.
func (r *reader) count(match func(name string) bool) (n int) {
	for _, name := range r.names {
		if match(name) {
			n++
		}
	}
	return n
}
