package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/filewatch"
	"github.com/yaya-ai/yaya/internal/systemd"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// When settings that are not in force at once are.
const (
	ServersEnvKey   = "servers.pass_env"
	FromNextStart   = "from the next start of yaya on"
	FromServerStart = "for each server from its next start on (yaya mcp restart NAME)"
)

// EffectWords says when a change of a file has its effect.
func EffectWords(x admin.FileChange) string {
	switch {
	case x.Effect == admin.EffectRestart:
		return FromNextStart
	case x.Effect == admin.EffectOverridden:
		return x.Note
	case x.Kind == admin.KindSetting && x.Name == ServersEnvKey:
		return FromServerStart
	case x.Kind == admin.KindSetting:
		return "in force"
	case x.Note != "":
		return x.Note
	}
	return map[string]string{"added": "started", "changed": "restarted", "removed": "stopped"}[x.Change]
}

// reloader takes over what changes in the files that a running yaya was configured by.
// It implements [admin.Files].
type reloader struct {
	changes      *changes
	bridge       *mcpbridge.Bridge
	listens      []string // addresses that this yaya listens on
	p            Paths
	named        []string // files of servers instead of yaya's own
	protected    protected
	file         string // of the settings
	settings     *config.Store
	manager      *manage.Manager
	controlPlane *controlPlane
	log          zerolog.Logger
	logs         *logs
	service      supervised
	base         string      // where yaya serves
	reloads      func() bool // the service manager waits for a reload, not for a restart

	working sync.Mutex // held while files are taken over
	mu      sync.Mutex
	notices []admin.Notice
	there   []string // files that were there when they were looked at last
}

// files are all files that are looked at.
func (r *reloader) files() []string { return append(slices.Clone(r.serverFiles()), r.file) }

func (r *reloader) serverFiles() []string {
	if len(r.named) > 0 {
		return r.named
	}
	return []string{r.p.Servers()}
}

// goneFor is how long a file must be gone until that counts: some editors take the old
// one away before they write the new one.
const goneFor = 2 * time.Second

// watch reloads when files change, or SIGHUP comes; the returned function ends it.
func (r *reloader) watch(ctx context.Context, hangups <-chan struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := filewatch.Open(r.files()...)
	failed := func(err error) {
		r.log.Warn().Err(err).Msg("changes of files may not be noticed: yaya reload takes them over")
	}
	if err != nil {
		failed(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		r.reload(ctx, r.controlPlane.kernel) // they may have changed since they were read
		w.Run(ctx, func() {
			if r.gone() {
				select {
				case <-ctx.Done():
					return
				case <-time.After(goneFor):
				}
			}
			r.reload(ctx, r.controlPlane.kernel)
		}, failed)
	})
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				r.log.Info().Msg("SIGHUP: looking at the files again")
				r.hungUp(ctx)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// hungUp reloads on a signal, and tells the service manager, which may have sent it, when
// that is done.
func (r *reloader) hungUp(ctx context.Context) {
	if !r.reloads() {
		r.reload(ctx, r.controlPlane.kernel)
		return
	}
	r.service.tell(systemd.Reload("reloads")...)
	r.reload(ctx, r.controlPlane.kernel)
	if r.reloads() { // otherwise the program that comes says that it is ready
		r.service.ready(r.base)
	}
}

// gone reports whether a file is no longer there.
func (r *reloader) gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.there, Missing)
}

// Missing reports whether the file does not exist.
func Missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, os.ErrNotExist)
}

// Reload implements [admin.Files].
func (r *reloader) Reload(ctx context.Context) admin.Reloaded {
	return r.reload(context.WithoutCancel(ctx), auth.FromContext(ctx).Actor())
}

// reload takes over what has changed in the files, for somebody.
func (r *reloader) reload(ctx context.Context, actor string) admin.Reloaded {
	r.working.Lock()
	defer r.working.Unlock()
	r.mu.Lock()
	r.there = slices.DeleteFunc(r.files(), Missing)
	r.mu.Unlock()
	r.logs.reopen(r.settings)
	out := admin.Reloaded{Changes: []admin.FileChange{}, Refused: []admin.Notice{}}
	record := func(changes []admin.FileChange) error { return r.audit(ctx, actor, changes) }
	take := func(file string, changes []admin.FileChange, err error) {
		out.Changes = append(out.Changes, changes...)
		if err != nil {
			if f, ok := errors.AsType[*manage.FileError](err); ok {
				file = f.File
			}
			out.Refused = append(out.Refused, admin.Notice{File: file, Error: feature.Clean(err.Error(), 1024)})
		}
	}
	changes, err := r.takeSettings(record)
	take(r.file, changes, err)
	changes, err = r.takeServers(ctx, record)
	take(r.serverFiles()[0], changes, err)
	for _, c := range out.Changes {
		if c.Effect == admin.EffectRestart {
			r.log.Warn().Str("file", c.File).Str(c.Kind, c.Name).Msg("a setting has changed that is read when yaya starts: restart yaya for it to hold")
			continue
		}
		r.log.Info().Str("file", c.File).Str(c.Kind, c.Name).Str("effect", c.Effect).Msg("a file has changed: " + c.Change)
	}
	out.Waiting = r.settings.Waiting()
	r.notice(ctx, &out)
	return out
}

// audit puts into the audit what is about to be taken over; what cannot be recorded
// does not happen.
func (r *reloader) audit(ctx context.Context, actor string, changes []admin.FileChange) error {
	byFile := map[string][]string{}
	var files []string
	for _, c := range changes {
		if byFile[c.File] == nil {
			files = append(files, c.File)
		}
		byFile[c.File] = append(byFile[c.File], clipPath(c.Name)+" "+c.Change)
	}
	for _, f := range files {
		names := byFile[f]
		if _, err := r.controlPlane.log.Append(ctx, control.Change{
			Event: "config_reloaded", Actor: actor, Target: clipPath(f), Payload: map[string]any{"count": len(names), "changes": names[:min(len(names), 100)]},
		}, nil); err != nil {
			return err
		}
	}
	return nil
}

// notice keeps which files are refused, and says so once for each mistake.
func (r *reloader) notice(ctx context.Context, out *admin.Reloaded) {
	r.mu.Lock()
	was := r.notices
	for i := range out.Refused {
		n := &out.Refused[i]
		n.Since = time.Now().UTC().Truncate(time.Second)
		if j := slices.IndexFunc(was, func(o admin.Notice) bool { return o.File == n.File && o.Error == n.Error }); j >= 0 {
			n.Since = was[j].Since
		}
	}
	r.notices = slices.Clone(out.Refused)
	r.mu.Unlock()
	refused := map[string]string{}
	for _, n := range out.Refused {
		refused[n.File] = n.Error
	}
	r.bridge.Refused(refused)
	for _, n := range out.Refused {
		if slices.Contains(was, n) {
			continue
		}
		r.log.Error().Str("file", n.File).Str("error", n.Error).Msg("configuration file rejected: its previous content stays in force")
		if _, err := r.controlPlane.log.Append(ctx, control.Change{
			Event: "config_refused", Actor: r.controlPlane.kernel, Target: clipPath(n.File), Payload: map[string]any{"error": n.Error},
		}, nil); err != nil {
			r.log.Error().Err(err).Msg("the audit cannot say that a file was refused")
		}
	}
	for _, n := range was {
		if !slices.ContainsFunc(out.Refused, func(o admin.Notice) bool { return o.File == n.File }) {
			r.log.Info().Str("file", n.File).Msg("configuration file reloaded: its mistake is gone")
		}
	}
	if len(was)+len(out.Refused) > 0 || len(out.Changes) > 0 {
		r.changes.tell(admin.PartConfig)
	}
}

// Notices implements [admin.Files].
func (r *reloader) Notices() []admin.Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]admin.Notice{}, r.notices...)
}

// takeServers takes the files of servers over.
func (r *reloader) takeServers(ctx context.Context, record func([]admin.FileChange) error) ([]admin.FileChange, error) {
	var out []admin.FileChange
	_, err := r.manager.Reload(ctx, r.named, func(all []manage.Change) error {
		for _, x := range all {
			out = append(out, admin.FileChange{File: x.File, Kind: admin.KindServer, Name: x.Name, Change: x.Change, Effect: admin.EffectTaken, Note: x.Note})
		}
		for _, file := range r.serverFiles() {
			if err := r.protected.check(file); err != nil {
				return &manage.FileError{File: file, Err: err}
			}
		}
		return record(out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// takeSettings takes the file of settings over.
func (r *reloader) takeSettings(record func([]admin.FileChange) error) ([]admin.FileChange, error) {
	content, _, err := userfile.Read(r.file)
	if err != nil {
		return nil, err
	}
	var out []admin.FileChange
	_, err = r.settings.ReloadFile(r.file, content, func(next *config.Store, changes []config.Change) error {
		if len(changes) == 0 {
			return nil
		}
		if err := r.protected.check(r.file); err != nil {
			return err
		}
		if content != nil && len(bytes.TrimSpace(content)) == 0 {
			return manage.EmptyFile(r.file, "a comment", "settings")
		}
		if err := newMistake(r.settings, next, r.listens, r.file, content); err != nil {
			return err
		}
		for _, c := range changes {
			x := admin.FileChange{File: r.file, Kind: admin.KindSetting, Name: c.Key, Change: "changed", Effect: admin.EffectTaken}
			switch {
			case !c.Was:
				x.Change = "added"
			case !c.Is:
				x.Change = "removed"
			}
			switch {
			case c.Over != "":
				x.Effect, x.Note = admin.EffectOverridden, overWords[c.Over]
			case config.NeedsRestart(c.Key):
				x.Effect = admin.EffectRestart
			}
			out = append(out, x)
		}
		return record(out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

var overWords = map[config.Origin]string{
	config.FromStore: "but what was set with yaya config set decides", config.FromEnv: "but the environment decides", config.FromFlag: "but a flag decides",
}

// newMistake returns the first mistake in settings that say who may do what, among those
// that now does not have yet.
func newMistake(now, next *config.Store, listens []string, file string, content []byte) error {
	var known []string
	for _, m := range mistakes(now, listens) {
		known = append(known, m.err.Error())
	}
	for _, m := range mistakes(next, listens) {
		if !slices.Contains(known, m.err.Error()) {
			return fmt.Errorf("%s:%d: %w", file, config.Line(content, m.key), m.err)
		}
	}
	return nil
}
