package admin

import (
	"context"
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/models"
)

// Models is the catalogue of models.
type Models interface {
	List() models.List
	// Refresh gets a newer list from its source.
	Refresh(ctx context.Context) (models.List, error)
}

// ModelList is the catalogue as the API shows it.
type ModelList struct {
	Source string  `json:"source"`
	Date   string  `json:"date" doc:"of the list"`
	Models []Model `json:"models"`
}

// Model is a model of the catalogue. Prices are in US dollars for a million tokens.
type Model struct {
	Service    string  `json:"service" doc:"where the prices hold; local for models with open weights"`
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Window     int     `json:"window" doc:"tokens of request and answer"`
	Input      int     `json:"input,omitempty" doc:"most tokens of a request, if that is less than the window"`
	Output     int     `json:"output,omitempty" doc:"most tokens of an answer"`
	Priced     bool    `json:"priced" doc:"whether its prices are known"`
	InputUSD   float64 `json:"input_price"`
	OutputUSD  float64 `json:"output_price"`
	CacheRead  float64 `json:"cache_read_price,omitempty"`
	CacheWrite float64 `json:"cache_write_price,omitempty"`
	LongAbove  int     `json:"long_above,omitempty" doc:"requests with more tokens than this have other prices"`
	Tools      bool    `json:"tools"`
	Images     bool    `json:"images"`
	Reasoning  bool    `json:"reasoning"`
}

func modelList(l models.List) ModelList {
	out := ModelList{l.Source, l.Date, []Model{}}
	for _, m := range l.Models {
		row := Model{Service: m.Service, ID: m.ID, Name: m.Name, Window: m.Window, Input: m.Input, Output: m.Output, Tools: m.Tools, Images: m.Images, Reasoning: m.Reasoning}
		if p := m.Prices; p != nil {
			row.Priced, row.InputUSD, row.OutputUSD, row.CacheRead, row.CacheWrite = true, p.Input, p.Output, p.CacheRead, p.CacheWrite
		}
		if len(m.Tiers) > 0 {
			row.LongAbove = m.Tiers[0].Above
		}
		out.Models = append(out.Models, row)
	}
	return out
}

func (a *API) modelRoutes() {
	r := routes{a, "models", a.cfg.Models != nil, "models"}
	handle(r, "GET", "/api/models", "listModels", api.For(auth.ConfigRead), "List the models that yaya knows: windows, prices and abilities", http.StatusOK, func(context.Context, *none) (*struct{ Body ModelList }, error) {
		return &struct{ Body ModelList }{modelList(a.cfg.Models.List())}, nil
	})
	handle(r, "POST", "/api/models/refresh", "refreshModels", api.For(auth.ConfigWrite), "Get a newer list of models from its source (models.source)", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body ModelList }, error) {
		var l models.List
		err := a.recorded(ctx, "models_refreshed", "models", struct{}{}, func() (err error) {
			l, err = a.cfg.Models.Refresh(ctx)
			return err
		})
		return &struct{ Body ModelList }{modelList(l)}, err
	})
}
