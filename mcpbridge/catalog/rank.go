package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/toolsearch"
)

// ranked returns the entries that fit the words, best first: those whose name the words are, then
// by their words. Deprecated ones come last. Of two with the same name, the one of yaya's own list
// comes first: anybody can give his server a name that others look for.
func ranked(words string, all []Entry) []Entry {
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Server.Name, b.Server.Name), cmp.Compare(a.Registry, b.Registry))
	})
	docs := make([]toolsearch.Tool, len(all))
	for i, e := range all {
		space, name, _ := strings.Cut(e.Server.Name, "/")
		d := toolsearch.Tool{Server: space, Name: name, Title: e.Server.Title, Description: e.Server.Description}
		for _, p := range e.Server.Packages {
			d.Arguments = append(d.Arguments, toolsearch.Argument{Name: p.Identifier})
		}
		docs[i] = d
	}
	// A part of a name fits, too, such as "right" of playwright.
	hits := toolsearch.New(docs).Search(words, len(all))
	order := make(map[int]int, len(hits))
	for at, i := range hits {
		order[i] = at
	}
	plain := strings.ToLower(strings.TrimSpace(words))
	for i, e := range all {
		if _, found := order[i]; !found && strings.Contains(strings.ToLower(e.Server.Name), plain) {
			order[i] = len(hits)
			hits = append(hits, i)
		}
	}
	class := func(e Entry) int {
		switch {
		case e.Status != Active:
			return 4
		case exact(plain, e) && e.Registry == Bundled:
			return 0
		case exact(plain, e):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(hits, func(a, b int) int {
		return cmp.Or(class(all[a])-class(all[b]), order[a]-order[b])
	})
	out := make([]Entry, 0, min(len(hits), maxResults))
	for _, i := range hits[:min(len(hits), maxResults)] {
		out = append(out, all[i])
	}
	return out
}

// exact reports whether words are a server's name, the last part of it, its title or its package.
func exact(words string, e Entry) bool {
	is := func(s string) bool { return strings.EqualFold(words, s) }
	_, last, _ := strings.Cut(e.Server.Name, "/")
	return is(e.Server.Name) || is(last) || is(e.ShortName()) || is(e.Server.Title) ||
		slices.ContainsFunc(e.Server.Packages, func(p Package) bool { return is(p.Identifier) })
}
