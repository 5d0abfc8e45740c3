package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/loaderenv"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// The file that describes a plugin.
const (
	DescriptionFile = "plugin.toml"
	MaxDescription  = 256 << 10 // bytes of it
)

const (
	maxArgs   = 64
	maxRun    = 1500 // bytes of the program and its arguments: whoever installs it reads them
	maxListed = 64   // entries of each other list
	maxEntry  = 300  // bytes of an entry of a permission
)

// Description is a plugin.toml.
type Description struct {
	Name          string      `toml:"name"`
	Version       string      `toml:"version"`
	Category      string      `toml:"category"`
	Description   string      `toml:"description"`
	Run           []string    `toml:"run"`
	Requires      []string    `toml:"requires"`
	Subscriptions []string    `toml:"subscriptions"`
	AdapterID     string      `toml:"adapter_id"`
	ProviderID    string      `toml:"provider_id"`
	StrategyID    string      `toml:"strategy_id"`
	MemoryKind    string      `toml:"memory_kind"`
	Permissions   Permissions `toml:"permissions"`
	// Config is the JSON Schema of the plugin's settings.
	Config map[string]any `toml:"config"`
}

// Permissions list the rights of a plugin beyond reading its folder and writing its state.
type Permissions struct {
	Network   []string `toml:"network" json:"network"` // hosts, as in [sandbox.Net]
	Read      []string `toml:"read" json:"read"`
	Write     []string `toml:"write" json:"write"`
	Env       []string `toml:"env" json:"env"`
	Secrets   []string `toml:"secrets" json:"secrets"` // fields of its settings
	Approvals bool     `toml:"approvals" json:"approvals"`
	// Guards are points of [plugin.GuardPoints] at which it sees what goes on, and can deny it.
	Guards []string `toml:"guards" json:"guards"`
}

// ReadDescription reads the plugin.toml of a folder.
func ReadDescription(folder string) (Description, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return Description{}, fmt.Errorf("plugin: %w", err)
	}
	defer func() { _ = root.Close() }()
	info, err := root.Lstat(DescriptionFile)
	if err != nil {
		return Description{}, fmt.Errorf("%s is not a plugin: %w", folder, err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxDescription {
		return Description{}, fmt.Errorf("%s: not a file of at most %d KiB", filepath.Join(folder, DescriptionFile), MaxDescription>>10)
	}
	data, err := root.ReadFile(DescriptionFile)
	if err != nil {
		return Description{}, fmt.Errorf("plugin: %w", err)
	}
	d, err := ParseDescription(data)
	if err != nil {
		return d, fmt.Errorf("%s: %w", filepath.Join(folder, DescriptionFile), err)
	}
	return d, nil
}

// ParseDescription parses a plugin.toml, strictly, and checks it.
func ParseDescription(data []byte) (Description, error) {
	var d Description
	dec := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
			return d, fmt.Errorf("%s is not a member of %s", strings.Join(strict.Errors[0].Key(), "."), DescriptionFile)
		}
		return d, err
	}
	return d, d.check()
}

// Manifest is the description as plugins in this process give it.
func (d Description) Manifest() plugin.Manifest {
	m := plugin.Manifest{
		Name: d.Name, Version: d.Version, Category: plugin.Category(d.Category), Requires: d.Requires,
		AdapterID: d.AdapterID, ProviderID: d.ProviderID, StrategyID: d.StrategyID, MemoryKind: d.MemoryKind, Guards: d.Permissions.Guards,
	}
	if d.Config != nil {
		m.ConfigSchema, _ = json.Marshal(d.Config) // checked
	}
	return m
}

// fields are the names of the settings.
func (d Description) fields() []string {
	properties, _ := d.Config["properties"].(map[string]any)
	var out []string
	for name := range properties {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

var (
	envPattern   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	fieldPattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
)

func (d Description) check() error {
	if err := d.Manifest().Check(); err != nil {
		return err
	}
	if len(d.Description) > 500 || strings.ContainsFunc(d.Description, func(r rune) bool { return r < ' ' }) {
		return errors.New("description: not one line of at most 500 bytes")
	}
	if err := d.checkRun(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for name, list := range map[string][]string{"requires": d.Requires, "subscriptions": d.Subscriptions} {
		if len(list) > maxListed {
			return fmt.Errorf("%s: more than %d entries", name, maxListed)
		}
	}
	for _, kind := range d.Subscriptions {
		if _, ok := event.Lookup(kind); !ok {
			return fmt.Errorf("subscriptions: there is no event %q", kind)
		}
	}
	if d.Config != nil {
		schema, err := json.Marshal(d.Config)
		if err == nil {
			err = tool.CheckSchema(schema)
		}
		if err != nil {
			return fmt.Errorf("config: %w", err)
		}
	}
	for _, field := range d.fields() {
		if !fieldPattern().MatchString(field) {
			return fmt.Errorf("config: a setting cannot be named %q", field)
		}
	}
	return d.Permissions.check(d.Category)
}

func (d Description) checkRun() error {
	if len(d.Run) == 0 || len(d.Run) > maxArgs {
		return fmt.Errorf("not a program with at most %d arguments", maxArgs-1)
	}
	if n := len(strings.Join(d.Run, " ")); n > maxRun {
		return fmt.Errorf("%d bytes, and not at most %d: put what it has to be told into a file of the folder", n, maxRun)
	}
	for _, arg := range d.Run {
		if strings.ContainsFunc(arg, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%.100q is not an argument", arg)
		}
	}
	if program := d.Run[0]; strings.Contains(program, "/") && !filepath.IsLocal(program) {
		return fmt.Errorf("%q is neither a file of the folder (\"./bin\") nor a program in PATH (\"python3\")", program)
	} else if program == "" {
		return errors.New("no program")
	}
	return nil
}

func (p Permissions) check(category string) error {
	for name, list := range map[string][]string{"network": p.Network, "read": p.Read, "write": p.Write, "env": p.Env, "secrets": p.Secrets, "guards": p.Guards} {
		if len(list) > maxListed {
			return fmt.Errorf("permissions.%s: more than %d entries", name, maxListed)
		}
		for _, entry := range list {
			if len(entry) > maxEntry || strings.ContainsFunc(entry, unicode.IsControl) {
				return fmt.Errorf("permissions.%s: %.100q is not a line of at most %d bytes", name, entry, maxEntry)
			}
		}
	}
	for _, host := range p.Network {
		if err := sandbox.CheckPort(host); err != nil {
			return fmt.Errorf("permissions.network: %w", err)
		}
	}
	for _, list := range []struct {
		member string
		paths  []string
	}{{"read", p.Read}, {"write", p.Write}} {
		for _, path := range list.paths {
			if err := checkPath(path); err != nil {
				return fmt.Errorf("permissions.%s: %q: %w", list.member, path, err)
			}
		}
	}
	for _, name := range p.Env {
		if !envPattern().MatchString(name) || loaderenv.Is(name) || strings.HasPrefix(name, "YAYA_") {
			return fmt.Errorf("permissions.env: a plugin does not get the variable %q", name)
		}
	}
	for _, field := range p.Secrets {
		if !fieldPattern().MatchString(field) {
			return fmt.Errorf("permissions.secrets: a setting cannot be named %q", field)
		}
	}
	if p.Approvals && category != string(plugin.Adapter) {
		return errors.New("permissions.approvals: only an adapter answers approval requests")
	}
	return nil
}

// checkPath returns why a plugin is not given a file or folder.
func checkPath(path string) error {
	rest, home := strings.CutPrefix(path, "~/")
	switch {
	case home && filepath.Clean(rest) == ".", !home && holdsHome(path):
		return errors.New("a plugin does not get the whole home folder, or a folder above it: name the files and folders in it that it needs, such as ~/notes")
	case home && !filepath.IsLocal(rest):
		return errors.New("it leads out of the home folder: write the path from / on")
	case home:
		return nil
	case !filepath.IsAbs(path):
		return errors.New("a path begins with / or ~/, such as /srv/notes or ~/notes")
	}
	if err := sandbox.NotWhole(path); err != nil {
		return sandbox.FixedProfile(err)
	}
	return sandbox.FixedProfile(sandbox.CheckPath(path))
}

// holdsHome reports whether an absolute path leads to the home folder, or to one above it that is
// not the root, whose refusal says more.
func holdsHome(path string) bool {
	home, err := os.UserHomeDir()
	return err == nil && filepath.IsAbs(home) && sandbox.NotWhole(path) == nil && sandbox.BelongsTo(home, filepath.Clean(path))
}

// Beyond returns the permissions that others lack.
func (p Permissions) Beyond(others Permissions) Permissions {
	more := func(list, known []string) (out []string) {
		for _, v := range list {
			if !slices.Contains(known, v) {
				out = append(out, v)
			}
		}
		return out
	}
	return Permissions{
		Network: more(p.Network, others.Network), Read: more(p.Read, others.Read), Write: more(p.Write, others.Write),
		Env: more(p.Env, others.Env), Secrets: more(p.Secrets, others.Secrets), Approvals: p.Approvals && !others.Approvals,
		Guards: more(p.Guards, others.Guards),
	}
}

// None reports whether there are none.
func (p Permissions) None() bool {
	return len(p.Network)+len(p.Read)+len(p.Write)+len(p.Env)+len(p.Secrets)+len(p.Guards) == 0 && !p.Approvals
}

// Lines describes the permissions to a person, each entry in a line of its own: none hides behind
// another.
func (p Permissions) Lines() []string {
	var out []string
	add := func(what string, list []string) {
		for _, entry := range list {
			out = append(out, what+" "+entry)
		}
	}
	add("reaches the host", p.Network)
	add("reads", p.Read)
	add("reads and writes", p.Write)
	add("gets the variable", p.Env)
	add("gets the secret in its setting", p.Secrets)
	if p.Approvals {
		out = append(out, "answers approval requests for you")
	}
	if slices.Contains(p.Guards, plugin.GuardTool) {
		out = append(out, "guards calls of tools: it sees each with its arguments, can deny it or have you asked, and while it does not work, all calls are denied")
	}
	if slices.Contains(p.Guards, plugin.GuardPrompt) {
		out = append(out, "guards your messages: it sees each before the model does, can deny it, and while it does not work, all are denied")
	}
	if len(out) == 0 {
		out = append(out, "none: it reads its own folder, and writes its state folder")
	}
	return out
}
