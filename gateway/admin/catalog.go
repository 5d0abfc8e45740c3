package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// Catalog finds servers in registries, and prepares to add them. Errors wrap [ErrUnknown],
// [ErrRefused], [ErrStale] or [ErrFailed], and say why.
type Catalog interface {
	// Search finds servers by words, or lists all page by page without words.
	Search(ctx context.Context, words, cursor string) (CatalogPage, error)
	// Entry shows a server with all that it asks for.
	Entry(ctx context.Context, name string, ref CatalogRef) (CatalogServer, error)
	// Install prepares to add a server. Nothing happens before [Prepared.Apply] is called; then
	// its secrets are stored, too.
	Install(ctx context.Context, name string, in CatalogInstall) (Prepared, error)
	// Updates lists the servers that were added from the catalogue, with newer versions.
	Updates(ctx context.Context) ([]CatalogUpdate, error)
	// Update prepares to change a server to the newest version of its entry.
	Update(ctx context.Context, server string) (Prepared, error)
}

// CatalogRef says which entry of a name is meant.
type CatalogRef struct {
	Registry string `query:"registry" maxLength:"64" doc:"name of the registry; not needed if only one has the server"`
	Version  string `query:"version" maxLength:"128" doc:"exact version; the newest without it"`
	Option   string `query:"option" maxLength:"64" doc:"id of an option whose bundle (mcpb) is to be fetched, to know what it asks for"`
}

// CatalogPage is the answer to a search.
type CatalogPage struct {
	Servers    []CatalogEntry    `json:"servers"`
	Next       string            `json:"next,omitempty" doc:"cursor of the next page"`
	Registries []CatalogRegistry `json:"registries"`
	Bundled    string            `json:"bundled" doc:"date of the list that comes with yaya"`
}

// CatalogRegistry says how a registry answered.
type CatalogRegistry struct {
	Name    string    `json:"name"`
	URL     string    `json:"url"`
	Seen    time.Time `json:"seen_at,omitzero" doc:"when it last answered"`
	Error   string    `json:"error,omitempty" doc:"why its entries are old or missing"`
	Skipped int       `json:"skipped,omitempty" doc:"entries of its answer that cannot be used"`
}

// CatalogEntry is a server of the catalogue. Its texts are its publisher's.
type CatalogEntry struct {
	Registry    string   `json:"registry" doc:"name of the registry; bundled is yaya's own list"`
	Name        string   `json:"name"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description"`
	Version     string   `json:"version"`
	Kinds       []string `json:"kinds" doc:"npm, pypi, oci, nuget, mcpb, remote"`
	Deprecated  bool     `json:"deprecated,omitempty"`
	Message     string   `json:"message,omitempty" doc:"of its publisher, about its state"`
	Installed   string   `json:"installed,omitempty" doc:"name of the server that was added from it"`
}

// CatalogServer is an entry with all that it asks for.
type CatalogServer struct {
	CatalogEntry
	ShortName  string          `json:"short_name" doc:"proposed name in yaya's configuration"`
	Website    string          `json:"website,omitempty"`
	Repository string          `json:"repository,omitempty"`
	Updated    time.Time       `json:"updated_at,omitzero"`
	Seen       time.Time       `json:"seen_at,omitzero" doc:"when its registry said this"`
	Stale      string          `json:"stale,omitempty" doc:"why it may be old"`
	Digest     string          `json:"digest" doc:"of all of this: what installCatalogServer agrees to"`
	Options    []CatalogOption `json:"options"`
	Chosen     string          `json:"chosen,omitempty" doc:"id of the option that is used unless another one is named"`
	Refused    string          `json:"refused,omitempty" doc:"why none can be used"`
}

// CatalogOption is one way to use a server.
type CatalogOption struct {
	ID         string         `json:"id"`
	Kind       string         `json:"kind" doc:"npm, pypi, oci, nuget, mcpb or remote"`
	Identifier string         `json:"identifier" doc:"package, or address with {variables}"`
	Version    string         `json:"version,omitempty"`
	Runner     string         `json:"runner,omitempty" doc:"program that starts it"`
	Needs      string         `json:"needs,omitempty" doc:"program to install, if the runner is not on yaya's PATH"`
	Install    string         `json:"install,omitempty" doc:"how to install that here"`
	Refused    string         `json:"refused,omitempty" doc:"why yaya does not use it"`
	Fetch      bool           `json:"fetch,omitempty" doc:"its bundle has to be fetched first, to know what it asks for"`
	Inputs     []CatalogInput `json:"inputs"`
}

// CatalogInput is a value that the user gives.
type CatalogInput struct {
	Name        string   `json:"name"`
	Use         string   `json:"use" enum:"variable,argument,header,address"`
	Description string   `json:"description,omitempty"`
	Required    bool     `json:"required,omitempty"`
	Secret      bool     `json:"secret,omitempty" doc:"the value goes to the store of secrets"`
	Format      string   `json:"format" enum:"string,number,boolean,filepath"`
	Default     string   `json:"default,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`
	Choices     []string `json:"choices,omitempty"`
	Repeated    bool     `json:"repeated,omitempty" doc:"it takes several values"`
}

// CatalogInstall says how to add a server.
type CatalogInstall struct {
	Registry string         `json:"registry" minLength:"1" maxLength:"64"`
	Version  string         `json:"version" minLength:"1" maxLength:"128"`
	Digest   string         `json:"digest" minLength:"1" maxLength:"128" doc:"of the entry that was shown: another one now is refused"`
	Option   string         `json:"option,omitempty" maxLength:"64" doc:"id of an option"`
	As       string         `json:"as,omitempty" maxLength:"128" doc:"name in yaya's configuration"`
	Inputs   []CatalogValue `json:"inputs,omitempty" maxItems:"200"`
	Profile  string         `json:"profile,omitempty" maxLength:"32" doc:"sandbox of the process: server or guarded; the proposed one without it"`
	Hosts    []string       `json:"hosts,omitempty" maxItems:"64" doc:"hosts that it reaches beside the proposed ones"`
}

// CatalogValue is a value for an input; one that takes several is there several times.
type CatalogValue struct {
	Name  string `json:"name" minLength:"1" maxLength:"100"`
	Value string `json:"value" maxLength:"8192"`
}

// CatalogUpdate is a server that was added from the catalogue.
type CatalogUpdate struct {
	Server   string `json:"server"`
	Registry string `json:"registry"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Newest   string `json:"newest,omitempty" doc:"newer version of its entry"`
	Differs  string `json:"differs,omitempty" doc:"how its entry differs without being newer: an older version, or another one of the package"`
	Message  string `json:"message,omitempty" doc:"of its publisher, if it is deprecated"`
	Error    string `json:"error,omitempty" doc:"why yaya does not know"`
}

// InCatalog names a server of the catalogue.
type InCatalog struct {
	Name string `path:"name" maxLength:"200" doc:"such as io.github.owner/server, with %2F for the slash"`
}

func (a *API) catalogRoutes() {
	r := routes{a, "mcp", a.cfg.Catalog != nil, "catalogue"}
	handle(r, "GET", "/api/catalogue", "searchCatalog", api.For(auth.ConfigRead), "Search the catalogue of servers: registries, and the list that comes with yaya", http.StatusOK, func(ctx context.Context, in *struct {
		Words  string `query:"q" maxLength:"200" doc:"words; without them all servers, page by page"`
		Cursor string `query:"cursor" maxLength:"2048"`
	},
	) (*struct{ Body CatalogPage }, error) {
		p, err := a.cfg.Catalog.Search(ctx, in.Words, in.Cursor)
		return &struct{ Body CatalogPage }{p}, err
	})
	handle(r, "GET", "/api/catalogue/{name}", "getCatalogServer", api.For(auth.ConfigRead), "Show a server of the catalogue: how it can be used, and what it asks for", http.StatusOK, func(ctx context.Context, in *struct {
		InCatalog
		CatalogRef
	},
	) (*struct{ Body CatalogServer }, error) {
		if in.Option != "" && auth.Allow(auth.FromContext(ctx), auth.ConfigWrite) != nil {
			return nil, api.Fail(http.StatusForbidden, "who may not add servers may not have their bundles fetched: it needs the scope %s", auth.ConfigWrite)
		}
		s, err := a.cfg.Catalog.Entry(ctx, in.Name, in.CatalogRef)
		return &struct{ Body CatalogServer }{s}, err
	})
	handle(r, "POST", "/api/catalogue/{name}/install", "installCatalogServer", api.For(auth.ConfigWrite), "Propose to add a server of the catalogue; the response shows what it would run, and waits to be applied. Secrets are stored when it is", http.StatusAccepted, func(ctx context.Context, in *struct {
		InCatalog
		Body CatalogInstall
	},
	) (*outChange, error) {
		return a.proposedNew(ctx, func() (Prepared, error) { return a.cfg.Catalog.Install(ctx, in.Name, in.Body) })
	})
	handle(r, "GET", "/api/mcp/updates", "listCatalogUpdates", api.For(auth.ConfigRead), "List the servers that were added from the catalogue, with newer versions", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body []CatalogUpdate }, error) {
		all, err := a.cfg.Catalog.Updates(ctx)
		return &struct{ Body []CatalogUpdate }{all}, err
	})
	handle(r, "POST", "/api/mcp/servers/{name}/update", "updateCatalogServer", api.For(auth.ConfigWrite), "Propose the newest version of a server that was added from the catalogue; the response waits to be applied", http.StatusAccepted, func(ctx context.Context, in *InServer) (*outChange, error) {
		if err := a.cfg.Servers.Known(in.Name); err != nil {
			return nil, err
		}
		return a.proposed(ctx, func() (Prepared, error) { return a.cfg.Catalog.Update(ctx, in.Name) })
	})
}

// proposedNew is proposed for a server that must not be there yet.
func (a *API) proposedNew(ctx context.Context, prepare func() (Prepared, error)) (*outChange, error) {
	return a.proposed(ctx, func() (Prepared, error) {
		p, err := prepare()
		if err == nil && !p.New {
			err = api.Fail(http.StatusConflict, "there is a server %q already", p.Server)
		}
		return p, err
	})
}
