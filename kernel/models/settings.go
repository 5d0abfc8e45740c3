package models

import (
	"encoding/json"

	"github.com/yaya-ai/yaya/kernel/config"
)

// Facts holds the facts about a model at a provider.
type Facts struct {
	Model
	Known bool // by the catalogue
	// Pictures is false if the model takes none. One that nobody knows may take some.
	Pictures bool
}

// Of returns what is known of a model at a provider: by the catalogue, and by the settings of the
// provider, which count more. service is where the provider's address leads, see [ServiceAt]: the
// prices of the catalogue hold only there.
func (c *Catalogue) Of(i config.Instance, model, service string) Facts {
	m, known := c.Find(service, model)
	f := Facts{Model: m, Known: known, Pictures: !known || m.Images}
	if m.Service != service {
		f.Prices, f.Tiers = nil, nil
	}
	var window int
	if read(i, config.WindowField, &window) && window > 0 {
		f.Window, f.Input = window, 0
	}
	var images bool
	if read(i, config.ImagesField, &images) {
		f.Images, f.Pictures = images, images
	}
	var in, out, cached, stored float64
	hasIn, hasOut := read(i, config.InputPriceField, &in), read(i, config.OutputPriceField, &out)
	if hasIn || hasOut {
		f.Prices, f.Tiers = &Prices{Input: in, Output: out}, nil
	}
	if f.Prices != nil {
		p := *f.Prices
		if read(i, config.CacheReadPriceField, &cached) {
			p.CacheRead = cached
		}
		if read(i, config.CacheWritePriceField, &stored) {
			p.CacheWrite = stored
		}
		f.Prices = &p
	}
	return f
}

// read reads a field of a provider; false if it has none of that form.
func read(i config.Instance, field string, into any) bool {
	raw, ok := i.Config[field]
	return ok && string(raw) != "null" && json.Unmarshal(raw, into) == nil
}
