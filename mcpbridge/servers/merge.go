package servers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Source is the configuration of one client or file.
type Source struct {
	From   string // who has it, for people
	Short  string // a word for it, for names
	Config Config
}

// Conflict says what to do with a server whose name is taken.
type Conflict string

// The answers to a conflict.
const (
	Rename  Conflict = "rename"  // import it under another name
	Keep    Conflict = "keep"    // skip it
	Replace Conflict = "replace" // import it in place of the other one
)

// Conflicts lists the answers.
var Conflicts = []Conflict{Rename, Keep, Replace}

// Clash is a server whose name is taken by another one.
type Clash struct {
	Server, Other     Server
	From, OtherFrom   string
	Renamed           string // its name if it is renamed
	OtherIsConfigured bool   // in yaya's own file
}

// Taken is a server to import.
type Taken struct {
	Server  Server
	From    string
	renamed string   // its original name, if it was renamed
	Changes []string // changes from the source
	// Replaces says that it replaces a server of this name in yaya's own file.
	Replaces bool
}

// Was is the name of the server at its source.
func (t Taken) Was() string { return cmp.Or(t.renamed, t.Server.Name) }

// Left is a server that is not imported, with the reason.
type Left struct {
	Name, From, Why string
}

// Merge decides which servers of the sources to import in addition to the configured ones. A
// server that is configured already, or that an earlier source has, under whatever name, is
// imported only once. If two different servers have the same name, decide says what to do with
// the second. Each server that is skipped has a reason.
func Merge(have []Server, sources []Source, decide func(Clash) Conflict) (taken []Taken, left []Left) {
	configured := func(name string) (Server, bool) {
		i := slices.IndexFunc(have, func(s Server) bool { return s.Name == name })
		if i < 0 {
			return Server{}, false
		}
		return have[i], true
	}
	find := func(name string) int {
		return slices.IndexFunc(taken, func(t Taken) bool { return t.Server.Name == name })
	}
	for _, src := range sources {
		for _, inv := range src.Config.Invalid {
			left = append(left, Left{inv.Name, src.From, inv.Err.Error()})
		}
		for _, s := range src.Config.Servers {
			leave := func(format string, a ...any) {
				left = append(left, Left{s.Name, src.From, fmt.Sprintf(format, a...)})
			}
			t := Taken{Server: s, From: src.From}
			for _, c := range src.Config.Changes {
				if c.Server == s.Name {
					t.Changes = append(t.Changes, c.Text)
				}
			}
			// With this name and the address of another machine, it may be this very yaya,
			// under its public name.
			if s.Name == OwnName && s.Transport != Stdio {
				leave("it may be yaya itself; if it is another one: yaya mcp add NAME %s", s.Endpoint())
				continue
			}
			if i := slices.IndexFunc(have, func(h Server) bool { return same(h, s) }); i >= 0 {
				if have[i].Name == s.Name {
					leave("it is configured already")
				} else {
					leave("it is configured already, as %s", have[i].Name)
				}
				continue
			}
			if i := slices.IndexFunc(taken, func(t Taken) bool { return same(t.Server, s) }); i >= 0 {
				if taken[i].Server.Disabled && !s.Disabled {
					taken[i].Server.Disabled = false
					taken[i].Changes = append(taken[i].Changes, "enabled, as it is in "+src.From)
				}
				leave("it is the same server as %s of %s", taken[i].Server.Name, taken[i].From)
				continue
			}
			other, isConfigured := configured(s.Name)
			i := find(s.Name)
			if !isConfigured && i < 0 {
				taken = append(taken, t)
				continue
			}
			clash := Clash{Server: s, From: src.From, Other: other, OtherFrom: "yaya's own configuration", OtherIsConfigured: isConfigured}
			if i >= 0 {
				clash.Other, clash.OtherFrom = taken[i].Server, taken[i].From
			}
			clash.Renamed = free(s.Name+"-"+src.Short, func(name string) bool { _, ok := configured(name); return ok || find(name) >= 0 })
			switch decide(clash) {
			case Rename:
				t.Server.Name, t.renamed = clash.Renamed, s.Name
				t.Changes = append(t.Changes, fmt.Sprintf("renamed from %s, a name that %s has for another server", s.Name, clash.OtherFrom))
				taken = append(taken, t)
			case Replace:
				t.Changes = append(t.Changes, "it replaces the one from "+clash.OtherFrom)
				t.Replaces = isConfigured
				if i >= 0 {
					left = append(left, Left{s.Name, taken[i].From, "the one from " + src.From + " replaces it"})
					taken[i] = t
				} else {
					taken = append(taken, t)
				}
			case Keep:
				leave("%s has another server of this name, which stays", clash.OtherFrom)
			}
		}
	}
	return taken, left
}

// free returns an unused name.
func free(name string, taken func(string) bool) string {
	out := name
	for n := 2; taken(out); n++ {
		out = fmt.Sprintf("%s-%d", name, n)
	}
	return out
}

// same reports whether two entries are the same server: they run the same program or call the
// same address, with the same variables, credentials and tools.
func same(a, b Server) bool { return bytes.Equal(a.identity(), b.identity()) }

func (s Server) identity() []byte {
	id := Server{
		Transport: s.Transport, Command: s.Command, Args: slices.Clone(s.Args), Env: s.Env, PassEnv: slices.Sorted(slices.Values(s.PassEnv)), EnvFile: s.EnvFile, Dir: s.Dir,
		URL: s.URL, OAuth: s.OAuth, NoOAuth: s.NoOAuth, IncludeTools: slices.Sorted(slices.Values(s.IncludeTools)), ExcludeTools: slices.Sorted(slices.Values(s.ExcludeTools)),
	}
	if len(s.Headers) > 0 {
		id.Headers = map[string]string{}
		for k, v := range s.Headers {
			id.Headers[strings.ToLower(k)] = v
		}
	}
	raw, err := json.Marshal(id)
	if err != nil { // it was built from JSON
		return []byte(s.Name)
	}
	return raw
}
