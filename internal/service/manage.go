package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// systemctl runs that command for the service.
func (x *Service) systemctl(ctx context.Context, args ...string) (string, error) {
	argv := []string{"systemctl"}
	if !x.spec.System {
		argv = append(argv, "--user")
	}
	out, err := x.host.Run(ctx, append(argv, args...)...)
	if err != nil && !x.spec.System && strings.Contains(err.Error(), "connect to bus") {
		err = fmt.Errorf("%w (systemd has no session of this user here: sign in as %s, not with su or sudo, or run loginctl enable-linger %[2]s)", err, x.host.Name)
	}
	return out, err
}

// logs is the command that shows the log.
func (x *Service) logs() string {
	switch {
	case x.host.OS == "darwin":
		return x.spec.Log
	case x.spec.System:
		return "journalctl -u " + Unit
	}
	return "journalctl --user -u " + Unit
}

func (x *Service) installSystemd(ctx context.Context) (d Done, err error) {
	files := x.spec.Files(x.host.OS)
	var names, gone []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	for _, name := range x.known() { // sockets of an earlier installation
		if slices.Contains(names, name) {
			continue
		}
		switch state, err := look(filepath.Join(x.dir(), name), ""); {
		case err != nil:
			return d, err
		case state == older:
			gone = append(gone, name)
		}
	}
	if _, err := x.systemctl(ctx, "show", "--property=Version"); err != nil { // before anything is written
		return d, err
	}
	if d.Files, err = write(x.dir(), files); err != nil {
		return d, err
	}
	if len(gone) > 0 {
		if err := x.dropSockets(ctx, gone); err != nil {
			return d, err
		}
	}
	if len(d.Files)+len(gone) > 0 {
		if _, err := x.systemctl(ctx, "daemon-reload"); err != nil {
			return d, err
		}
	}
	was := Status{}
	if err := x.statusSystemd(ctx, &was); err != nil {
		return d, err
	}
	if _, err := x.systemctl(ctx, append([]string{"enable"}, names...)...); err != nil {
		return d, err
	}
	if !was.Enabled {
		d.Acts = append(d.Acts, "enabled")
	}
	verb := ""
	switch {
	case !was.Running:
		verb = "start"
	case len(d.Files)+len(gone) > 0:
		verb = "restart"
	}
	if verb != "" {
		// A socket that is added can be bound only once the yaya that has its address is gone.
		if verb == "restart" && len(names) > 1 {
			if _, err := x.systemctl(ctx, "stop", Unit); err != nil {
				return d, err
			}
		}
		if _, err := x.systemctl(ctx, append([]string{verb}, append(names[1:], Unit)...)...); err != nil {
			return d, fmt.Errorf("the service does not start: %w\nIts log: %s", err, x.logs())
		}
		d.Acts = append(d.Acts, verb+"ed")
	}
	if !x.spec.System && !x.lingers() {
		d.Notes = append(d.Notes, fmt.Sprintf("yaya ends when you log out. To keep it: loginctl enable-linger %s", x.host.Name))
	}
	return d, nil
}

// dropSockets removes sockets that the service no longer has.
func (x *Service) dropSockets(ctx context.Context, names []string) error {
	if _, err := x.systemctl(ctx, append([]string{"disable", "--now"}, names...)...); err != nil {
		return err
	}
	root, err := os.OpenRoot(x.dir())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, name := range names {
		err = errors.Join(err, root.Remove(name))
	}
	return err
}

// lingers reports whether the user's services go on without a session.
func (x *Service) lingers() bool {
	_, err := os.Stat(filepath.Join(x.host.Root, "/var/lib/systemd/linger", filepath.Base(x.host.Name)))
	return err == nil
}

var saysVersion = lazyregexp.New(`^yaya (\S+) `)

func (x *Service) statusSystemd(ctx context.Context, s *Status) error {
	out, err := x.systemctl(ctx, "show", Unit, "--property=ActiveState,SubState,UnitFileState,MainPID,StatusText,Result")
	if err != nil {
		return err
	}
	is := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		is[name] = value
	}
	s.State = is["ActiveState"] + " (" + is["SubState"] + ")"
	if r := is["Result"]; r != "" && r != "success" {
		s.State += ", " + r
	}
	s.Enabled = is["UnitFileState"] == "enabled"
	s.Running = is["ActiveState"] == "active" || is["ActiveState"] == "reloading"
	s.PID, _ = strconv.Atoi(is["MainPID"]) // 0 for none
	if s.Running {
		s.Says = is["StatusText"]
	}
	if m := saysVersion().FindStringSubmatch(s.Says); m != nil {
		s.Version = m[1]
	}
	s.Log = x.logs()
	return nil
}

// domain returns the launchd domain of the service.
func (x *Service) domain() string {
	if x.spec.System {
		return "system"
	}
	return "gui/" + strconv.Itoa(x.host.UID)
}

func (x *Service) launchctl(ctx context.Context, args ...string) (string, error) {
	return x.host.Run(ctx, append([]string{"launchctl"}, args...)...)
}

func (x *Service) installLaunchd(ctx context.Context) (d Done, err error) {
	if d.Files, err = write(x.dir(), x.spec.Files(x.host.OS)); err != nil {
		return d, err
	}
	_, absent := x.launchctl(ctx, "print", x.domain()+"/"+Label)
	if absent == nil && len(d.Files) == 0 {
		return d, nil
	}
	if absent == nil {
		if err := x.stopLaunchd(ctx); err != nil {
			return d, err
		}
	}
	if _, err := x.launchctl(ctx, "enable", x.domain()+"/"+Label); err != nil {
		return d, err
	}
	if _, err := x.launchctl(ctx, "bootstrap", x.domain(), filepath.Join(x.dir(), Label+".plist")); err != nil {
		return d, fmt.Errorf("the service does not start: %w\nIts log: %s", err, x.logs())
	}
	d.Acts = []string{"enabled", "started"}
	return d, nil
}

// Waiting for launchd, which ends a service after it has answered.
const (
	endTime  = 90 * time.Second
	endAsked = 100 * time.Millisecond
)

// stopLaunchd ends the service, if it is there, and waits until it is gone.
func (x *Service) stopLaunchd(ctx context.Context) error {
	service := x.domain() + "/" + Label
	if _, err := x.launchctl(ctx, "print", service); err != nil {
		return nil //nolint:nilerr // launchd does not know it
	}
	if _, err := x.launchctl(ctx, "bootout", service); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	tick := time.NewTicker(endAsked)
	defer tick.Stop()
	for {
		if _, err := x.launchctl(ctx, "print", service); err != nil && ctx.Err() == nil {
			return nil //nolint:nilerr // it is gone
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("launchd has not ended the service %s within %v", service, endTime)
		}
	}
}

var (
	launchdPID   = lazyregexp.New(`(?m)^\s*pid = (\d+)$`)
	launchdState = lazyregexp.New(`(?m)^\s*state = (.+)$`)
)

func (x *Service) statusLaunchd(ctx context.Context, s *Status) {
	s.Log = x.logs()
	out, err := x.launchctl(ctx, "print", x.domain()+"/"+Label)
	if err != nil {
		s.State = "not loaded"
		return // launchd does not know it
	}
	s.Enabled = true
	if m := launchdState().FindStringSubmatch(out); m != nil {
		s.State = m[1]
	}
	if m := launchdPID().FindStringSubmatch(out); m != nil {
		s.PID, _ = strconv.Atoi(m[1]) // digits
	}
	s.Running = s.State == "running"
}
