package gitconf

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// maxPlanted bounds how many changes of Git's configuration a result lists.
const maxPlanted = 16

// maxPath bounds how much of a path it shows, in bytes.
const maxPath = 512

// Planted lists the new and changed Git configuration in folders, each in a sentence for a person.
// Paths in here are relative to it. If a sandbox cannot
// protect such files, a command can create them, and Git runs the programs that they name.
func Planted(now, was []*State, here string) (notes []string) {
	cut := ""
	for i, now := range now {
		base := ""
		if now.Dir() != here {
			base = now.Dir()
		}
		for _, c := range now.Since(was[i]) {
			name := filepath.Join(base, c.Path)
			if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
				name = strconv.Quote(name)
			}
			if len(name) > maxPath {
				name = strings.ToValidUTF8(name[:maxPath], "") + "…"
			}
			notes = append(notes, fmt.Sprintf("%s %s: check it before you run Git there outside the sandbox, since Git runs the programs that it names (yaya itself does not run Git)", name, c.How))
		}
		if now.Cut() || was[i].Cut() {
			cut = now.Dir()
		}
	}
	if more := len(notes) - maxPlanted; more > 0 {
		notes = append(notes[:maxPlanted], fmt.Sprintf("and %d more files that configure Git", more))
	}
	if cut != "" {
		notes = append(notes, fmt.Sprintf("%s has too many files to search all of its folders for repositories: check unknown ones before you run Git in them", cut))
	}
	return notes
}
