package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/plugins/remote"
	"github.com/yaya-ai/yaya/sdk"
)

// In the templates, the plugin is called my-plugin. The ones in Go end in .txt, so that the go
// command does not take them for packages of this module.
//
//go:embed files
var templates embed.FS

// language is one in which a plugin can be begun.
type language struct {
	ext     string // of the templates
	program string // the main file
	sdk     string // the folder of the SDK in the plugin's
	run     string // in plugin.toml
	files   map[string]string
}

var languages = map[string]language{
	"go": {".go.txt", "main.go", "yaya", `["./my-plugin"]`, map[string]string{
		"go.mod":     "module example.com/my-plugin\n\ngo 1.25\n",
		".gitignore": "/my-plugin\n",
	}},
	"python": {".py", "main.py", "yaya_plugin", `["python3", "main.py"]`, map[string]string{
		".gitignore": "__pycache__/\n",
	}},
	"typescript": {".js", "main.js", "yaya", `["node", "main.js"]`, map[string]string{
		"package.json": "{ \"name\": \"my-plugin\", \"version\": \"0.1.0\", \"type\": \"module\" }\n",
	}},
}

// extras has the members of plugin.toml for each category, beside name, version and run.
var extras = map[string]string{
	"tool":         "",
	"llm-provider": "provider_id = \"my-plugin\"\nsubscriptions = [\"llm.call.request\"]\n",
	"memory":       "memory_kind = \"long-term\"\nsubscriptions = [\"memory.query\", \"memory.write\"]\n",
	"strategy":     "strategy_id = \"my-plugin\"\nsubscriptions = [\"strategy.decide.request\"]\n\n[config]\ntype = \"object\"\n\n[config.properties.provider]\ntype = \"string\"\n",
	"adapter":      "adapter_id = \"my-plugin\"\nsubscriptions = [\"assistant.message.done\"]\n",
	"skill":        "subscriptions = [\"user.message.received\"]\n",
}

// bundled are the names of yaya's own plugins, which cannot be installed.
var bundled = []string{
	"agent-tool", "llm-anthropic", "llm-echo", "llm-gemini", "llm-ollama", "llm-openai", "llm-responses", "mcp-bridge", "memory-sqlite", "skills", "strategy-coder", "strategy-react", "tool-plan", "tool-shell", "tool-skill", "tool-web", "tool-workspace", "web",
}

// Languages returns the languages in which a plugin can be begun.
func Languages() []string { return slices.Sorted(maps.Keys(languages)) }

// Categories returns the categories that can be begun in a language.
func Categories(lang string) []string {
	var out []string
	for category := range extras {
		if _, err := template(lang, category); err == nil {
			out = append(out, category)
		}
	}
	slices.Sort(out)
	return out
}

func template(lang, category string) ([]byte, error) {
	if _, ok := extras[category]; !ok {
		return nil, fs.ErrNotExist
	}
	return templates.ReadFile(path.Join("files", lang, category+languages[lang].ext))
}

// Files returns the files of a new plugin by their slash-separated names.
func Files(name, lang, category string) (map[string][]byte, error) {
	l, ok := languages[lang]
	if !ok {
		return nil, fmt.Errorf("there is no language %q: it is one of %s", lang, strings.Join(Languages(), ", "))
	}
	program, err := template(lang, category)
	if err != nil {
		return nil, fmt.Errorf("there is no category %q in %s: it is one of %s", category, lang, strings.Join(Categories(lang), ", "))
	}
	// A model calls the tools of all plugins by their names, so each has the plugin's in its own.
	named := strings.NewReplacer("my-plugin", name, "my_plugin", strings.ReplaceAll(name, "-", "_"))
	description := named.Replace("name = \"my-plugin\"\nversion = \"0.1.0\"\ncategory = \"" + category + "\"\ndescription = \"\"\nrun = " + l.run + "\n" + extras[category])
	switch parsed, err := remote.ParseDescription([]byte(description)); {
	case err != nil:
		return nil, err
	case parsed.Name != name: // it ends the text and goes on
		return nil, fmt.Errorf("%.100q is not the name of a plugin", name)
	case slices.Contains(bundled, name):
		return nil, fmt.Errorf("plugin %s is a part of yaya: give yours another name", name)
	case name == l.sdk:
		return nil, fmt.Errorf("the SDK is in the folder %s of the plugin: give the plugin another name", name)
	}
	out := map[string][]byte{l.program: []byte(named.Replace(string(program))), remote.DescriptionFile: []byte(description)}
	for file, text := range l.files {
		out[file] = []byte(named.Replace(text))
	}
	sources, err := sdk.Sources(lang)
	if err != nil {
		return nil, err
	}
	for file, text := range sources {
		out[path.Join(l.sdk, file)] = text
	}
	return out, nil
}

// PackageFiles returns the files of a new package for agents: Agent Plugins 1.0.0, with a skill.
func PackageFiles(name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(templates, "files/package", func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := templates.ReadFile(at)
		to := strings.ReplaceAll(strings.TrimPrefix(at, "files/package/"), "my-package", name)
		out[to] = []byte(strings.ReplaceAll(string(text), "my-package", name))
		return err
	})
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(out))
	p, err := agentpackage.Read(names, out)
	switch {
	case err != nil:
		return nil, err
	case p.Name != name || len(p.Skills) != 1:
		return nil, fmt.Errorf("%.100q is not a name of a package: 1 to 64 lower-case letters, digits and single dashes, a letter first", name)
	case slices.Contains(bundled, name):
		return nil, fmt.Errorf("plugin %s is a part of yaya: give yours another name", name)
	}
	return out, nil
}

// Write makes the folder of a new plugin, which must not exist yet. When it fails, it leaves no
// folder behind.
func Write(folder string, files map[string][]byte) (err error) {
	if err := os.Mkdir(folder, 0o755); errors.Is(err, fs.ErrExist) { //nolint:gosec,forbidigo // the user's own folder, which the user names
		return fmt.Errorf("%s exists already: choose another name, or remove it", folder)
	} else if err != nil {
		return fmt.Errorf("make the plugin: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make the plugin: %w", err), os.RemoveAll(folder)) //nolint:forbidigo // made here
		}
	}()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for name, text := range files {
		at := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(at, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
