package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/mcpbridge/catalog"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

const catalogRegistries = "catalog.registries"

// registriesSetting refuses registries that could not be asked.
func registriesSetting(key string, v json.RawMessage) error {
	if key != catalogRegistries {
		return nil
	}
	var list []string
	err := json.Unmarshal(v, &list)
	if err == nil {
		_, err = catalog.ParseRegistries(list)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// catalogAdmin finds and adds servers for the admin API. It implements [admin.Catalog].
type catalogAdmin struct {
	catalog *catalog.Catalog
	manager *manage.Manager
	secrets *secretAdmin
	bundles string // folder of unpacked bundles
}

func newCatalogAdmin(at *place, m *manage.Manager) *catalogAdmin {
	c := &catalogAdmin{manager: m, secrets: &secretAdmin{at.vault, at.settings, m}, bundles: at.bundles()}
	c.catalog = catalog.New(catalog.Config{
		Data: at.data,
		Registries: func() []catalog.Registry {
			list, err := catalog.ParseRegistries(at.settings.Texts(catalogRegistries))
			if err != nil {
				at.log.Warn().Err(err).Msg("catalog.registries is wrong, and no registry is asked")
			}
			return list
		},
		Warn: func(err error) { at.log.Warn().Err(err).Msg("catalogue") },
	})
	return c
}

// bundles is the folder of unpacked bundles. It is none of yaya's own: no server sees those.
func (p Paths) bundles() string {
	return filepath.Join(xdg("XDG_DATA_HOME", p.Home, ".local/share"), "yaya-servers")
}

// catalogError is an error of the catalogue as the API knows it. All are for the caller.
func catalogError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, catalog.ErrUnknown):
		return &told{admin.ErrUnknown, err.Error()}
	}
	return &told{admin.ErrRefused, err.Error()}
}

// installed returns the name of the server that was made from an entry, "" for none.
func (c *catalogAdmin) installed(e catalog.Entry) string {
	for _, x := range c.manager.All() {
		if o := x.Catalog; o != nil && o.Registry == e.Registry && o.Name == e.Server.Name {
			return x.Name
		}
	}
	return ""
}

func (c *catalogAdmin) entry(e catalog.Entry) admin.CatalogEntry {
	out := admin.CatalogEntry{
		Registry: e.Registry, Name: e.Server.Name, Title: e.Server.Title, Description: e.Server.Description, Version: e.Server.Version,
		Kinds: []string{}, Deprecated: e.Status != catalog.Active, Message: e.Message, Installed: c.installed(e),
	}
	for _, o := range e.Options() {
		if !slices.Contains(out.Kinds, o.Kind) {
			out.Kinds = append(out.Kinds, o.Kind)
		}
	}
	return out
}

// Search implements [admin.Catalog].
func (c *catalogAdmin) Search(ctx context.Context, words, cursor string) (admin.CatalogPage, error) {
	found, err := c.catalog.Search(ctx, words, cursor)
	if err != nil {
		return admin.CatalogPage{}, catalogError(err)
	}
	out := admin.CatalogPage{Servers: []admin.CatalogEntry{}, Next: found.Next, Registries: []admin.CatalogRegistry{}, Bundled: catalog.BundledDate()}
	for _, e := range found.Entries {
		out.Servers = append(out.Servers, c.entry(e))
	}
	for _, s := range found.Sources {
		r := admin.CatalogRegistry{Name: s.Name, URL: s.URL, Seen: s.Seen, Skipped: s.Skipped}
		if s.Err != nil {
			r.Error = s.Err.Error()
		}
		out.Registries = append(out.Registries, r)
	}
	return out, nil
}

// Entry implements [admin.Catalog].
func (c *catalogAdmin) Entry(ctx context.Context, name string, ref admin.CatalogRef) (admin.CatalogServer, error) {
	e, stale, err := c.catalog.Get(ctx, ref.Registry, name, ref.Version)
	if err == nil && ref.Option != "" {
		err = c.catalog.FetchBundle(ctx, &e, ref.Option, c.bundles)
	}
	if err != nil {
		return admin.CatalogServer{}, catalogError(err)
	}
	out := admin.CatalogServer{
		CatalogEntry: c.entry(e), ShortName: e.ShortName(), Website: e.Server.WebsiteURL, Repository: e.Server.Repository.URL,
		Updated: e.Updated, Seen: e.Seen, Digest: e.Digest(), Options: []admin.CatalogOption{},
	}
	if stale != nil {
		out.Stale = stale.Error()
	}
	if o, err := e.Pick(""); err != nil {
		out.Refused = err.Error()
	} else {
		out.Chosen = o.ID
	}
	for _, o := range e.Options() {
		row := admin.CatalogOption{ID: o.ID, Kind: o.Kind, Identifier: o.Identifier, Version: o.Version, Refused: o.Refused, Inputs: []admin.CatalogInput{}, Fetch: o.NeedsBundle() && o.ID != ref.Option}
		if r := o.Runner; r != nil {
			row.Runner = r.Command
			if !r.Found() {
				row.Needs, row.Install = r.Needs, r.Install()
			}
		}
		for _, a := range o.Inputs {
			row.Inputs = append(row.Inputs, admin.CatalogInput(a))
		}
		out.Options = append(out.Options, row)
	}
	return out, nil
}

// Install implements [admin.Catalog].
func (c *catalogAdmin) Install(ctx context.Context, name string, in admin.CatalogInstall) (admin.Prepared, error) {
	e, stale, err := c.catalog.Get(ctx, in.Registry, name, in.Version)
	if err != nil {
		return admin.Prepared{}, catalogError(err)
	}
	if e.Digest() != in.Digest {
		return admin.Prepared{}, &told{admin.ErrStale, fmt.Sprintf("the entry of %s %s has changed since it was shown: look at it again (yaya catalog show %[1]s)", e.Server.Name, e.Server.Version)}
	}
	o, err := e.Pick(in.Option)
	if err != nil {
		return admin.Prepared{}, catalogError(err)
	}
	in.Option = o.ID
	if err := c.catalog.FetchBundle(ctx, &e, in.Option, c.bundles); err != nil {
		return admin.Prepared{}, catalogError(err)
	}
	choice := catalog.Choice{Option: in.Option, Name: in.As, Given: map[string][]string{}, Profile: in.Profile, Hosts: in.Hosts}
	if choice.Name == "" {
		choice.Name = e.ShortName()
	}
	if err := manage.CheckName(choice.Name); err != nil {
		return admin.Prepared{}, catalogError(err)
	}
	for _, v := range in.Inputs {
		choice.Given[v.Name] = append(choice.Given[v.Name], v.Value)
	}
	stored, err := c.secrets.store.List()
	if err != nil {
		return admin.Prepared{}, storeError(err)
	}
	taken := func(n string) bool {
		return slices.ContainsFunc(stored, func(s secrets.Info) bool { return s.Name == n })
	}
	plan, err := catalog.Make(e, choice, taken)
	if err != nil {
		return admin.Prepared{}, catalogError(err)
	}
	for n, v := range plan.Secrets {
		if err := c.secrets.Check(n, v); err != nil {
			return admin.Prepared{}, err
		}
	}
	p, err := c.manager.Prepare(plan.Name, plan.Config, "")
	if err != nil {
		return admin.Prepared{}, answerOf(err)
	}
	if stale != nil {
		plan.Notes = append(plan.Notes, saysOld(e, stale))
	}
	p.Notes = append(plan.Notes, withoutStored(p.Notes, plan.Secrets)...)
	p.Runs = p.Exactly // a mask could hide what the publisher wrote; the user's secrets are references
	out := prepared(p)
	out.Secrets = names(plan.Secrets)
	apply := out.Apply
	out.Apply = func(ctx context.Context) error { return c.apply(ctx, plan, apply) }
	return out, nil
}

func saysOld(e catalog.Entry, stale error) string {
	return fmt.Sprintf("its registry gave no usable answer (%v): this is what it said on %s", stale, e.Seen.Format("2006-01-02 15:04"))
}

// withoutStored leaves out notes about secrets that are stored when the change is applied, and
// says that they are.
func withoutStored(notes []string, plan map[string]string) (out []string) {
	for _, n := range notes {
		if servers.SaysOpen(n) || !slices.ContainsFunc(names(plan), func(s string) bool { return strings.Contains(n, s) }) {
			out = append(out, n)
		}
	}
	for _, n := range names(plan) {
		out = append(out, "stores the secret "+n)
	}
	return out
}

func names(m map[string]string) (out []string) {
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// apply stores the secrets of a plan, unpacks its bundle, and adds the server. A secret that
// somebody has set meanwhile is not replaced, and if the server cannot be added none stays.
func (c *catalogAdmin) apply(ctx context.Context, plan catalog.Plan, add func(context.Context) error) (err error) {
	var done []string
	defer func() {
		if err == nil {
			return
		}
		for _, n := range done {
			err = errors.Join(err, c.secrets.store.RemoveValue(n, plan.Secrets[n]))
		}
	}()
	for _, n := range names(plan.Secrets) {
		added, err := c.secrets.store.Add(n, plan.Secrets[n])
		if err != nil {
			return storeError(err)
		}
		if !added {
			return &told{admin.ErrStale, fmt.Sprintf("the secret %s was set since this was proposed, and is kept: install the server again, which then stores its value under another name", n)}
		}
		done = append(done, n)
	}
	if plan.Bundle != nil {
		if err := c.catalog.Unpack(plan.Bundle); err != nil {
			return catalogError(err)
		}
	}
	return add(ctx)
}

// Updates implements [admin.Catalog].
func (c *catalogAdmin) Updates(ctx context.Context) ([]admin.CatalogUpdate, error) {
	out := []admin.CatalogUpdate{}
	for _, x := range c.manager.All() {
		o := x.Catalog
		if o == nil {
			continue
		}
		row := admin.CatalogUpdate{Server: x.Name, Registry: o.Registry, Name: o.Name, Version: o.Version}
		e, stale, err := c.catalog.Newest(ctx, *o)
		if err = errors.Join(err, stale); err != nil {
			row.Error = err.Error()
		}
		if catalog.Newer(o.Version, e.Server.Version) && e.Status != catalog.Deleted {
			row.Newest = e.Server.Version
		}
		row.Differs = catalog.Differs(x, e)
		if e.Status == catalog.Deprecated {
			row.Message = e.Message
			if row.Message == "" {
				row.Message = "its publisher no longer maintains it"
			}
		}
		out = append(out, row)
	}
	return out, ctx.Err()
}

// Update implements [admin.Catalog].
func (c *catalogAdmin) Update(ctx context.Context, server string) (admin.Prepared, error) {
	all := c.manager.All()
	i := slices.IndexFunc(all, func(x servers.Server) bool { return x.Name == server })
	if i < 0 || all[i].Catalog == nil {
		return admin.Prepared{}, &told{admin.ErrRefused, fmt.Sprintf("the server %q was not added from the catalogue", server)}
	}
	e, stale, err := c.catalog.Get(ctx, all[i].Catalog.Registry, all[i].Catalog.Name, "")
	if err != nil {
		return admin.Prepared{}, catalogError(err)
	}
	if differs := catalog.Differs(all[i], e); differs != "" {
		return admin.Prepared{}, &told{admin.ErrRefused, fmt.Sprintf("%s has no newer version than %s: %s; to take that, add it again under another name (yaya catalog install %s --as NAME), then remove %[1]s", server, all[i].Catalog.Version, differs, e.Server.Name)}
	}
	if !catalog.Newer(all[i].Catalog.Version, e.Server.Version) {
		return admin.Prepared{}, &told{admin.ErrRefused, fmt.Sprintf("%s has the newest version, %s", server, all[i].Catalog.Version)}
	}
	now, notes, err := catalog.Upgrade(all[i], e)
	if err != nil {
		return admin.Prepared{}, catalogError(err)
	}
	config, err := json.Marshal(now)
	if err != nil {
		return admin.Prepared{}, err
	}
	p, err := c.manager.Prepare(server, config, manage.Revision(all[i])) // it may have been edited while the registry was asked
	if err != nil {
		return admin.Prepared{}, answerOf(err)
	}
	if stale != nil {
		notes = append(notes, saysOld(e, stale))
	}
	switch {
	case p.Runs == p.Exactly:
	case catalog.Wrote(now, e):
		p.Runs = p.Exactly // a mask could hide what the publisher wrote
	default:
		notes = append(notes, "hides words of the command line that look like secrets of yours: they stay as they are")
	}
	p.Notes = append(notes, p.Notes...)
	return prepared(p), nil
}
