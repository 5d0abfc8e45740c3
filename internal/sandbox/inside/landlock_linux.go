package inside

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock, and the versions from which the kernel knows them.
const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX

	landlockTrunc = 3
)

// landlockVersion is the kernel's, 0 without Landlock.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v) //nolint:gosec // small
}

// ruleset collects what is allowed.
type ruleset struct {
	fd, root  int
	handled   uint64
	enclosing enclosing
}

func openRuleset(handled, scoped uint64, version int) (*ruleset, error) {
	// Older kernels know a shorter structure, and refuse what is not zero behind it.
	size := unsafe.Offsetof(unix.LandlockRulesetAttr{}.Handled_access_net)
	if version >= LandlockScopes {
		size = unsafe.Offsetof(unix.LandlockRulesetAttr{}.Quiet_access_fs)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled, Scoped: scoped}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // the kernel's interface
	if errno != 0 {
		return nil, fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		_ = unix.Close(int(fd)) //nolint:gosec // a descriptor
		return nil, fmt.Errorf("open the root: %w", err)
	}
	return &ruleset{fd: int(fd), root: root, handled: handled}, nil //nolint:gosec // a descriptor
}

// allow grants rights below an open file.
func (s *ruleset) allow(fd int, dir bool, rights uint64) error {
	rights &= s.handled
	if !dir {
		rights &= fileRights
	}
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}                                                                                 //nolint:gosec // a descriptor
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(s.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 { //nolint:gosec // the kernel's interface
		return errno
	}
	return nil
}

// allowPath grants rights below a path; nothing where it does not exist.
func (s *ruleset) allowPath(r Rule, rights uint64) error {
	fd, st, err := r.pinned(s.root)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
		if st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return nil // its target is what counts
		}
		err = s.allow(fd, st.Mode&unix.S_IFMT == unix.S_IFDIR, rights)
	}
	if err != nil {
		return fmt.Errorf("allow %s by Landlock: %w", r.Path, err)
	}
	return nil
}

func (s *ruleset) close() {
	_ = unix.Close(s.fd)
	_ = unix.Close(s.root)
}

func (s *ruleset) restrict() error {
	defer s.close()
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(s.fd), 0, 0); errno != 0 {
		return fmt.Errorf("restrict by Landlock: %w", errno)
	}
	return nil
}

// restrictByLandlock makes this thread, and what it starts, keep to the plan. Being
// in a domain at all also keeps a process from tracing those outside it.
func restrictByLandlock(p *Plan, version int) error {
	if version < MinLandlock {
		if p.Landlock {
			return fmt.Errorf("the kernel has version %d of Landlock; %d is needed (Linux 5.19)", version, MinLandlock)
		}
		return nil
	}
	// Devices are made by nobody here, and a ruleset must handle something.
	handled := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_REFER)
	if p.Landlock || p.Writes {
		handled |= writeRights
		if version >= landlockTrunc {
			handled |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		}
	}
	if p.Landlock {
		handled |= readRights
		if version >= LandlockUnix {
			handled |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
		}
	}
	var scoped uint64
	if version >= LandlockScopes {
		if p.Scope {
			scoped |= unix.LANDLOCK_SCOPE_SIGNAL
		}
		if p.Abstract {
			scoped |= unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		}
	}
	set, err := openRuleset(handled, scoped, version)
	if err != nil {
		return err
	}
	switch {
	case p.Landlock:
		set.enclosing = p.enclosing()
		err = set.grant(p, "/", 0)
	case p.Writes:
		err = set.writes(p)
	default:
		err = set.allowPath(Rule{Path: "/"}, unix.LANDLOCK_ACCESS_FS_REFER)
	}
	if err != nil {
		set.close()
		return err
	}
	return set.restrict()
}

// file identifies a file under every path.
type file struct{ dev, ino uint64 }

// enclosing are the folders above what is hidden or private, and the hidden ones. A right of
// Landlock belongs to a folder and not to a path: where one of these has a second path, of
// which the rules say nothing, a right there would be one at the first.
type enclosing struct{ hidden, private, itself map[file]bool }

func (p *Plan) enclosing() enclosing {
	a := enclosing{map[file]bool{}, map[file]bool{}, map[file]bool{}}
	for _, r := range p.Rules {
		if r.Access != Hide && r.Access != Private {
			continue
		}
		if f, dir := identify(r.Path); dir {
			a.itself[f] = true
		}
		for dir := r.Path; dir != "/"; {
			dir = dir[:max(1, strings.LastIndexByte(dir, '/'))]
			f, there := identify(dir)
			if !there {
				continue
			}
			a.private[f] = true
			if r.Access == Hide {
				a.hidden[f] = true
			}
		}
	}
	return a
}

// identify returns what a path leads to, and whether that is a folder.
func identify(path string) (file, bool) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return file{}, false
	}
	return file{uint64(st.Dev), st.Ino}, true //nolint:unconvert // differs by architecture
}

// is reports whether a path is one of the folders around what narrows an access.
func (a *enclosing) is(path string, access Access) bool {
	all := a.hidden
	if access == Read {
		all = a.private
	}
	f, dir := identify(path)
	return dir && access != Hide && access != Private && (all[f] || a.itself[f])
}

// hides reports whether a path is a hidden folder.
func (a *enclosing) hides(path string) bool {
	f, dir := identify(path)
	return dir && a.itself[f]
}

const everything = ^uint64(0)

// writes grants writing where the mounts allow it, too.
func (s *ruleset) writes(p *Plan) error {
	for _, path := range []string{"/dev", "/proc"} {
		if err := s.allowPath(Rule{Path: path}, everything&^unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK); err != nil {
			return err
		}
	}
	for _, r := range p.Rules {
		if r.Access == Write || r.Access == Private {
			if err := s.allowPath(Rule{Path: r.Path}, everything); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxWalk bounds how deep folders are opened up around hidden ones.
const maxWalk = 40

// grant grants what the rules say below a path. Landlock can only add rights on the
// way down: around something hidden, all neighbours are named one by one. The folder
// itself cannot be listed, unless the host can be written.
func (s *ruleset) grant(p *Plan, path string, deep int) error {
	access := Effective(p.Rules, path, p.Otherwise())
	var named Rule
	narrower := false
	for _, r := range p.Rules {
		switch {
		case r.Path == path:
			named = r
		case Covers(path, r.Path) && r.Path != path:
			narrower = narrower || access == Write && r.Access == Hide || access == Read && (r.Access == Hide || r.Access == Private)
		}
	}
	if narrower = narrower || s.enclosing.is(path, access); narrower && named.Path == "" && s.enclosing.hides(path) {
		return nil
	}
	named.Path = path
	rights := uint64(0)
	switch access {
	case Read:
		rights = readRights
	case Write:
		rights = everything
	case Hide, Private:
	}
	if narrower && p.HostWrites { // names are public, and a home folder has to be listable
		rights = unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	if (!narrower || p.HostWrites) && rights != 0 {
		if err := s.allowPath(named, rights); err != nil {
			return err
		}
		if access == Write && !narrower {
			return nil // a narrower right below it cannot be had
		}
	}
	return s.below(p, path, access, narrower, deep)
}

// below goes on with what is in a folder: all of it around something hidden, else
// only what rules name.
func (s *ruleset) below(p *Plan, path string, access Access, narrower bool, deep int) error {
	if !narrower {
		for _, r := range p.Rules {
			if r.Path != path && Covers(path, r.Path) && (r.Access == Write || access != Read && r.Access == Read) {
				if err := s.grant(p, r.Path, deep); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if deep == maxWalk {
		return fmt.Errorf("%s is too deep for Landlock to open it up", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil //nolint:nilerr // who cannot read it here cannot read it inside
	}
	for _, e := range entries {
		if err := s.grant(p, strings.TrimSuffix(path, "/")+"/"+e.Name(), deep+1); err != nil {
			return err
		}
	}
	return nil
}
