package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Host is the machine that a service is installed on.
type Host struct {
	OS     string // as GOOS has it
	Home   string // of the user
	Config string // the folder of the user's configuration
	Root   string // of the file system; "" but in tests
	UID    int
	Name   string // of the user
	// Run runs a command of the service manager's and returns what it says. Its error has
	// what the command says about it.
	Run func(ctx context.Context, argv ...string) (string, error)
}

// ThisHost is the machine of this process. Home and config are folders of its user.
func ThisHost(goos, home, config string) Host {
	h := Host{OS: goos, Home: home, Config: config, UID: os.Getuid(), Run: run}
	if u, err := user.Current(); err == nil {
		h.Name = u.Username
	}
	return h
}

// Bounds of a command of the service manager's. A start takes until yaya serves.
const (
	commandTime = 6 * time.Minute
	maxSaid     = 16 << 10 // bytes
)

func run(ctx context.Context, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // a program of the service manager's
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
		if why := strings.TrimSpace(errOut.String()); why != "" {
			err = fmt.Errorf("%w: %s", err, why[:min(len(why), maxSaid)])
		}
	}
	return out.String()[:min(out.Len(), maxSaid)], err
}

// Service is a service on a machine.
type Service struct {
	host Host
	spec Spec
}

// ErrNoManager is the error for a machine without a service manager that yaya knows.
var ErrNoManager = errors.New("no service manager that yaya knows runs here")

// New returns the service of a specification. The error is [ErrNoManager] on a machine that
// has neither systemd nor launchd.
func New(h Host, s Spec) (*Service, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	x := &Service{h, s}
	switch h.OS {
	case "darwin":
		return x, nil
	case "linux":
		// sd_booted(3)
		if st, err := os.Stat(filepath.Join(h.Root, "/run/systemd/system")); err == nil && st.IsDir() {
			return x, nil
		}
		return nil, fmt.Errorf("%w: there is no /run/systemd/system, so systemd does not", ErrNoManager)
	}
	return nil, fmt.Errorf("%w: yaya knows systemd and launchd", ErrNoManager)
}

var systemdVersion = lazyregexp.New(`^systemd (\d+)`)

// KnowsNotifyReload reports whether the machine's systemd has Type=notify-reload.
func (h Host) KnowsNotifyReload(ctx context.Context) bool {
	if h.OS != "linux" {
		return false
	}
	out, err := h.Run(ctx, "systemctl", "--version")
	if err != nil {
		return false // it says so when it is needed
	}
	m := systemdVersion().FindStringSubmatch(out)
	if m == nil {
		return false
	}
	n, err := strconv.Atoi(m[1])
	return err == nil && n >= 253
}

// Files are those of the service.
func (s Spec) Files(goos string) []File {
	if goos == "darwin" {
		return s.plist()
	}
	return s.units()
}

// dir is the folder of the service manager's files.
func (x *Service) dir() string {
	switch {
	case x.host.OS == "darwin" && x.spec.System:
		return filepath.Join(x.host.Root, "/Library/LaunchDaemons")
	case x.host.OS == "darwin":
		return filepath.Join(x.host.Home, "Library/LaunchAgents")
	case x.spec.System:
		return filepath.Join(x.host.Root, "/etc/systemd/system")
	}
	return filepath.Join(x.host.Config, "systemd/user")
}

// known are the names of all files that a service may have.
func (x *Service) known() []string {
	if x.host.OS == "darwin" {
		return []string{Label + ".plist"}
	}
	return []string{Unit, socketUnit("listen"), socketUnit("local"), socketUnit("acme-http")}
}

// Done is the result of a command.
type Done struct {
	Files []string // written or removed
	Acts  []string // "enabled", "started", …
	Notes []string // for the user
}

// Status is how a service is.
type Status struct {
	Installed bool   `json:"installed"`
	File      string `json:"file"`
	Changed   bool   `json:"changed"` // by somebody else than yaya
	Enabled   bool   `json:"enabled"`
	Running   bool   `json:"running"`
	State     string `json:"state"` // in the service manager's words
	PID       int    `json:"pid,omitempty"`
	Says      string `json:"says,omitempty"` // yaya's own words
	Version   string `json:"version,omitempty"`
	Log       string `json:"log"` // its file, or the command that shows it
}

// Install writes the files, and has the service manager start yaya now and at every start of
// the machine, or of the user's session. Done again, it changes only what differs.
func (x *Service) Install(ctx context.Context) (Done, error) {
	if x.spec.System && x.host.UID != 0 {
		return Done{}, errors.New("a service of the system is root's: run the command with sudo, or leave --system out")
	}
	if x.host.OS == "darwin" {
		return x.installLaunchd(ctx)
	}
	return x.installSystemd(ctx)
}

// Uninstall stops the service and removes its files.
func (x *Service) Uninstall(ctx context.Context) (Done, error) {
	if x.spec.System && x.host.UID != 0 {
		return Done{}, errors.New("a service of the system is root's: run the command with sudo, or leave --system out")
	}
	var mine []string
	for _, name := range x.known() {
		path := filepath.Join(x.dir(), name)
		switch state, err := look(path, ""); {
		case err != nil:
			return Done{}, err
		case state == foreign:
			return Done{}, notOurs(path)
		case state == older:
			mine = append(mine, name)
		}
	}
	if len(mine) == 0 {
		return Done{}, nil
	}
	d := Done{}
	var err error
	if x.host.OS == "darwin" {
		err = x.stopLaunchd(ctx)
	} else {
		_, err = x.systemctl(ctx, append([]string{"disable", "--now"}, mine...)...)
	}
	if err != nil {
		return d, err
	}
	d.Acts = append(d.Acts, "stopped", "disabled")
	root, err := os.OpenRoot(x.dir())
	if err != nil {
		return d, err
	}
	defer func() { _ = root.Close() }()
	for _, name := range mine {
		if err := root.Remove(name); err != nil {
			return d, err
		}
		d.Files = append(d.Files, filepath.Join(x.dir(), name))
	}
	if x.host.OS != "darwin" {
		_, err = x.systemctl(ctx, "daemon-reload")
	}
	return d, err
}

// Status asks how the service is.
func (x *Service) Status(ctx context.Context) (Status, error) {
	s := Status{File: filepath.Join(x.dir(), x.known()[0]), State: "not installed"}
	state, err := look(s.File, "")
	if err != nil || state == absent {
		return s, err
	}
	s.Installed, s.Changed = true, state == foreign
	if x.host.OS == "darwin" {
		x.statusLaunchd(ctx, &s)
		return s, nil
	}
	return s, x.statusSystemd(ctx, &s)
}

// NeedUser reports what to do if a user is missing.
func NeedUser(name string) error {
	if _, err := user.Lookup(name); err != nil {
		return fmt.Errorf("there is no user %q for the service: create one (useradd --system --home-dir %s --shell /usr/sbin/nologin %[1]s), or name another with --as", name, SystemState)
	}
	return nil
}
