package admin

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/api"
)

// Clients are the MCP clients on this machine, whose files say whether they use yaya.
type Clients interface {
	// List looks at the files of all clients.
	List() []ClientFile
	// Prepare says what adding yaya to a client's file, or removing it, would change, as
	// [ErrRefused] if it cannot be done.
	Prepare(client, file string, remove bool) (ClientEdit, error)
}

type (
	// ClientFile is how it stands with a file of a client.
	ClientFile struct {
		Client string `json:"client" doc:"its id"`
		Name   string `json:"name"`
		File   string `json:"file"`
		Found  bool   `json:"found" doc:"there is the file, or at least a folder of the client"`
		Yaya   string `json:"yaya,omitempty" doc:"command or address of yaya's entry"`
		Other  string `json:"other,omitempty" doc:"command of another program that is called yaya there"`
		Error  string `json:"error,omitempty" doc:"why the file cannot be read"`
	}
	// ClientEdit is a change of a client's file that was not made yet. Was and Now are the text
	// of yaya's entry before and after, "" for none.
	ClientEdit struct {
		ClientFile
		Was, Now string
		New      bool // there is no file yet
		Gone     bool // the file has nothing else, and is removed
		// Apply makes the change, unless the file has changed meanwhile, and returns the path of
		// the backup.
		Apply func(context.Context) (backup string, err error)
	}
	// ClientChange is a change of a client's file that waits to be applied.
	ClientChange struct {
		ID      string    `json:"id"`
		Client  string    `json:"client"`
		Name    string    `json:"name"`
		File    string    `json:"file"`
		Was     string    `json:"was,omitempty" doc:"yaya's entry before"`
		Now     string    `json:"now,omitempty" doc:"yaya's entry after"`
		New     bool      `json:"new,omitempty" doc:"the file is created"`
		Gone    bool      `json:"gone,omitempty" doc:"the file contains nothing else, and is removed"`
		Expires time.Time `json:"expires_at"`
	}
	// ClientChanged is the result of a change.
	ClientChanged struct {
		File   string `json:"file"`
		Backup string `json:"backup,omitempty" doc:"the file as it was before"`
	}
)

// clientChanges are the changes that wait, in memory: a restart forgets them.
type clientChanges struct {
	mu   sync.Mutex
	held map[string]heldEdit
}

type heldEdit struct {
	ClientChange
	apply func(context.Context) (string, error)
}

func (c *clientChanges) hold(e ClientEdit) (ClientChange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for id, h := range c.held {
		if !now.Before(h.Expires) {
			delete(c.held, id)
		}
	}
	if len(c.held) >= maxChanges {
		return ClientChange{}, api.Fail(http.StatusTooManyRequests, "%d changes wait already", len(c.held))
	}
	ch := ClientChange{ID: "cli_" + rand.Text(), Client: e.Client, Name: e.Name, File: e.File, Was: e.Was, Now: e.Now, New: e.New, Gone: e.Gone, Expires: now.Add(changeLife).UTC()}
	if c.held == nil {
		c.held = map[string]heldEdit{}
	}
	c.held[ch.ID] = heldEdit{ch, e.Apply}
	return ch, nil
}

// take returns a change that waits and forgets it: it is applied once at most.
func (c *clientChanges) take(id string) (heldEdit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.held[id]
	delete(c.held, id)
	if !ok || !time.Now().Before(h.Expires) {
		return h, api.Fail(http.StatusNotFound, "no such change waits: it was applied or has expired")
	}
	return h, nil
}

func (a *API) clientRoutes() {
	r := routes{a, "clients", a.cfg.Clients != nil, "files of clients"}
	owner := api.Access{Owner: api.Local} // the files are those of the user that runs yaya
	handle(r, "GET", "/api/clients", "listClients", owner, "List the MCP clients of this machine, and which of them use yaya", http.StatusOK, func(context.Context, *none) (*struct{ Body []ClientFile }, error) {
		return &struct{ Body []ClientFile }{a.cfg.Clients.List()}, nil
	})
	handle(r, "POST", "/api/clients/{client}/changes", "proposeClientChange", owner, "Propose to add yaya to the file of a client, or to remove it", http.StatusAccepted, func(_ context.Context, in *struct {
		Client string `path:"client" maxLength:"64"`
		Body   struct {
			File   string `json:"file" maxLength:"4096" doc:"one of its files"`
			Remove bool   `json:"remove,omitempty"`
		}
	},
	) (*struct{ Body ClientChange }, error) {
		e, err := a.cfg.Clients.Prepare(in.Client, in.Body.File, in.Body.Remove)
		if err != nil {
			return nil, err
		}
		if e.Was == e.Now {
			return nil, api.Fail(http.StatusConflict, "%s has nothing to change in %s", e.Name, e.File)
		}
		ch, err := a.clients.hold(e)
		return &struct{ Body ClientChange }{ch}, err
	})
	handle(r, "POST", "/api/client-changes/{id}/apply", "applyClientChange", owner, "Apply a change of a client's file as proposed", http.StatusOK, func(ctx context.Context, in *struct {
		ID string `path:"id" maxLength:"128"`
	},
	) (*struct{ Body ClientChanged }, error) {
		h, err := a.clients.take(in.ID)
		if err != nil {
			return nil, err
		}
		out := ClientChanged{File: h.File}
		action := map[bool]string{true: "remove", false: "add"}[h.Now == ""]
		err = a.recorded(ctx, "client_changed", h.Client, map[string]string{"file": h.File, "action": action}, func() error {
			backup, err := h.apply(ctx)
			if err != nil {
				return api.Fail(http.StatusConflict, "%s: %v", h.Name, err)
			}
			out.Backup = backup
			return nil
		})
		return &struct{ Body ClientChanged }{out}, err
	})
}
