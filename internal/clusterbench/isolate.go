//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cannotIsolate returns why machines cannot have a network and a disk of their own here, "" if
// they can.
func cannotIsolate() string {
	if os.Getuid() != 0 {
		return "namespaces with disks need root"
	}
	for _, tool := range []string{"ip", "mount", "mkfs.ext4"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed"
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		return "loop devices are missing"
	}
	probe := exec.Command("ip", "link", "add", "probe", "type", "veth", "peer", "name", "peer") //nolint:noctx // it ends by itself
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	if out, err := probe.CombinedOutput(); err != nil {
		return fmt.Sprintf("network namespaces do not work: %v: %s", err, strings.TrimSpace(string(out)))
	}
	return ""
}

// runInside plays a round in namespaces of its own. All its processes, mounts and networks end with
// it, because it is the first process of its namespace.
func runInside(ctx context.Context, o options, f fault, seed uint64) (played, error) {
	runtime.LockOSThread() // the child ends with the thread that has started it
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("", "cb") // short, for the paths of sockets
	if err != nil {
		return played{}, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-inside", dir, "-yaya", o.yaya, "-fault", f.name, "-seed", fmt.Sprint(seed), "-for", o.lasts.String(), "-slack", o.slack.String()) //nolint:gosec // this program
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	out, err := cmd.Output()
	var p played
	if err == nil {
		err = json.Unmarshal(out, &p)
	}
	return p, errors.Join(err, os.RemoveAll(dir))
}

// playInside plays a round as the first process of its namespaces, and prints what came of it.
func playInside(ctx context.Context, o options) error {
	f, err := faultNamed(o.fault)
	if err != nil {
		return err
	}
	g := &ground{dir: o.inside, isolated: true}
	if err := g.isolate(); err != nil {
		return err
	}
	p, err := play(ctx, o, g, f, o.seed)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}

// playHere plays a round on the loopback interface.
func playHere(ctx context.Context, o options, f fault, seed uint64) (played, error) {
	dir, err := os.MkdirTemp("", "cb")
	if err != nil {
		return played{}, err
	}
	g := &ground{dir: dir}
	for i := range g.nets {
		err = errors.Join(err, os.Mkdir(g.folder(i), 0o700))
	}
	var p played
	if err == nil {
		p, err = play(ctx, o, g, f, seed)
	}
	return p, errors.Join(err, os.RemoveAll(dir))
}

// ground holds the folders and the networks of the machines of a round.
type ground struct {
	dir      string
	isolated bool
	nets     [3]int // descriptors of their network namespaces
}

// folder is the disk of a machine.
func (g *ground) folder(i int) string { return filepath.Join(g.dir, fmt.Sprint("m", i)) }

// isolate makes the disks, and a network of three machines at a bridge.
func (g *ground) isolate() error {
	script := `set -e
mount --make-rprivate /
mount -t proc proc /proc
mkdir -p /run/netns
mount -t tmpfs bench /run/netns
mount -t tmpfs -o size=640m bench "$1"
ip link add switch type bridge
ip link set switch up
for i in 0 1 2; do
  truncate -s 160m "$1/disk$i"
  mkfs.ext4 -q "$1/disk$i"
  mkdir "$1/m$i"
  mount -o loop "$1/disk$i" "$1/m$i"
  ip netns add "m$i"
  ip link add "p$i" type veth peer name eth0 netns "m$i"
  ip link set "p$i" master switch up
  ip -n "m$i" link set lo up
  ip -n "m$i" link set eth0 address "02:00:00:00:00:0$i" up
  ip -n "m$i" address add "10.77.0.1$i/24" dev eth0
done`
	if out, err := exec.Command("sh", "-c", script, "sh", g.dir).CombinedOutput(); err != nil { //nolint:noctx,gosec // our own words
		return fmt.Errorf("set up the machines: %w: %s", err, out)
	}
	for i := range g.nets {
		fd, err := unix.Open(fmt.Sprint("/run/netns/m", i), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		g.nets[i] = fd
		for to := range g.nets {
			if err := g.wire(i, to, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// wire cuts or mends the way of packets from a machine to another one, and that way alone. A wrong
// hardware address loses them without a word, as a cut cable does.
func (g *ground) wire(from, to int, whole bool) error {
	if from == to {
		return nil
	}
	last := to
	if !whole {
		last += 50
	}
	cmd := exec.Command("ip", "-n", fmt.Sprint("m", from), "neighbour", "replace", fmt.Sprint("10.77.0.1", to), //nolint:noctx,gosec // it ends by itself
		"lladdr", fmt.Sprintf("02:00:00:00:00:%02d", last), "dev", "eth0", "nud", "permanent")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("wire %d to %d: %w: %s", from, to, err, out)
	}
	return nil
}

// on runs f on a thread that is in the network of a machine: what f starts is there, too.
func (g *ground) on(i int, f func() error) error {
	if !g.isolated {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(g.nets[i], unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// Requests of ioctl that stop and resume the writes of a file system.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// freeze makes writes to a machine's disk wait until thaw.
func (g *ground) freeze(i int, request uintptr) error {
	d, err := os.Open(g.folder(i))
	if err != nil {
		return err
	}
	defer d.Close()
	var none int
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, d.Fd(), request, uintptr(unsafe.Pointer(&none))); e != 0 {
		return fmt.Errorf("freeze or thaw the disk of machine %d: %w", i, e)
	}
	return nil
}

// fill fills a machine's disk. The answer empties it again.
func (g *ground) fill(i int) (empty func() error, err error) {
	name := filepath.Join(g.folder(i), "fill")
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return nil, err
		}
	}
	return func() error { return os.Remove(name) }, f.Sync()
}
