package inside

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Attributes of mounts. A program in the sandbox gains nothing from set-user-ID
// files and finds no devices but those of its own /dev.
const (
	attrPlain  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrRead   = attrPlain | unix.MOUNT_ATTR_RDONLY
	attrMasked = attrRead | unix.MOUNT_ATTR_NOEXEC
)

// hiddenMode lets nobody list a hidden folder, and lets rules below it be reached.
const hiddenMode = 0o111

// builder makes a root. Everything of the host is cloned before anything is mounted
// over it, and every place is opened below the new root without following links: the
// folders may belong to a program that changes them meanwhile.
type builder struct {
	plan   *Plan
	root   int
	clones map[string]int // by path of the rule
	files  map[string]bool
	null   int
	sealed []int // hidden folders, which get their mode last
	proc   string
}

// mountRoot builds the root of the plan and enters it. It returns why /proc is the
// host's, if it had to stay.
func mountRoot(p *Plan) (string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("make the mounts private: %w", err)
	}
	b := &builder{plan: p, root: -1, clones: map[string]int{}, files: map[string]bool{}}
	for _, step := range []func() error{b.cloneAll, b.streams, b.makeRoot, b.system, b.rules, b.aliases, b.seal, b.enter} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return b.proc, nil
}

func clone(fd int, path string) (int, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.O_CLOEXEC | unix.AT_RECURSIVE)
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	return unix.OpenTree(fd, path, flags)
}

func setAttr(fd int, set uint64) error {
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: set})
}

func (b *builder) cloneAll() error {
	host, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(host) }()
	if b.null, err = clone(unix.AT_FDCWD, "/dev/null"); err != nil {
		return fmt.Errorf("clone the mount of /dev/null: %w", err)
	}
	if err := setAttr(b.null, attrMasked); err != nil {
		return fmt.Errorf("make a mount read-only: %w (the kernel must be 5.12 or later)", err)
	}
	for i := range b.plan.Rules {
		r := &b.plan.Rules[i]
		fd, st, err := r.pinned(host)
		if err != nil {
			if errors.Is(err, unix.ENOENT) && r.From == "" && (r.Access == Hide || r.Access == Private) {
				continue
			}
			return fmt.Errorf("%s %s: %w", r.Access, r.Path, err)
		}
		b.files[r.Path] = st.Mode&unix.S_IFMT != unix.S_IFDIR
		if r.Access == Read || r.Access == Write || r.From != "" {
			err = b.cloneRule(r, fd)
		}
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) cloneRule(r *Rule, fd int) error {
	tree, err := clone(fd, "")
	if err != nil {
		return fmt.Errorf("clone the mount of %s: %w", r.Path, err)
	}
	attr := uint64(attrPlain)
	switch {
	case r.Access == Read:
		attr = attrRead
	case b.plan.HostWrites:
		attr = unix.MOUNT_ATTR_NOSUID
	}
	if err := setAttr(tree, attr); err != nil {
		return fmt.Errorf("set the attributes of the mount of %s: %w", r.Path, err)
	}
	b.clones[r.Path] = tree
	return nil
}

// newFS makes a mount that is attached nowhere.
func newFS(kind string, attr int, options ...string) (int, error) {
	ctx, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("mount %s: %w", kind, err)
	}
	defer func() { _ = unix.Close(ctx) }()
	for _, o := range options {
		key, value, found := strings.Cut(o, "=")
		if found {
			err = unix.FsconfigSetString(ctx, key, value)
		} else {
			err = unix.FsconfigSetFlag(ctx, key)
		}
		if err != nil {
			return -1, fmt.Errorf("mount %s with %s: %w", kind, o, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, fmt.Errorf("mount %s: %w", kind, err)
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return -1, fmt.Errorf("mount %s: %w", kind, err)
	}
	return fd, nil
}

// makeRoot attaches the new root above a folder of the host's, from where it becomes
// the root in the end.
func (b *builder) makeRoot() error {
	var err error
	if b.plan.Strict {
		b.root, err = newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode=0755", "size=1m")
		if err == nil {
			b.sealed = append(b.sealed, -1)
		}
		for _, l := range b.plan.Links {
			if err == nil {
				err = unix.Symlinkat(l[1], b.root, strings.TrimPrefix(l[0], "/"))
			}
		}
	} else if b.root, err = clone(unix.AT_FDCWD, "/"); err == nil {
		attr := uint64(attrRead)
		if b.plan.HostWrites {
			attr = unix.MOUNT_ATTR_NOSUID
		}
		err = setAttr(b.root, attr)
	}
	if err != nil {
		return fmt.Errorf("make a root: %w", err)
	}
	for _, at := range []string{"/tmp", "/usr", "/etc", "/proc"} {
		if err = unix.MoveMount(b.root, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err == nil {
			return nil
		}
	}
	return fmt.Errorf("attach the new root: %w", err)
}

// attach puts a mount at a path of the new root, and makes the path where the mount
// above it is one of ours.
func (b *builder) attach(tree int, path string, file bool) error {
	at, err := openBelow(b.root, path)
	if errors.Is(err, unix.ENOENT) {
		if err = b.create(path, file); err == nil {
			at, err = openBelow(b.root, path)
		}
	}
	if err != nil {
		return fmt.Errorf("mount at %s: %w", path, err)
	}
	defer func() { _ = unix.Close(at) }()
	if err := unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount at %s: %w", path, err)
	}
	return nil
}

// create makes a path and the folders above it in a mount of ours; a mount of the
// host's is read-only then, and refuses.
func (b *builder) create(path string, file bool) error {
	at := strings.LastIndexByte(path, '/')
	dir, name := path[:at], path[at+1:]
	if dir == "" {
		dir = "/"
	}
	parent, err := openBelow(b.root, dir)
	if errors.Is(err, unix.ENOENT) && dir != "/" {
		if err = b.create(dir, false); err == nil {
			parent, err = openBelow(b.root, dir)
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(parent) }()
	if !file {
		return unix.Mkdirat(parent, name, 0o755)
	}
	fd, err := unix.Openat(parent, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o444)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// rules mounts what the plan's rules say, shallow ones first.
func (b *builder) rules() error {
	for i := range b.plan.Rules {
		r := &b.plan.Rules[i]
		if err := b.rule(r, i); err != nil {
			return err
		}
	}
	return nil
}

// aliases makes the links by which granted files are called. They come after all mounts,
// none of which follows a link. A mount of the host's has its own.
func (b *builder) aliases() error {
	for _, a := range b.plan.Aliases {
		at := strings.LastIndexByte(a[0], '/')
		dir, name := a[0][:at], a[0][at+1:]
		if dir == "" {
			dir = "/"
		}
		parent, err := openBelow(b.root, dir)
		if errors.Is(err, unix.ENOENT) && b.create(dir, false) == nil {
			parent, err = openBelow(b.root, dir)
		}
		if err != nil {
			continue // hidden, or the host's and read-only: then so is what it leads to
		}
		err = unix.Symlinkat(a[1], parent, name)
		_ = unix.Close(parent)
		if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("make the link %s: %w", a[0], err)
		}
	}
	return nil
}

func (b *builder) rule(r *Rule, i int) error {
	file, there := b.files[r.Path]
	switch r.Access {
	case Read, Write:
		if !r.Kept && r.From == "" && Effective(b.plan.Rules[:i], r.Path, b.plan.Otherwise()) == r.Access && !b.plan.Strict {
			return unix.Close(b.clones[r.Path]) // as it is already
		}
		return b.attach(b.clones[r.Path], r.Path, file)
	case Private:
		if !there && !b.plan.Strict {
			return nil
		}
		if r.From != "" {
			return b.attach(b.clones[r.Path], r.Path, file)
		}
		tree, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, b.private()...)
		if err != nil {
			return err
		}
		return b.attach(tree, r.Path, false)
	case Hide:
		if !there || (b.plan.Strict && !b.visible(r.Path)) {
			return nil
		}
		if file {
			return b.mask(r.Path)
		}
		tree, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, "mode=0711", "size=1m")
		if err != nil {
			return err
		}
		b.sealed = append(b.sealed, tree)
		return b.attach(tree, r.Path, false)
	}
	return fmt.Errorf("the plan says %q about %s, which is not an access", r.Access, r.Path)
}

// maxMasks bounds how often a file is masked again that others replace meanwhile.
const maxMasks = 20

// mask puts an unreadable file above another one. The other one may go, and another may
// come in its place, while that is done: sockets do.
func (b *builder) mask(path string) (err error) {
	for range maxMasks {
		if !b.visible(path) {
			return nil
		}
		if err = b.maskOnce(path); !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return err
}

func (b *builder) maskOnce(path string) error {
	tree, err := clone(b.null, "")
	if err != nil { // not attached: clone the attached one of the host
		if tree, err = clone(unix.AT_FDCWD, "/dev/null"); err == nil {
			err = setAttr(tree, attrMasked)
		}
	}
	if err != nil {
		return fmt.Errorf("hide %s: %w", path, err)
	}
	return b.attach(tree, path, true)
}

// visible reports whether a path leads to something in the new root.
func (b *builder) visible(path string) bool {
	fd, err := openBelow(b.root, path)
	if err != nil {
		return false
	}
	return unix.Close(fd) == nil
}

func (b *builder) private() []string {
	opts := []string{"mode=1777"}
	if b.plan.Tmp > 0 {
		opts = append(opts, "size="+strconv.FormatInt(b.plan.Tmp, 10))
	}
	return opts
}

// seal takes the right to write from the folders that only held places to mount at.
func (b *builder) seal() error {
	for _, fd := range b.sealed {
		mode := uint32(hiddenMode)
		if fd < 0 {
			fd, mode = b.root, 0o555
		}
		if err := unix.Fchmodat(fd, ".", mode, 0); err != nil {
			return fmt.Errorf("seal a hidden folder: %w", err)
		}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("seal a hidden folder: %w", err)
		}
	}
	return nil
}

// enter makes the new root the root, and lets go of the old one.
func (b *builder) enter() error {
	if err := unix.Fchdir(b.root); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("make the new root the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the old root: %w", err)
	}
	return unix.Chdir("/")
}
