package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/agentpackage"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/fetch"
	"github.com/yaya-ai/yaya/plugins/installed"
	"github.com/yaya-ai/yaya/plugins/remote"
)

func (t *thirdParty) client() *fetch.Client {
	return &fetch.Client{Procs: t.c.procs, Env: os.Environ()}
}

// fetch fetches the package at a source. One client runs at a time: each may use as much memory
// and disk as a package is allowed to.
func (t *thirdParty) fetch(ctx context.Context, source string, editable bool) (*installed.Package, error) {
	_, elsewhere, err := fetch.Parse(source)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", admin.ErrRefused, err)
	case elsewhere && editable:
		return nil, onlyFolders(source)
	case !elsewhere && !filepath.IsAbs(source):
		return nil, fmt.Errorf("%w: %s is not an absolute path, and yaya runs in a folder of its own", admin.ErrRefused, source)
	}
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

func onlyFolders(source string) error {
	return fmt.Errorf("%w: %s is not a folder on this machine: no other one can be editable", admin.ErrRefused, source)
}

// Propose implements [admin.Installer].
func (t *thirdParty) Propose(ctx context.Context, source string, editable bool) (shown admin.PluginPackage, err error) {
	p, err := t.fetch(ctx, source, editable)
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
func pluginPackage(p *installed.Package, boxes *sandbox.Sandboxes) (admin.PluginPackage, error) {
	d := &p.Description
	out := admin.PluginPackage{
		Name: d.Name, Version: d.Version, Description: d.Description, Category: d.Category, Source: p.Source, Resolved: p.Resolved, Digest: p.Digest,
		AdapterID: d.AdapterID, ProviderID: d.ProviderID, StrategyID: d.StrategyID, MemoryKind: d.MemoryKind,
		Runs: strings.Join(d.Run, " "), Requires: d.Requires, Subscriptions: d.Subscriptions, Permissions: d.Permissions.Lines(),
	}
	if p.Parts == nil {
		return out, nil
	}
	parts, err := packageParts(d.Name, p.Parts, boxes)
	out.Parts = &parts
	return out, err
}

// shown describes a package to a person, beside the plugins that there are.
func (t *thirdParty) shown(p *installed.Package, editable bool) (admin.PluginPackage, error) {
	d := &p.Description
	out, err := pluginPackage(p, t.c.st.sandboxes)
	if err != nil {
		return out, fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	out.Editable = editable
	if editable && !p.Local() {
		return out, onlyFolders(p.Source)
	}
	if program := p.Unbuilt(); program != "" {
		if editable {
			return out, fmt.Errorf("%w: %s has to be built before it can be editable: (cd %s && go build -o %s .)", admin.ErrRefused, p.Source, p.Source, program)
		}
		out.Builds = "go build -o " + program + " . (" + t.buildsWhere() + ")"
	}
	if err := t.free(d); err != nil {
		return out, err
	}
	e, err := t.store.Get(d.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	t.compared(&out, e, err, p)
	return out, nil
}

// compared compares a package with the installed one, which can be read if unread is nil.
func (t *thirdParty) compared(out *admin.PluginPackage, e installed.Entry, unread error, p *installed.Package) {
	var was remote.Description
	var wasParts *agentpackage.Package
	var before, now admin.Parts
	if out.Parts != nil {
		now = *out.Parts
	}
	if unread == nil {
		out.Installed = e.Version
		was, wasParts, unread = e.Describe()
	}
	if unread == nil && wasParts != nil {
		before, unread = packageParts(e.Name, wasParts, t.c.st.sandboxes)
	}
	if unread != nil { // it is about to be replaced
		out.Changes = []string{"the files of the installed one cannot be compared: " + OneLine(unread.Error())}
		if _, changed := errors.AsType[*installed.ChangedError](unread); changed {
			out.Changes[0] = "the files of the installed one have changed and cannot be compared"
		}
		out.Changes = append(out.Changes, newRights(p.Description.Permissions)...)
		out.Changes = append(out.Changes, otherParts(admin.Parts{}, now)...)
		return
	}
	out.Same = !out.Editable && !e.Editable && cmp.Or(e.Agreed, e.Digest) == p.Digest
	out.Changes = append(otherParts(before, now), differences(e, was, p)...)
}

// newRights describes permissions that the installed plugin does not have.
func newRights(more remote.Permissions) (out []string) {
	if more.None() {
		return nil
	}
	for _, line := range more.Lines() {
		out = append(out, "NEW PERMISSION: "+line)
	}
	return out
}

// differences describes what is not as it was, new rights first.
func differences(e installed.Entry, was remote.Description, p *installed.Package) (out []string) {
	d := &p.Description
	out = newRights(d.Permissions.Beyond(was.Permissions))
	if gone := was.Permissions.Beyond(d.Permissions); !gone.None() {
		for _, line := range gone.Lines() {
			out = append(out, "no longer: "+line)
		}
	}
	for _, c := range []struct{ what, was, now string }{
		{"version", was.Version, d.Version},
		{"source", e.Source, p.Source},
		{"category", was.Category, d.Category},
		{"adapter_id", was.AdapterID, d.AdapterID},
		{"provider_id", was.ProviderID, d.ProviderID},
		{"strategy_id", was.StrategyID, d.StrategyID},
		{"memory_kind", was.MemoryKind, d.MemoryKind},
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

// free refuses a name that a part of yaya has, and an id that another plugin has.
func (t *thirdParty) free(d *remote.Description) error {
	for _, s := range t.c.kernel.Plugins.Snapshot() {
		if s.Name == d.Name && s.Bundled {
			return fmt.Errorf("%w: plugin %s is a part of yaya: give yours another name", admin.ErrRefused, d.Name)
		}
	}
	m := d.Manifest()
	holder := t.c.kernel.Plugins.Holder(m)
	if holder == "" {
		holder = t.installedHolder(m)
	}
	if holder != "" {
		return fmt.Errorf("%w: %w", admin.ErrRefused, collides(m, holder))
	}
	return nil
}

// installedHolder returns the installed plugin that has an id, even if it could not be loaded. Its
// files may have changed: that can only refuse more.
func (t *thirdParty) installedHolder(m plugin.Manifest) string {
	entries, err := t.store.List()
	if err != nil {
		t.c.st.at.log.Warn().Err(err).Msg("not every installed plugin can be read")
	}
	for _, e := range entries {
		if e.Name == m.Name {
			continue
		}
		was, err := remote.ReadDescription(e.Folder())
		if err != nil {
			continue // it does not run, and is listed with the reason
		}
		if was.Name == e.Name && m.Collides(was.Manifest()) {
			return e.Name
		}
	}
	return ""
}

// collision returns an error if one of the plugins has the id of another one.
func collision(m plugin.Manifest, others []plugin.Plugin) error {
	for _, other := range others {
		if m.Collides(other.Manifest()) {
			return collides(m, other.Manifest().Name)
		}
	}
	return nil
}

// collides is the error for a plugin with the id of another one, which would get what is meant for
// that one: a strategy, the messages of all sessions that use it.
func collides(m plugin.Manifest, holder string) error {
	member, id := m.ID()
	return fmt.Errorf("plugin %s: the plugin %s has the %s %q already: give yours another one", m.Name, holder, member, id)
}

// Install implements [admin.Installer].
func (t *thirdParty) Install(ctx context.Context, source string, editable bool, digest string) (err error) {
	p := t.held.take(source, digest)
	if p == nil {
		if p, err = t.fetch(ctx, source, editable); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if p.Digest != digest {
		return fmt.Errorf("%w: the files of %s have changed since they were shown: their digest is %s, and %s was agreed to", admin.ErrRefused, source, p.Digest, digest)
	}
	if err := t.free(&p.Description); err != nil {
		return err
	}
	if !editable {
		if err := p.Build(func(folder string) (string, error) { return t.build(ctx, p, folder) }); err != nil {
			return err
		}
	}
	defer t.change(p.Description.Name)()
	was, missing := t.store.Get(p.Description.Name)
	e, err := t.store.Install(p, editable, digest)
	if err != nil {
		return err
	}
	if missing == nil && was.Digest != e.Digest {
		if err := t.forgetPermits(was); err != nil {
			return err
		}
	}
	if err := t.replace(context.WithoutCancel(ctx), e, t.c.kernel.Plugins.Replace); err != nil {
		return &admin.NotStarted{Err: notStarted(e, err, was, missing == nil && was.Digest != e.Digest)}
	}
	return nil
}

// notStarted says that a plugin is installed and does not start, why, and what can be done.
func notStarted(e installed.Entry, err error, was installed.Entry, replaced bool) error {
	why := strings.TrimPrefix(err.Error(), "plugin "+e.Name+": ")
	next := fmt.Sprintf("correct it and install it again, or remove it: yaya plugin remove %s", e.Name)
	switch {
	case e.Editable && !replaced:
		next = fmt.Sprintf("yaya tries again when its files change; to remove it: yaya plugin remove %s", e.Name)
	case replaced:
		next = wayBack(was, e)
	}
	return worded.Error(err, "%s %s is installed, and does not start: %s; %s", e.Name, e.Version, why, next)
}

// wayBack says how the plugin that another one has replaced can be installed again.
func wayBack(was, now installed.Entry) string {
	again := "yaya plugin install " + was.Source
	_, elsewhere, err := fetch.Parse(was.Source)
	switch {
	case was.Editable:
		return fmt.Sprintf("to go back to the editable one: yaya plugin install --editable %s", was.Source)
	case err == nil && elsewhere && was.Source != now.Source:
		return fmt.Sprintf("to go back to version %s: %s", was.Version, again)
	case was.Source != now.Source:
		return fmt.Sprintf("to go back to version %s, if its files are still there: %s", was.Version, again)
	}
	return fmt.Sprintf("to go back to version %s, put its files there again, then: %s", was.Version, again)
}
