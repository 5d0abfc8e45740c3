package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/sandbox/inside"
)

// maxBwrapArgs is below the number of arguments that bubblewrap accepts.
const maxBwrapArgs = 8500

// capNames are the capabilities of rootCaps as bubblewrap names them.
var capNames = map[uint]string{
	unix.CAP_CHOWN: "CAP_CHOWN", unix.CAP_DAC_OVERRIDE: "CAP_DAC_OVERRIDE", unix.CAP_FOWNER: "CAP_FOWNER", unix.CAP_FSETID: "CAP_FSETID",
	unix.CAP_KILL: "CAP_KILL", unix.CAP_SETGID: "CAP_SETGID", unix.CAP_SETUID: "CAP_SETUID", unix.CAP_NET_BIND_SERVICE: "CAP_NET_BIND_SERVICE",
}

// bubble returns the plan of the process around bubblewrap, and takes from the plan of
// the one inside what bubblewrap does: the namespaces, the mounts and the loopback
// interface. Systems whose AppArmor refuses namespaces to other programs may allow
// them to bubblewrap, and leave no capability to what it starts.
func bubble(plan *inside.Plan) (*inside.Plan, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, errors.New("bubblewrap is not installed (program bwrap)")
	}
	args := []string{"bwrap", "--unshare-user", "--chdir", "/"}
	add := func(more ...string) { args = append(args, more...) }
	if plan.Init {
		add("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent")
	}
	if plan.Loopback || plan.Filter.NoInet {
		add("--unshare-net")
	}
	if os.Geteuid() == 0 {
		add("--cap-drop", "ALL")
		for _, c := range plan.Caps {
			add("--cap-add", capNames[c])
		}
		if slices.ContainsFunc(plan.Listen, func(a inside.Addr) bool { return a.Port < lowPorts }) {
			add("--cap-add", capNames[unix.CAP_NET_BIND_SERVICE]) // our part gives it up
		}
	}
	bind := "--bind"
	switch {
	case plan.HostWrites:
		bind = "--dev-bind"
		add(bind, "/", "/")
	case plan.Strict:
		for _, l := range plan.Links {
			add("--symlink", l[1], l[0])
		}
	default:
		add("--ro-bind", "/", "/")
	}
	if plan.Own {
		add("--proc", "/proc", "--dev", "/dev")
		for _, name := range inside.ProcMasked {
			if _, err := os.Lstat("/proc/" + name); err == nil {
				add("--ro-bind", "/dev/null", "/proc/"+name)
			}
		}
		for _, name := range inside.ProcRead {
			if _, err := os.Lstat("/proc/" + name); err == nil {
				add("--ro-bind", "/proc/"+name, "/proc/"+name)
			}
		}
	}
	root := os.Geteuid() == 0 && !plan.HostWrites
	entered := map[string]bool{"/": true}
	if root {
		plan.Rules = closed(plan.Rules, entered)
	}
	var sealed []string
	for i, r := range plan.Rules {
		more, seal, err := bubbleRule(plan, i, bind)
		if err != nil {
			return nil, err
		}
		if dir := shut(filepath.Dir(r.Path), entered); root && len(more) > 0 && dir != "" {
			return nil, fmt.Errorf("bubblewrap mounts nothing at %s: the folder %s is another user's and closed to others, and root has no power over it there: open it (chmod o+x), or use another back end (yaya config set sandbox.backend auto)", r.Path, dir)
		}
		add(more...)
		if seal {
			sealed = append(sealed, r.Path)
		}
	}
	if plan.Strict {
		sealed = append(sealed, "/")
	}
	for _, name := range sealed {
		add("--remount-ro", name)
	}
	// The descriptor behind the control socket is this program: its file may be hidden.
	add("--", "/proc/self/fd/"+strconv.Itoa(4+plan.Keep))
	if len(args) > maxBwrapArgs {
		return nil, fmt.Errorf("bubblewrap takes %d arguments, and the sandbox needs %d", maxBwrapArgs, len(args))
	}
	plan.Mounts, plan.Loopback, plan.Mounted = false, false, true
	return &inside.Plan{Around: true, Path: path, Argv: args, Keep: plan.Keep, Terminal: plan.Terminal}, nil
}

// closed hides, in the place of what lies in them, folders that root cannot enter in
// bubblewrap's namespace, where other users have no number and root no power over their
// files: nothing can be mounted in them. One in which something is granted stays.
func closed(rules []inside.Rule, known map[string]bool) []inside.Rule {
	for _, r := range slices.Clone(rules) {
		if r.Access != inside.Hide {
			continue
		}
		dir := shut(filepath.Dir(r.Path), known)
		if dir == "" || slices.ContainsFunc(rules, func(o inside.Rule) bool {
			return inside.Covers(dir, o.Path) && o.Access != inside.Hide && !o.Kept
		}) {
			continue
		}
		rules = slices.DeleteFunc(rules, func(o inside.Rule) bool { return inside.Covers(dir, o.Path) })
		rules = append(rules, inside.Rule{Path: dir, Access: inside.Hide})
	}
	return inside.Sort(rules)
}

// shut returns the topmost of a folder and those above it that root cannot enter without
// power over the files of others, "" if it can enter each. known are folders that it can.
func shut(dir string, known map[string]bool) string {
	if known[dir] {
		return ""
	}
	if above := shut(filepath.Dir(dir), known); above != "" {
		return above
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil || enters(dir, &st) {
		known[dir] = true // what has gone is nowhere
		return ""
	}
	return dir
}

// enters reports whether root can enter a folder by the rights that the folder gives.
func enters(dir string, st *unix.Stat_t) bool {
	if st.Uid == 0 && st.Gid == 0 {
		return true
	}
	if n, err := unix.Lgetxattr(dir, "system.posix_acl_access", nil); err == nil && n > 0 {
		return true // rights of others than owner and group, which may be root's
	}
	groups, err := os.Getgroups()
	switch {
	case st.Uid == 0:
		return st.Mode&0o100 != 0
	case err != nil || int(st.Gid) == os.Getegid() || slices.Contains(groups, int(st.Gid)):
		return st.Mode&0o010 != 0
	}
	return st.Mode&0o001 != 0
}

// bubbleRule returns bubblewrap's arguments for a rule, and whether the place is made
// read-only in the end.
func bubbleRule(plan *inside.Plan, i int, bind string) (args []string, seal bool, err error) {
	r := &plan.Rules[i]
	info, err := os.Lstat(r.Path)
	there := err == nil
	if there && r.Kept && info.Mode()&fs.ModeSymlink != 0 { // bubblewrap mounts where a link leads, not at the link
		return nil, false, fmt.Errorf("bubblewrap cannot keep the link %s from being replaced, which others follow: put what it leads to in its place, or let yaya use namespaces (yaya sandbox says how)", r.Path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("%s %s: %w", r.Access, r.Path, err)
	}
	before := inside.Effective(plan.Rules[:i], r.Path, plan.Otherwise())
	switch r.Access {
	case inside.Read, inside.Write:
		if !r.Kept && r.From == "" && before == r.Access && !plan.Strict {
			return nil, false, nil // as it is already
		}
		if r.Access == inside.Read {
			bind = "--ro-bind"
		}
		return []string{bind, cmp.Or(r.From, r.Path), r.Path}, false, nil
	case inside.Private:
		if !there && !plan.Strict {
			return nil, false, nil
		}
		if r.From != "" {
			return []string{bind, r.From, r.Path}, false, nil
		}
		args = []string{"--perms", "1777"}
		if plan.Tmp > 0 {
			args = append(args, "--size", strconv.FormatInt(plan.Tmp, 10))
		}
		return append(args, "--tmpfs", r.Path), false, nil
	case inside.Hide:
		switch {
		case !there || before == inside.Hide || before == inside.Private:
			return nil, false, nil // nothing of it is there
		case !info.IsDir():
			return []string{"--ro-bind", "/dev/null", r.Path}, false, nil
		}
		return []string{"--perms", inside.HiddenPerms, "--tmpfs", r.Path}, true, nil
	}
	return nil, false, fmt.Errorf("the plan says %q about %s, which is not an access", r.Access, r.Path)
}
