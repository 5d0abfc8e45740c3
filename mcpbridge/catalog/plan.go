package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Choice holds the choices and values of the user.
type Choice struct {
	Option string              // id of an option, "" for the first that can be used
	Name   string              // of the server in yaya's configuration
	Given  map[string][]string // values, by the names of what is asked for
	// Profile is that of the sandbox: server, or guarded; "" is the proposed one. Hosts are those
	// that the server reaches beside its proposed ones.
	Profile string
	Hosts   []string
}

// Plan is an entry of yaya's configuration that would use a server.
type Plan struct {
	Name    string
	Config  json.RawMessage   // refers to the secrets by ${secret:NAME}
	Secrets map[string]string // that the user has given, by their names in the store
	Notes   []string
	Bundle  *Bundle // that has to be unpacked first, nil without one
}

// Origin says in an entry of the configuration where it is from.
type Origin = servers.Origin

// Pick returns an option of an entry by its id, or the first that can be used: a package whose
// runner is on this machine before a remote, and that before another package.
func (e Entry) Pick(id string) (Option, error) {
	all := e.Options()
	if id != "" {
		i := slices.IndexFunc(all, func(o Option) bool { return o.ID == id })
		if i < 0 {
			return Option{}, fmt.Errorf("%s has no option %q: it has %s", e.Server.Name, cut.Text(id, 40), strings.Join(ids(all), ", "))
		}
		if all[i].Refused != "" {
			return Option{}, fmt.Errorf("the option %s of %s cannot be used: %s", id, e.Server.Name, all[i].Refused)
		}
		return all[i], nil
	}
	rank := func(o Option) int {
		switch {
		case o.Refused != "":
			return 4
		case o.Kind == kindRemote:
			return 1
		case o.Runner == nil || o.Runner.Found():
			return 0
		}
		return 2
	}
	slices.SortStableFunc(all, func(a, b Option) int { return rank(a) - rank(b) })
	switch {
	case len(all) == 0:
		return Option{}, fmt.Errorf("%s has neither a package nor a remote: its publisher says only where its source is", e.Server.Name)
	case all[0].Refused != "":
		return Option{}, fmt.Errorf("%s cannot be installed: %s", e.Server.Name, all[0].Refused)
	}
	return all[0], nil
}

func ids(all []Option) (out []string) {
	for _, o := range all {
		out = append(out, o.ID)
	}
	return out
}

// ShortName returns the name under which a server is proposed.
func (e Entry) ShortName() string {
	_, name, _ := strings.Cut(e.Server.Name, "/")
	for _, affix := range []string{"mcp-server-", "server-"} {
		name = strings.TrimPrefix(name, affix)
	}
	for _, affix := range []string{"-mcp-server", "-mcp", "-server"} {
		if short := strings.TrimSuffix(name, affix); short != "" {
			name = short
		}
	}
	name = strings.Trim(cut.Bytes(name, 32), ".-_")
	if name == "" || name == "mcp" {
		space, _, _ := strings.Cut(e.Server.Name, "/")
		name = space[strings.LastIndexByte(space, '.')+1:]
	}
	return strings.ToLower(name)
}

// Make makes an entry of yaya's configuration. taken reports whether the store has a secret of
// a name: none is replaced.
func Make(e Entry, c Choice, taken func(string) bool) (Plan, error) {
	if e.Status == Deleted {
		return Plan{}, fmt.Errorf("%s %s was deleted from its registry: %s", e.Server.Name, e.Server.Version, cut.Line(cmpText(e.Message, "it says no reason"), 200))
	}
	o, err := e.Pick(c.Option)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Name: c.Name, Secrets: map[string]string{}}
	f := &form{fill: true, given: c.Given, used: map[string]bool{}, secret: func(name, value string) string {
		name = secretName(c.Name, name, func(n string) bool { _, mine := p.Secrets[n]; return mine || taken(n) })
		p.Secrets[name] = value
		return "${secret:" + name + "}"
	}}
	var m made
	if err := o.words(f, &m); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", e.Server.Name, err)
	}
	for name := range maps.Keys(c.Given) {
		if !f.used[name] {
			return Plan{}, fmt.Errorf("%s does not ask for %q: it asks for %s", e.Server.Name, cut.Text(name, 80), cmpText(strings.Join(namesOf(f.asked), ", "), "nothing"))
		}
	}
	config := map[string]any{"catalog": Origin{Registry: e.Registry, Name: e.Server.Name, Version: e.Server.Version, Package: o.ID}}
	p.Notes, p.Bundle = e.notes(o), m.bundle
	p.Notes = append(p.Notes, m.notes...)
	if o.remote != nil {
		if c.Profile != "" || len(c.Hosts) > 0 {
			return Plan{}, errors.New("a remote runs elsewhere: it has no sandbox here, and no hosts")
		}
		config["type"], config["url"] = m.kind, m.url
		if len(m.headers) > 0 {
			config["headers"] = m.headers
		}
	} else {
		if len(m.argv) == 0 {
			return Plan{}, fmt.Errorf("the bundle of %s has to be fetched first: name its option %s", e.Server.Name, o.ID)
		}
		config["command"], config["args"] = m.argv[0], m.argv[1:]
		if len(m.env) > 0 {
			config["env"] = m.env
		}
		box, err := e.sandbox(o, c, f, m.bundle)
		if err != nil {
			return Plan{}, err
		}
		if box != nil {
			config["sandbox"] = box
		}
	}
	p.Config, err = json.Marshal(config)
	return p, err
}

func namesOf(asked []Asked) (out []string) {
	for _, a := range asked {
		out = append(out, a.Name)
	}
	return out
}

// secretName returns a free name for a secret of a server.
func secretName(server, input string, taken func(string) bool) string {
	clean := func(s string, n int) string {
		return cut.Bytes(askedPattern().ReplaceAllString(s, "-"), n)
	}
	base := clean(server, 48) + "." + clean(input, 64)
	name := base
	for n := 2; taken(name); n++ {
		name = fmt.Sprintf("%s.%d", base, n)
	}
	return name
}

// notes tell the user about an entry before he agrees.
func (e Entry) notes(o Option) (out []string) {
	from := fmt.Sprintf("from the registry %s: %s %s", e.Registry, e.Server.Name, e.Server.Version)
	if e.Registry == Bundled {
		from = fmt.Sprintf("from the list that comes with yaya (%s): %s %s", BundledDate(), e.Server.Name, e.Server.Version)
	}
	out = append(out, from)
	if e.Status == Deprecated {
		out = append(out, "its publisher no longer maintains it: "+cut.Line(cmpText(e.Message, "no reason is given"), 200))
	}
	if r := o.Runner; r != nil && !r.Found() {
		out = append(out, fmt.Sprintf("%s is not on yaya's PATH, and comes with %s: %s", r.Command, r.Needs, r.Install()))
	}
	if o.Kind == kindOCI && !strings.Contains(o.Identifier, "@sha256:") {
		out = append(out, "the tag of an image can be moved: the program is what its registry has when it starts")
	}
	return out
}

// sandbox proposes what a process may do. A container has bounds of its own, and its client needs
// docker's socket.
func (e Entry) sandbox(o Option, c Choice, f *form, b *Bundle) (*servers.Sandbox, error) {
	switch {
	case c.Profile == servers.SandboxGuarded || c.Profile == "" && o.Kind == kindOCI:
		if len(c.Hosts) > 0 {
			return nil, errors.New("hosts are for the profile server: guarded reaches all")
		}
		return nil, nil //nolint:nilnil // the default of an entry without one
	case c.Profile == servers.SandboxServer && o.Kind == kindOCI:
		return nil, errors.New("docker does not work in the profile server: it needs docker's socket, by which all can be done; the container bounds the server")
	case c.Profile != "" && c.Profile != servers.SandboxServer:
		return nil, fmt.Errorf("the profile %q is neither %s nor %s", cut.Text(c.Profile, 40), servers.SandboxServer, servers.SandboxGuarded)
	}
	box := &servers.Sandbox{Profile: servers.SandboxServer}
	for _, h := range slices.Concat(e.Hosts, f.hosts, c.Hosts) {
		if err := sandbox.CheckHost(h); err != nil {
			return nil, err
		}
		if !slices.Contains(box.Hosts, h) {
			box.Hosts = append(box.Hosts, h)
		}
	}
	for _, path := range f.paths {
		info, err := os.Stat(path)
		switch {
		case strings.HasPrefix(path, "${") || err != nil: // its message, at the start, says what is missing
		case info.IsDir() && !slices.Contains(box.Write, path):
			box.Write = append(box.Write, path)
		case !info.IsDir() && !slices.Contains(box.Read, path):
			box.Read = append(box.Read, path)
		}
	}
	if b != nil {
		box.Read = append(box.Read, b.Folder)
	}
	return box, nil
}
