package daemon

import (
	"errors"
	"os"

	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// WithGrants runs f with a configured remote server and the place of its grants.
func WithGrants(g *Flags, mcpConfig []string, name string, f func(manage.SignIn) error) (err error) {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	l, err := manage.Load(p.Servers(), mcpConfig)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	data, settings, err := g.Open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	known, err := p.Folders(data, settings)
	if err != nil {
		return err
	}
	if err := l.Here(mcpConfig, dir, known); err != nil {
		return err
	}
	s, err := l.Remote(name, servers.Scope{Env: os.LookupEnv, Home: p.Home, Workspace: dir, Secret: g.Vault.Get})
	if err != nil {
		return err
	}
	return f(manage.SignIn{Server: s, Grants: oauth.NewStore(data, g.Vault), Version: Version()})
}
