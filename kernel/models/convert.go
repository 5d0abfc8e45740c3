package models

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Source is where [Convert]'s lists come from.
const Source = "https://models.dev/api.json"

// MaxSource bounds what a source sends, in bytes.
const MaxSource = 32 << 20

// sourced is a model as models.dev writes it, as far as it matters.
type sourced struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Reasoning bool   `json:"reasoning"`
	ToolCall  bool   `json:"tool_call"`
	Limit     struct {
		Context int `json:"context"`
		Input   int `json:"input"`
		Output  int `json:"output"`
	} `json:"limit"`
	Modalities struct {
		Input  []string `json:"input"`
		Output []string `json:"output"`
	} `json:"modalities"`
	Cost *struct {
		Prices
		Tiers []struct {
			Tier struct {
				Size int `json:"size"`
			} `json:"tier"`
			Prices
		} `json:"tiers"`
	} `json:"cost"`
}

// Convert reads the list of models.dev: the models of our services that write text and are not
// retired. It leaves out those that cannot be.
func Convert(raw []byte, source, date string) (List, error) {
	if len(raw) > MaxSource {
		return List{}, fmt.Errorf("the source has %d bytes, %d at most", len(raw), MaxSource)
	}
	var all map[string]struct {
		Models map[string]json.RawMessage `json:"models"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return List{}, fmt.Errorf("the source is not a list of models.dev: %w", err)
	}
	out := List{Source: source, Date: date, License: "MIT, models.dev"}
	for _, service := range Services() {
		for _, one := range all[service].Models {
			var s sourced
			if json.Unmarshal(one, &s) != nil {
				continue
			}
			if m, ok := s.model(service); ok && m.check() == nil {
				out.Models = append(out.Models, m)
			}
		}
	}
	slices.SortFunc(out.Models, func(a, b Model) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.ID, b.ID))
	})
	return out, out.check()
}

func (s sourced) model(service string) (Model, bool) {
	m := Model{
		Service: service, ID: s.ID, Name: cmp.Or(s.Name, s.ID), Window: s.Limit.Context, Output: s.Limit.Output,
		Tools: s.ToolCall, Images: slices.Contains(s.Modalities.Input, "image"), Reasoning: s.Reasoning,
	}
	if s.Limit.Input < s.Limit.Context {
		m.Input = s.Limit.Input
	}
	if s.Cost != nil {
		m.Prices = &s.Cost.Prices
		for _, t := range s.Cost.Tiers {
			m.Tiers = append(m.Tiers, Tier{t.Tier.Size, t.Prices})
		}
		slices.SortFunc(m.Tiers, func(a, b Tier) int { return a.Above - b.Above })
	}
	// Pictures, speech and embeddings are not answers.
	return m, s.Status != "deprecated" && slices.Equal(s.Modalities.Output, []string{"text"}) && !strings.Contains(s.ID, "embed") && s.Limit.Output > 0
}
