package daemon

import (
	"context"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/mcpbridge/clients"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// clientFiles are the files of the MCP clients of the user that runs yaya.
type clientFiles struct{ flags *Flags }

// List implements [admin.Clients].
func (c clientFiles) List() []admin.ClientFile {
	out := []admin.ClientFile{}
	p, err := c.flags.Paths()
	if err != nil {
		return out
	}
	for _, client := range clients.All(manage.Places(p.Home)) {
		for _, s := range client.States(p.Home) {
			f := admin.ClientFile{Client: client.ID, Name: client.Name, File: s.Path, Found: s.Found, Yaya: s.Yaya, Other: s.Other}
			if s.Err != nil {
				f.Error = s.Err.Error()
			}
			out = append(out, f)
		}
	}
	return out
}

// Prepare implements [admin.Clients].
func (c clientFiles) Prepare(id, path string, remove bool) (admin.ClientEdit, error) {
	refuse := func(err error) (admin.ClientEdit, error) {
		return admin.ClientEdit{}, fmt.Errorf("%w: %w", admin.ErrRefused, err)
	}
	p, err := c.flags.Paths()
	if err != nil {
		return admin.ClientEdit{}, err
	}
	client, known := clients.Named(clients.All(manage.Places(p.Home)), id)
	if !known {
		return refuse(fmt.Errorf("unknown client %q", id))
	}
	files, err := client.Files(true)
	if err != nil {
		return refuse(err)
	}
	for _, f := range files {
		if f.Path != path {
			continue
		}
		e, err := c.edit(f, remove)
		if err != nil {
			return refuse(err)
		}
		return admin.ClientEdit{
			ClientFile: admin.ClientFile{Client: f.ID, Name: f.Name, File: f.Path, Found: f.Found},
			Was:        HideCredentials(e.Was), Now: HideCredentials(e.Now), New: !f.Found, Gone: e.Gone,
			Apply: func(ctx context.Context) (string, error) { return f.Change(ctx, e) },
		}, nil
	}
	return refuse(fmt.Errorf("%s has no file %s", client.Name, path))
}

// edit returns the change that adds yaya to a file, or removes it. The client runs yaya mcp serve,
// which needs no token.
func (c clientFiles) edit(f clients.File, remove bool) (clients.Edit, error) {
	if remove {
		before, err := f.Original()
		if err != nil {
			return clients.Edit{}, err
		}
		return f.Remove(f.Data, before)
	}
	command, args, err := c.flags.StdioCommand()
	if err != nil {
		return clients.Edit{}, err
	}
	return f.Add(f.Data, clients.Spec{Command: command, Args: args})
}

// credential matches the secret part of a header.
var credential = lazyregexp.New(`(?i)(Bearer )[^"'\s]+`)

// HideCredentials masks tokens in the entry of a client, to show it.
func HideCredentials(entry string) string {
	return credential().ReplaceAllString(strings.ReplaceAll(entry, "\r\n", "\n"), "${1}****")
}
