package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/internal/gitconf"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// hints match messages that programs print after the system refused something. A sandbox may be
// the reason, so a result says "may". The first hint is about files, the others about the
// network.
var hints = []struct {
	match func(p *Plugin, text string) bool
	note  string
}{
	{
		func(p *Plugin, text string) bool { return sandbox.FileRefused().MatchString(text) || p.hidden(text) },
		"the command may have been kept from a file by the sandbox (profile %s): it can write in the workspace, except files that configure Git (.git/config, hooks), in its caches and in $TMPDIR, and credentials are hidden",
	},
	{
		saysOf(unreached),
		"the command may have been kept from the network by the sandbox (profile %s): programs reach it only through the proxy in the environment",
	},
	{
		saysOf(unserved),
		"the command may have been kept from a service of this machine by the sandbox (profile %s): it has its own loopback interface",
	},
}

// unreached and unserved are how programs say so. Codes are words of their own: ModuleNotFoundError of
// Python has one in it.
var (
	unreached = lazyregexp.New(`(?i)could not resolve host|name or service not known|temporary failure in name resolution|network is unreachable|no such host\b|address family not supported|\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b`)
	unserved  = lazyregexp.New(`(?i)connection refused|\bECONNREFUSED\b`)
)

func saysOf(pattern func() *regexp.Regexp) func(*Plugin, string) bool {
	return func(_ *Plugin, text string) bool { return pattern().MatchString(text) }
}

// gone matches errors about a missing file; group 1 or 2 is its path.
var gone = lazyregexp.New(`(?:^|[\s'"` + "`" + `:=(])(/[^\s'"` + "`" + `:;,()]+)['"’]?: No such file or directory|(?:ENOENT: no such file or directory[^'"]{0,40}|\[Errno 2\] No such file or directory: )['"](/[^'"]+)['"]`)

// maxGone bounds how many such files are examined.
const maxGone = 16

// hidden reports whether a program missed a file that the sandbox may hide; hidden files look
// like missing ones. Only the names count: if the answer depended on the files, it would tell a
// command which of them exist.
func (p *Plugin) hidden(text string) bool {
	own, _ := p.cfg.Sandboxes.Paths()
	for _, m := range gone().FindAllStringSubmatch(text, maxGone) {
		name := filepath.Clean(cmp.Or(m[1], m[2]))
		if sandbox.Within(own, name) || sandbox.Credentials(p.cfg.Sandboxes.Home, name) {
			return true
		}
	}
	return false
}

// remedy tells the model what to do about a denial.
func (p *Plugin) remedy(session string) string {
	switch {
	case p.cfg.Sandboxes.Settings().Outside() != nil:
		return ". The setting sandbox.mode allows nothing to run outside the sandbox: if the task needs it, tell its user"
	case p.cfg.Unasked != nil && p.cfg.Unasked(session):
		return ". Nobody is available to approve a command outside the sandbox: if the task needs it, tell its user"
	}
	return `. If the task needs it, call shell with "outside": true and a reason: a person is asked`
}

// maxHintText bounds how much of an output, from its end, is searched for hints.
const maxHintText = 64 << 10

// mayHave describes the possible denials of a failed command. If hosts is set, the denials in
// the network are known already.
func (p *Plugin) mayHave(output, profile, remedy string, hosts bool) (notes []string) {
	text := output[max(0, len(output)-maxHintText):]
	for i, h := range hints {
		if hosts && i > 0 {
			break
		}
		if h.match(p, text) {
			notes = append(notes, fmt.Sprintf(h.note, profile)+remedy)
		}
	}
	return notes
}

// keptFromGit describes the remedy if the output of a failed command shows a denial in a
// repository above the workspace. Trust in a folder does not extend to its parents.
func (p *Plugin) keptFromGit(output, root string) (notes []string) {
	top := gitconf.Above(root)
	git := filepath.Join(top, ".git")
	if top == "" || !strings.Contains(output[max(0, len(output)-maxHintText):], git) {
		return nil
	}
	return []string{
		fmt.Sprintf("the workspace is a folder of the repository %s, and commands can only read the folders above it: git status, diff and log work, git commit does not", top),
		fmt.Sprintf("its user can work in %s instead, or allow commits: %s", top, p.allowBy(writeKey, fmt.Sprintf("'[%q]'", git))),
	}
}

// seen is the last known Git configuration in the folders that commands write. The next check
// reads only the folders that have changed since.
type seen struct {
	mu  sync.Mutex
	all map[string]*gitconf.State // by folder
}

// maxSeen bounds how many folders are remembered.
const maxSeen = 16

// look checks folders.
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

// gitState is the Git configuration in some folders.
type gitState []*gitconf.State

// planted lists the new and changed Git configuration in these folders, as [gitconf.Planted] does.
func (s gitState) planted(was gitState) []string {
	here := ""
	if len(s) > 0 { // the workspace
		here = s[0].Dir()
	}
	return gitconf.Planted(s, was, here)
}
