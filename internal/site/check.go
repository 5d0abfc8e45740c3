package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// broken names the links of documents that lead to no file, no heading, or out of the
// repository by its own path.
func broken(repo fs.FS, docs []*document) (problems []string) {
	byFile := map[string]*document{}
	for _, d := range docs {
		byFile[d.file] = d
	}
	for _, d := range docs {
		for _, l := range d.links {
			if reason := leadsNowhere(repo, byFile, d, l); reason != "" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: %s", d.file, l.line, l.to, reason))
			}
		}
	}
	return problems
}

// leadsNowhere returns why a link leads nowhere, "" if it leads somewhere.
func leadsNowhere(repo fs.FS, byFile map[string]*document, d *document, l *link) string {
	file, id, inside := d.target(l.to)
	if !inside {
		if l.image {
			return "the image is of another site: put it into the repository"
		}
		return ""
	}
	if strings.HasPrefix(file, "../") || path.IsAbs(file) {
		return "it leads out of the repository"
	}
	if _, err := fs.Stat(repo, file); err != nil {
		return "the file does not exist"
	}
	if id == "" {
		return ""
	}
	if at := byFile[file]; at == nil {
		return "the file is not a page of the site, so nobody knows its headings: add it to internal/site/order.go"
	} else if !at.hasID(id) {
		return fmt.Sprintf("%s has no heading with this anchor", file)
	}
	return ""
}

// leaving lists the links that lead out of the repository, for people to look at: nothing asks
// the sites.
func leaving(docs []*document) []string {
	var out []string
	for _, d := range docs {
		for _, l := range d.links {
			if _, _, inside := d.target(l.to); !inside {
				out = append(out, fmt.Sprintf("%s:%d: %s", d.file, l.line, l.to))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
