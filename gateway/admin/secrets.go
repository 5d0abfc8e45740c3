package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/gateway/api"
)

// Secrets stores secrets for the API. No value leaves it. If the file or its key
// is at fault, the error is [ErrFailed].
type Secrets interface {
	// List returns the secrets that are set, and those that something refers to and that
	// are not.
	List() (SecretList, error)
	// Check reports why a secret cannot be set so, as [ErrRefused]. The error does not
	// have the value.
	Check(name, value string) error
	// Set gives a secret a value, and has those that run with it take it over.
	Set(ctx context.Context, name, value string) (SecretSet, error)
	// Remove deletes a secret; without one of that name the error is [ErrUnknown].
	Remove(ctx context.Context, name string) (SecretRemoved, error)
}

type (
	// SecretList is the secrets, without their values.
	SecretList struct {
		Secrets []Secret `json:"secrets"`
		// Key is the location of the key that seals them.
		Key string `json:"key,omitempty" doc:"location of the key that seals them; absent if nothing is sealed"`
	}
	// Secret is one of them.
	Secret struct {
		Name string    `json:"name"`
		Set  time.Time `json:"set_at,omitzero" doc:"absent if it is not set, and something refers to it"`
		Uses []string  `json:"uses" doc:"servers and settings that refer to it"`
	}
	// SecretSet is the result of setting a secret.
	SecretSet struct {
		Replaced  bool     `json:"replaced"`
		Restarted []string `json:"restarted" doc:"servers that were started again with it"`
		Key       string   `json:"key" doc:"location of the key that seals it"`
	}
	// SecretRemoved is the result of removing a secret.
	SecretRemoved struct {
		Uses []string `json:"uses" doc:"servers and settings that still refer to it"`
	}
	// InSecret names a secret.
	InSecret struct {
		Name string `path:"name" maxLength:"200"`
	}
)

func (a *API) secretRoutes() {
	r := routes{a, "secrets", a.cfg.Secrets != nil, "secrets"}
	handle(r, "GET", "/api/secrets", "listSecrets", api.OverSocket(), "List secrets and references to them, never their values", http.StatusOK, func(context.Context, *none) (*struct{ Body SecretList }, error) {
		all, err := a.cfg.Secrets.List()
		return &struct{ Body SecretList }{all}, err
	})
	handle(r, "PUT", "/api/secrets/{name}", "setSecret", api.OverSocket(), "Set a secret", http.StatusOK, func(ctx context.Context, in *struct {
		InSecret
		Body struct {
			Value string `json:"value"`
		}
	},
	) (*struct{ Body SecretSet }, error) {
		if err := a.cfg.Secrets.Check(in.Name, in.Body.Value); err != nil {
			return nil, err
		}
		var out SecretSet
		err := a.recorded(ctx, "secret_set", in.Name, nil, func() (err error) {
			out, err = a.cfg.Secrets.Set(ctx, in.Name, in.Body.Value)
			return err
		})
		return &struct{ Body SecretSet }{out}, err
	})
	handle(r, "DELETE", "/api/secrets/{name}", "removeSecret", api.OverSocket(), "Delete a secret", http.StatusOK, func(ctx context.Context, in *InSecret) (*struct{ Body SecretRemoved }, error) {
		all, err := a.cfg.Secrets.List()
		if err != nil {
			return nil, err
		}
		if !all.has(in.Name) {
			return nil, api.Fail(http.StatusNotFound, "there is no secret %q: yaya secret list shows those that there are", in.Name)
		}
		var out SecretRemoved
		err = a.recorded(ctx, "secret_removed", in.Name, nil, func() (err error) {
			out, err = a.cfg.Secrets.Remove(ctx, in.Name)
			return err
		})
		return &struct{ Body SecretRemoved }{out}, err
	})
}

// has reports whether a secret is set.
func (l SecretList) has(name string) bool {
	for _, s := range l.Secrets {
		if s.Name == name && !s.Set.IsZero() {
			return true
		}
	}
	return false
}
