package folder

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is the effect of an [Item] once its folder is trusted.
type Kind string

// Kinds of items.
const (
	Check        Kind = "check"        // a command that runs after the agent's changes
	Server       Kind = "server"       // an MCP server that is started
	Instructions Kind = "instructions" // a file that the agent follows
	Skill        Kind = "skill"        // a folder with instructions that the agent loads
	Agent        Kind = "agent"        // a file that describes a sub-agent
	Hook         Kind = "hook"         // a command that runs at an event
)

// Bounds of what a question can show.
const (
	maxItems = 200
	maxText  = 4 << 10 // bytes of a name or a command
)

// ErrTooMuch means that a folder has more to show than a person can judge.
var ErrTooMuch = errors.New("the folder brings more than a question can show")

// Item is one thing in a folder that may run once the folder is trusted.
type Item struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name,omitempty"`
	// Runs is the command line, or the address, exactly.
	Runs string `json:"runs,omitempty"`
	// Digest covers the rest of the item's definition, such as a server's environment.
	Digest string `json:"digest,omitempty"`
	// Lacks names the limits of its sandbox that are not enforced here, separated by
	// ", ". An agreement to an item covers one that lacks less.
	Lacks string `json:"lacks,omitempty"`
	// Weaker describes Lacks in words. Shown is Runs with the limits that are enforced,
	// "" if equal to Runs. Neither is stored.
	Weaker string `json:"-"`
	Shown  string `json:"-"`
}

// Same reports whether two items are the same, apart from enforcement.
func (i Item) Same(o Item) bool {
	return i.Kind == o.Kind && i.Name == o.Name && i.Runs == o.Runs && i.Digest == o.Digest
}

// within reports whether an item was agreed to, and lacks nothing more than it did
// then.
func (i Item) within(was Item) bool {
	if !i.Same(was) {
		return false
	}
	agreed := strings.Split(was.Lacks, ", ")
	return i.Lacks == "" || !slices.ContainsFunc(strings.Split(i.Lacks, ", "), func(n string) bool { return !slices.Contains(agreed, n) })
}

// shown returns the item for display.
func (i Item) shown() Item {
	i.Runs, i.Shown = cmp.Or(i.Shown, i.Runs), ""
	return i
}

// title names the item in a sentence.
func (i Item) title() string {
	return string(i.Kind) + " " + strconv.Quote(cmp.Or(i.Name, i.Runs))
}

// String returns the item as one line for a person.
func (i Item) String() string {
	switch i = i.shown(); {
	case i.Name == "":
		return fmt.Sprintf("%s: %s", i.Kind, i.Runs)
	case i.Runs == "":
		return fmt.Sprintf("%s: %s", i.Kind, i.Name)
	}
	return fmt.Sprintf("%s %s: %s", i.Kind, i.Name, i.Runs)
}

// Subject is a folder and everything in it that may run once it is trusted.
type Subject struct {
	Folder string `json:"folder"` // absolute, without symbolic links
	Items  []Item `json:"items"`
}

// Digest identifies exactly this subject. Items count in any order.
func (s Subject) Digest() string {
	h := sha256.New()
	part := func(v string) { h.Write([]byte(strconv.Itoa(len(v)) + ":" + v)) }
	part(s.Folder)
	for _, i := range sorted(s.Items) {
		part(string(i.Kind))
		part(i.Name)
		part(i.Runs)
		part(i.Digest)
		if i.Lacks != "" { // items that people agreed to before name none: their digest stays
			part("lacks: " + i.Lacks)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (s Subject) check() error {
	if len(s.Items) > maxItems {
		return fmt.Errorf("%w: %s has %d commands, servers, skills, sub-agents, hooks and instruction files, %d at most", ErrTooMuch, s.Folder, len(s.Items), maxItems)
	}
	for _, i := range s.Items {
		if len(i.Name) > maxText || len(i.Runs) > maxText {
			return fmt.Errorf("%w: a %s of %s has more than %d bytes", ErrTooMuch, i.Kind, s.Folder, maxText)
		}
	}
	return nil
}

func sorted(items []Item) []Item {
	out := slices.Clone(items)
	slices.SortFunc(out, func(a, b Item) int {
		return strings.Compare(string(a.Kind)+"\x00"+a.Name+"\x00"+a.Runs+"\x00"+a.Digest, string(b.Kind)+"\x00"+b.Name+"\x00"+b.Runs+"\x00"+b.Digest)
	})
	return slices.Compact(out)
}

// Resolve returns the canonical path of a folder: absolute, without symbolic links.
func Resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// within reports whether a resolved path is a folder or lies below it.
func within(dir, root string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}
