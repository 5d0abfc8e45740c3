package sessions

import (
	"context"
	"errors"
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/models"
)

// noModels is the [Models] of a service without any.
type noModels struct{}

// Choices implements [Models].
func (noModels) Choices() []models.Choice { return []models.Choice{} }

// Choose implements [Models].
func (noModels) Choose(string) (models.Choice, error) {
	return models.Choice{}, errors.New("no models can be chosen here")
}

type outModels struct {
	Body struct {
		Models []models.Choice `json:"models"`
	}
}

func (s *Service) modelRoutes() {
	api.Handle(s.API, op("GET", "/v1/models", "listModels", auth.SessionsRead, "List the models that are configured; a session can have one of them, or another model of their providers", http.StatusOK), func(context.Context, *struct{}) (*outModels, error) {
		out := new(outModels)
		out.Body.Models = s.cfg.Models.Choices()
		return out, nil
	})
}

// checkModel returns the error for a client that chooses a model which no session can have.
func (s *Service) checkModel(choice string) error {
	if choice == "" { // the active one, even if there is none at present
		return nil
	}
	if _, err := s.cfg.Models.Choose(choice); err != nil {
		return api.Coded(http.StatusBadRequest, "bad_model", "%v", err)
	}
	return nil
}

// answering returns the model that answers a session's next message; nil if there is none.
func (s *Service) answering(choice string) *models.Choice {
	c, err := s.cfg.Models.Choose(choice)
	if err != nil { // the next turn says why
		return nil
	}
	return &c
}
