package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/plugins/fetch"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

// Limits of packages that were shown and not installed yet.
const (
	maxProposals = 4
	proposalLife = 10 * time.Minute
)

// proposals are packages that were fetched and shown, so that they need not be fetched a second
// time when the user has agreed.
type proposals struct {
	mu     sync.Mutex
	held   []proposal // the oldest first
	closed bool
}

type proposal struct {
	p     *installed.Package
	until time.Time
}

// hold keeps a package, in the place of the oldest one if there are too many.
func (h *proposals) hold(p *installed.Package) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errors.Join(errors.New("yaya stops"), p.Close())
	}
	h.held = append(h.held, proposal{p, time.Now().Add(proposalLife)})
	return h.drop(func(i int, q proposal) bool { return len(h.held)-i > maxProposals || time.Now().After(q.until) })
}

// take returns a package that is held no longer, nil without one.
func (h *proposals) take(source, digest string) (found *installed.Package) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = slices.DeleteFunc(h.held, func(q proposal) bool {
		if found != nil || q.p.Source != source || q.p.Digest != digest || time.Now().After(q.until) {
			return false
		}
		found = q.p
		return true
	})
	return found
}

// drop closes those that end says; mu is held.
func (h *proposals) drop(end func(i int, q proposal) bool) error {
	var errs []error
	var left []proposal
	for i, q := range h.held {
		if end(i, q) {
			errs = append(errs, q.p.Close())
		} else {
			left = append(left, q)
		}
	}
	h.held = left
	return errors.Join(errs...)
}

func (h *proposals) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.drop(func(int, proposal) bool { return true })
}

func (t *thirdParty) client() *fetch.Client {
	return &fetch.Client{Procs: t.c.procs, Env: os.Environ()}
}

// fetch fetches the package at a source. One client runs at a time: each may use as much memory
// and disk as a package is allowed to.
func (t *thirdParty) fetch(ctx context.Context, source string) (*installed.Package, error) {
	select {
	case t.fetching <- struct{}{}:
		defer func() { <-t.fetching }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := installed.Fetch(ctx, t.client(), source)
	if _, failed := errors.AsType[*fetch.ClientError](err); err != nil && !failed {
		err = fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	return p, err
}

// Propose implements [admin.Installer].
func (t *thirdParty) Propose(ctx context.Context, source string, editable bool) (shown admin.PluginPackage, err error) {
	p, err := t.fetch(ctx, source)
	if err != nil {
		return shown, err
	}
	if shown, err = t.shown(p, editable); err != nil {
		return shown, errors.Join(err, p.Close())
	}
	return shown, t.held.hold(p)
}

// Update implements [admin.Installer].
func (t *thirdParty) Update(ctx context.Context, name, version string) (admin.PluginPackage, error) {
	e, err := t.store.Get(name)
	if errors.Is(err, fs.ErrNotExist) {
		return admin.PluginPackage{}, fmt.Errorf("%w: there is no installed plugin %s", admin.ErrRefused, name)
	}
	if err != nil {
		return admin.PluginPackage{}, fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	s, elsewhere, err := fetch.Parse(e.Source)
	source := e.Source
	switch {
	case e.Editable:
		err = fmt.Errorf("plugin %s is editable: yaya loads it again whenever its files change (%s)", name, e.Source)
	case !elsewhere && version != "":
		err = fmt.Errorf("plugin %s comes from %s, which has no other versions", name, e.Source)
	case err == nil && elsewhere:
		var moves bool
		if s, moves, err = s.Update(version); !moves {
			err = fmt.Errorf("plugin %s comes from one commit: name a tag, a branch or another commit (--version)", name)
		}
		source = s.String()
	}
	if err != nil {
		return admin.PluginPackage{}, fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	shown, err := t.Propose(ctx, source, false)
	if err == nil && shown.Name != name {
		err = fmt.Errorf("%w: %s is the plugin %s now, and no longer %s", admin.ErrRefused, shown.Source, shown.Name, name)
	}
	return shown, err
}

// pluginPackage describes a package by itself.
func pluginPackage(p *installed.Package) admin.PluginPackage {
	d := &p.Description
	return admin.PluginPackage{
		Name: d.Name, Version: d.Version, Description: d.Description, Category: d.Category, Source: p.Source, Resolved: p.Resolved, Digest: p.Digest,
		Runs: strings.Join(d.Run, " "), Requires: d.Requires, Subscriptions: d.Subscriptions, Permissions: d.Permissions.Lines(),
	}
}

// shown describes a package to a person, beside the plugins that there are.
func (t *thirdParty) shown(p *installed.Package, editable bool) (admin.PluginPackage, error) {
	d := &p.Description
	out := pluginPackage(p)
	out.Editable = editable
	if program := p.Unbuilt(); program != "" {
		if editable {
			return out, fmt.Errorf("%w: %s has to be built before it can be editable: (cd %s && go build -o %s .)", admin.ErrRefused, p.Source, p.Source, program)
		}
		out.Builds = "go build -o " + program + " . (after your answer, in a sandbox without a network)"
	}
	if err := t.free(d.Name); err != nil {
		return out, err
	}
	e, err := t.store.Get(d.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil { // it is about to be replaced
		out.Changes = []string{"the files of the installed one cannot be compared: " + err.Error()}
		return out, nil //nolint:nilerr // it is told
	}
	out.Installed = e.Version
	out.Same = !editable && !e.Editable && cmp.Or(e.Agreed, e.Digest) == p.Digest
	was, err := remote.ReadDescription(e.Folder())
	if err != nil {
		out.Changes = []string{"the files of the installed one cannot be compared: " + err.Error()}
		return out, nil //nolint:nilerr // it is told
	}
	out.Changes = differences(e, was, p)
	return out, nil
}

// differences describes what is not as it was, new rights first.
func differences(e installed.Entry, was remote.Description, p *installed.Package) (out []string) {
	d := &p.Description
	if more := d.Permissions.Beyond(was.Permissions); !more.None() {
		for _, line := range more.Lines() {
			out = append(out, "NEW PERMISSION: "+line)
		}
	}
	if gone := was.Permissions.Beyond(d.Permissions); !gone.None() {
		for _, line := range gone.Lines() {
			out = append(out, "no longer: "+line)
		}
	}
	for _, c := range []struct{ what, was, now string }{
		{"version", was.Version, d.Version},
		{"source", e.Source, p.Source},
		{"category", was.Category, d.Category},
		{"runs", strings.Join(was.Run, " "), strings.Join(d.Run, " ")},
		{"requires", strings.Join(was.Requires, ", "), strings.Join(d.Requires, ", ")},
		{"gets events", strings.Join(was.Subscriptions, ", "), strings.Join(d.Subscriptions, ", ")},
	} {
		if c.was != c.now {
			out = append(out, fmt.Sprintf("%s: %s → %s", c.what, cmp.Or(c.was, "none"), cmp.Or(c.now, "none")))
		}
	}
	return out
}

// free refuses a name that a part of yaya has.
func (t *thirdParty) free(name string) error {
	for _, s := range t.c.kernel.Plugins.Snapshot() {
		if s.Name == name && s.Bundled {
			return fmt.Errorf("%w: plugin %s is a part of yaya: give yours another name", admin.ErrRefused, name)
		}
	}
	return nil
}

// Install implements [admin.Installer].
func (t *thirdParty) Install(ctx context.Context, source string, editable bool, digest string) (err error) {
	p := t.held.take(source, digest)
	if p == nil {
		if p, err = t.fetch(ctx, source); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if p.Digest != digest {
		return fmt.Errorf("%w: the files of %s have changed since they were shown: their digest is %s, and %s was agreed to", admin.ErrRefused, source, p.Digest, digest)
	}
	if err := t.free(p.Description.Name); err != nil {
		return err
	}
	if !editable {
		if err := p.Build(func(folder string) (string, error) { return t.build(ctx, p, folder) }); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.store.Install(p, editable, digest)
	if err != nil {
		return err
	}
	if err := t.replace(context.WithoutCancel(ctx), e); err != nil {
		return fmt.Errorf("%s %s is installed, and does not start: %w", e.Name, e.Version, err)
	}
	return nil
}

// Origins implements [admin.Installer].
func (t *thirdParty) Origins() map[string]admin.PluginOrigin {
	entries, err := t.store.List()
	if err != nil {
		t.c.st.at.log.Warn().Err(err).Msg("not every installed plugin can be read")
	}
	out := map[string]admin.PluginOrigin{}
	for _, e := range entries {
		out[e.Name] = admin.PluginOrigin{Source: e.Source, Resolved: e.Resolved, Digest: e.Digest, Editable: e.Editable}
	}
	return out
}
