package inside

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A root user of the host is that user for files of the kernel, too, with or without
// capabilities: in /proc, these must not be written, and those not be read.
var (
	ProcRead   = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"}
	ProcMasked = []string{"kcore", "keys", "timer_list", "sched_debug", "kmsg", "kpagecount", "kpageflags", "kpagecgroup"}
)

// system mounts /proc and /dev.
func (b *builder) system() error {
	if !b.plan.Own {
		return nil
	}
	if err := b.mountProc(); err != nil {
		return err
	}
	return b.mountDev()
}

func (b *builder) mountProc() error {
	tree, err := newFS("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		if !errors.Is(err, unix.EPERM) {
			return err
		}
		// Containers mask parts of /proc, and the kernel does not let us look behind.
		b.proc = err.Error()
		if !b.plan.Strict {
			return nil
		}
		if tree, err = clone(unix.AT_FDCWD, "/proc"); err != nil {
			return fmt.Errorf("clone the mount of /proc: %w", err)
		}
		if err := setAttr(tree, attrMasked); err != nil {
			return fmt.Errorf("make /proc read-only: %w", err)
		}
		return b.attach(tree, "/proc", false)
	}
	if err := b.attach(tree, "/proc", false); err != nil {
		return err
	}
	for _, name := range ProcRead {
		path := "/proc/" + name
		fd, err := openBelow(b.root, path)
		if err != nil {
			continue // this kernel has not got it
		}
		part, err := clone(fd, "")
		_ = unix.Close(fd)
		if err == nil {
			err = setAttr(part, attrMasked)
		}
		if err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
		if err := b.attach(part, path, false); err != nil {
			return err
		}
	}
	for _, name := range ProcMasked {
		if err := b.mask("/proc/" + name); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) mountDev() error {
	devices := map[string]int{}
	for _, path := range Devices {
		fd, err := clone(unix.AT_FDCWD, path)
		if err != nil {
			continue // the host has not got it
		}
		// Read-only is the file, not the device: its mode and its times are the host's.
		if err := setAttr(fd, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("set the attributes of %s: %w", path, err)
		}
		devices[path] = fd
	}
	dev, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "mode=0755", "size=1m")
	if err != nil {
		return err
	}
	if err := b.attach(dev, "/dev", false); err != nil {
		return err
	}
	for path, fd := range devices {
		if err := b.attach(fd, path, true); err != nil {
			return err
		}
	}
	pts, err := newFS("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "newinstance", "ptmxmode=0666", "mode=620")
	if err != nil {
		return err
	}
	if err := b.attach(pts, "/dev/pts", false); err != nil {
		return err
	}
	shm, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, b.private()...)
	if err != nil {
		return err
	}
	if err := b.attach(shm, "/dev/shm", false); err != nil {
		return err
	}
	for name, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := unix.Symlinkat(to, dev, name); err != nil {
			return fmt.Errorf("link /dev/%s: %w", name, err)
		}
	}
	if err := unix.MountSetattr(dev, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make /dev read-only: %w", err)
	}
	return nil
}
