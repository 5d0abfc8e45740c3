package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/gitconf"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// hints are what programs print when the system has kept them from something, which a
// sandbox may be the reason for: a result says "may".
var hints = []struct {
	said func(p *Plugin, text string) bool
	note string
}{
	{
		func(p *Plugin, text string) bool { return sandbox.FileRefused.MatchString(text) || p.hidden(text) },
		"the command may have been kept from a file by the sandbox (profile %s): it writes in the workspace without what configures Git (.git/config, hooks), in its caches and in $TMPDIR, and credentials are hidden",
	},
	{
		anyOf("could not resolve host", "name or service not known", "temporary failure in name resolution", "network is unreachable", "no such host", "enotfound", "eai_again", "enetunreach", "address family not supported"),
		"the command may have been kept from the network by the sandbox (profile %s): without the proxy that the environment names, nothing is reached",
	},
	{
		anyOf("connection refused", "econnrefused"),
		"the command may have been kept from a service of this machine by the sandbox (profile %s): its loopback interface is its own",
	},
}

func anyOf(texts ...string) func(*Plugin, string) bool {
	return func(_ *Plugin, text string) bool {
		text = strings.ToLower(text)
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(text, t) })
	}
}

// gone is how programs say that a file is not there; group 1, or 2, is its path.
var gone = regexp.MustCompile(`(?:^|[\s'"` + "`" + `:=(])(/[^\s'"` + "`" + `:;,()]+)['"’]?: No such file or directory|(?:ENOENT: no such file or directory[^'"]{0,40}|\[Errno 2\] No such file or directory: )['"](/[^'"]+)['"]`)

// maxGone bounds how many such files are looked at.
const maxGone = 16

// hidden reports whether a program has missed a file that the sandbox may hide, which it
// does without saying so. The names alone count: what depended on the files would tell a
// command which of them are there.
func (p *Plugin) hidden(text string) bool {
	own, _ := p.cfg.Sandboxes.Paths()
	for _, m := range gone.FindAllStringSubmatch(text, maxGone) {
		name := filepath.Clean(cmp.Or(m[1], m[2]))
		if sandbox.Within(own, name) || sandbox.Credentials(p.cfg.Sandboxes.Home, name) {
			return true
		}
	}
	return false
}

// remedy is what a model can do about a command that was kept from something.
func (p *Plugin) remedy(session string) string {
	switch {
	case p.cfg.Sandboxes.Settings().Outside() != nil:
		return ". Nothing runs outside of the sandbox, as the setting sandbox.mode says: if the task needs it, tell its user"
	case p.cfg.Unasked != nil && p.cfg.Unasked(session):
		return ". Nobody is there to agree to a command outside of the sandbox: if the task needs it, tell its user"
	}
	return `. If the task needs it, call shell with "outside": true and a reason: a person is asked`
}

// maxHintText bounds how much of an output is looked at for hints, from its end.
const maxHintText = 64 << 10

// mayHave says what a command that failed may have been kept from.
func (p *Plugin) mayHave(output, profile, remedy string) (notes []string) {
	text := output[max(0, len(output)-maxHintText):]
	for _, h := range hints {
		if h.said(p, text) {
			notes = append(notes, fmt.Sprintf(h.note, profile)+remedy)
		}
	}
	return notes
}

// keptFromGit says what to do about a repository that the workspace lies in, when the
// output of a command that failed names what it was kept from there. To trust a folder is
// not to trust what lies around it.
func keptFromGit(output, root string) (notes []string) {
	top := gitconf.Above(root)
	git := filepath.Join(top, ".git")
	if top == "" || !strings.Contains(output[max(0, len(output)-maxHintText):], git) {
		return nil
	}
	return []string{
		fmt.Sprintf("the workspace is a folder of the repository %s, and a command only reads what lies above it: git status, diff and log work, a commit does not", top),
		fmt.Sprintf("its user can work in %s instead, or allow commits: yaya config set %s '[%q]'", top, writeKey, git),
	}
}

// maxPlanted bounds how many changes of what configures Git a result tells.
const maxPlanted = 16

// maxPath bounds how much of a path they show, in bytes.
const maxPath = 512

// seen is what configures Git in the folders that commands write, as it was last seen.
// The next look reads only the folders that have changed since.
type seen struct {
	mu  sync.Mutex
	all map[string]*gitconf.State // by folder
}

// maxSeen bounds of how many folders that is kept.
const maxSeen = 16

// look looks at folders.
func (s *seen) look(dirs []string) gitState {
	var g gitState
	for _, dir := range dirs {
		s.mu.Lock()
		known := s.all[dir]
		s.mu.Unlock()
		now := gitconf.Look(dir, known)
		s.mu.Lock()
		if s.all == nil || len(s.all) >= maxSeen && known == nil {
			s.all = map[string]*gitconf.State{}
		}
		s.all[dir] = now
		s.mu.Unlock()
		g = append(g, now)
	}
	return g
}

// gitState is what configures Git in some folders.
type gitState []*gitconf.State

// planted says what of Git's configuration in these folders is new, or is another, than
// it was. Where a sandbox cannot protect it, a command can make it, and Git runs what it
// names.
func (s gitState) planted(was gitState) (notes []string) {
	cut := ""
	for i, now := range s {
		base := ""
		if i > 0 {
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
			notes = append(notes, fmt.Sprintf("%s %s: look at it before you run Git there outside of the sandbox, which runs what that configures (yaya itself runs no Git)", name, c.How))
		}
		if now.Cut() || was[i].Cut() {
			cut = now.Dir()
		}
	}
	if more := len(notes) - maxPlanted; more > 0 {
		notes = append(notes[:maxPlanted], fmt.Sprintf("and %d more files that configure Git", more))
	}
	if cut != "" {
		notes = append(notes, fmt.Sprintf("%s has too many files to look for repositories in all of its folders: look at those that you do not know before you run Git in them", cut))
	}
	return notes
}
