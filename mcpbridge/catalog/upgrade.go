package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Newest returns the newest version of the entry that a server was made from. An answer that is
// younger than an hour is used again.
func (c *Catalog) Newest(ctx context.Context, o Origin) (e Entry, stale, err error) {
	for _, r := range c.registries() {
		if r.Name != o.Registry {
			continue
		}
		c.mu.Lock()
		e, ok := c.shelf(r).kept.Entries[o.Name]
		c.mu.Unlock()
		if now := c.now(); ok && now.Sub(e.Seen) < Fresh && !e.Seen.After(now) {
			return e, nil, nil
		}
	}
	return c.Get(ctx, o.Registry, o.Name, "")
}

// Newer reports whether version b comes after a: by its numbers, as far as it has some.
func Newer(a, b string) bool {
	part := func(v string) []string {
		return strings.FieldsFunc(strings.TrimPrefix(v, "v"), func(r rune) bool { return r == '.' || r == '-' || r == '+' })
	}
	x, y := part(a), part(b)
	for i := range min(len(x), len(y)) {
		if x[i] == y[i] {
			continue
		}
		m, err := strconv.Atoi(x[i])
		n, nerr := strconv.Atoi(y[i])
		switch {
		case err == nil && nerr == nil:
			return n > m
		case err == nil: // 1.0.0 comes after 1.0.rc1
			return false
		case nerr == nil:
			return true
		}
		return y[i] > x[i]
	}
	_, pre, _ := strings.Cut(a, "-")
	_, post, _ := strings.Cut(b, "-")
	if (pre == "") != (post == "") {
		return post == "" // 1.0.0 comes after 1.0.0-rc.1
	}
	return len(y) > len(x)
}

// Differs says how an entry that is not newer differs from what a server was made from: by an
// older version, or by another one of the package under the same version. "" is for the same.
func Differs(x servers.Server, e Entry) string {
	if x.Catalog == nil || e.Server.Version == "" || Newer(x.Catalog.Version, e.Server.Version) {
		return ""
	}
	if e.Server.Version != x.Catalog.Version {
		return fmt.Sprintf("its registry has the older version %s as the newest", cut.Text(e.Server.Version, 128))
	}
	o, err := e.Pick(x.Catalog.Package)
	if err != nil || o.Runner == nil {
		return ""
	}
	spec, err := o.Runner.spec(o.pack)
	if err != nil || slices.Contains(x.Args, spec) {
		return ""
	}
	name := spec[:len(spec)-len(versionOf(spec))]
	for _, a := range x.Args {
		if strings.HasPrefix(a, name) && versionOf(a) == a[len(name):] {
			return fmt.Sprintf("its registry has %s under the same version %s, and it runs %s", spec, e.Server.Version, servers.Shown(a))
		}
	}
	return "" // the command was edited
}

// Upgrade returns a server with the version of another entry of its name. All that the user has
// entered stays: only the word that names the package changes.
func Upgrade(x servers.Server, e Entry) (_ servers.Server, notes []string, err error) {
	if x.Catalog == nil {
		return x, nil, fmt.Errorf("the server %q was not added from the catalogue", x.Name)
	}
	if e.Status == Deleted {
		return x, nil, fmt.Errorf("%s %s was deleted from its registry: %s", e.Server.Name, e.Server.Version, cut.Line(cmpText(e.Message, "it says no reason"), 200))
	}
	again := fmt.Sprintf("add it again under another name (yaya catalog install %s --as NAME), then remove %s", e.Server.Name, x.Name)
	var changes []string
	o, err := e.Pick(x.Catalog.Package)
	if err != nil {
		return x, nil, fmt.Errorf("version %s cannot be used as %s was added: %w", e.Server.Version, x.Name, err)
	}
	switch {
	case o.remote != nil:
		if !strings.Contains(o.remote.URL, "{") && o.remote.URL != x.URL {
			return x, nil, fmt.Errorf("the address of %s is another one in version %s: %s", x.Name, e.Server.Version, again)
		}
	case o.Runner == nil:
		return x, nil, fmt.Errorf("%s is a bundle, which yaya does not replace: %s", x.Name, again)
	default:
		spec, err := o.Runner.spec(o.pack)
		if err != nil {
			return x, nil, err
		}
		name := spec[:len(spec)-len(versionOf(spec))]
		x.Args = slices.Clone(x.Args)
		var at []int
		for i, a := range x.Args {
			if strings.HasPrefix(a, name) && versionOf(a) == a[len(name):] {
				at = append(at, i)
			}
		}
		if x.Command != o.Runner.Command || len(at) != 1 {
			return x, nil, fmt.Errorf("the command of %s was edited, or its package is another one: %s", x.Name, again)
		}
		if old := x.Args[at[0]]; old != spec {
			changes = append(changes, fmt.Sprintf("changes %s to %s, and nothing else in the command line", servers.Shown(old), servers.Shown(spec)))
		}
		x.Args[at[0]] = spec
		for _, v := range o.pack.Environment {
			if _, ok := x.Env[v.Name]; v.Required && v.Value == "" && v.Default == "" && !ok && !slices.Contains(x.PassEnv, v.Name) {
				return x, nil, fmt.Errorf("version %s of %s needs %s: set it first (yaya mcp edit %s)", e.Server.Version, e.Server.Name, v.Name, x.Name)
			}
		}
	}
	origin := *x.Catalog
	origin.Version = e.Server.Version
	notes = append(append(changes, e.notes(o)...), fmt.Sprintf("replaces version %s; its tools are pinned again", x.Catalog.Version))
	x.Catalog, x.Env = &origin, maps.Clone(x.Env)
	return x, notes, nil
}

// Wrote reports whether a mask would hide only words of the publisher in the command line of a
// server. They are not secrets of the user, and a question shows them.
func Wrote(x servers.Server, e Entry) bool {
	o, err := e.Pick(x.Catalog.Package)
	if err != nil || o.pack == nil || masked.Word(x.Command) != x.Command {
		return false
	}
	own := map[string]bool{}
	for _, a := range o.pack.PackageArgs {
		for _, v := range append([]string{a.Value, a.Default}, a.Choices...) {
			own[v], own[a.Name+"="+v] = true, true
		}
	}
	for i, shown := range masked.Args(x.Command, x.Args) {
		if shown != x.Args[i] && !own[x.Args[i]] {
			return false
		}
	}
	return true
}

// versionOf returns the end of a word that names a package: what follows its last == , @ or :.
func versionOf(spec string) string {
	for _, sep := range []string{"==", "@", ":"} {
		if i := strings.LastIndex(spec, sep); i > 0 {
			return spec[i+len(sep):]
		}
	}
	return ""
}
