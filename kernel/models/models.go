// Package models is the catalogue of models: the size of their windows and answers, their prices
// and their abilities. It comes with yaya (models.json, with its source and date), can be replaced
// by a newer list in the data directory, and is overridden by the settings of a provider.
//
// The catalogue knows no network: whoever fetches a list gives it to [Convert].
package models

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Bounds of a list.
const (
	MaxList   = 4 << 20 // bytes
	maxModels = 5000
	maxName   = 200
	minWindow = 1024
	maxTokens = 100_000_000
	maxPrice  = 100_000 // US dollars for a million tokens
)

// Local is the service of models with open weights, which anybody may run.
const Local = "local"

//go:embed models.json
var bundled []byte

// Prices are in US dollars for a million tokens. A price of 0 for cached tokens means that of the
// others.
type Prices struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
}

// Tier has the prices of requests with more than so many tokens.
type Tier struct {
	Above int `json:"above"`
	Prices
}

// Model holds the facts about a model.
type Model struct {
	Service string `json:"service"` // that has these prices, or [Local]
	ID      string `json:"id"`
	Name    string `json:"name"`
	Window  int    `json:"window"`          // in tokens, of request and answer
	Input   int    `json:"input,omitempty"` // the most tokens of a request, if that is less than the window
	Output  int    `json:"output,omitempty"`

	Prices *Prices `json:"prices,omitempty"`
	Tiers  []Tier  `json:"tiers,omitempty"`

	Tools     bool `json:"tools,omitempty"`
	Images    bool `json:"images,omitempty"`
	Reasoning bool `json:"reasoning,omitempty"`
}

// Room is the most tokens of a request.
func (m Model) Room() int {
	if m.Input > 0 {
		return min(m.Input, m.Window)
	}
	return m.Window
}

// Cost returns what tokens cost, in US dollars; 0 if the prices are not known.
func (m Model) Cost(u event.Usage) float64 {
	if m.Prices == nil {
		return 0
	}
	p := *m.Prices
	for _, t := range m.Tiers {
		if u.Input > t.Above {
			p = t.Prices
		}
	}
	of := func(tokens int, price, instead float64) float64 {
		if price == 0 {
			price = instead
		}
		return float64(max(tokens, 0)) * price
	}
	return (of(u.InputOther, p.Input, 0) + of(u.InputCacheRead, p.CacheRead, p.Input) + of(u.InputCacheCreation, p.CacheWrite, p.Input) + of(u.Output, p.Output, 0)) / 1e6
}

// List is a list of models as it is kept. Tiers go up.
type List struct {
	Source  string  `json:"source"`
	Date    string  `json:"date"`
	License string  `json:"license,omitempty"`
	Models  []Model `json:"models"`
}

// Parse reads a list.
func Parse(raw []byte) (List, error) {
	if len(raw) > MaxList {
		return List{}, fmt.Errorf("the list of models has %d bytes, %d at most", len(raw), MaxList)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var l List
	if err := dec.Decode(&l); err != nil {
		return List{}, fmt.Errorf("the list of models: %w", err)
	}
	return l, l.check()
}

func (l List) check() error {
	if len(l.Models) == 0 || len(l.Models) > maxModels {
		return fmt.Errorf("the list has %d models, 1 to %d are allowed", len(l.Models), maxModels)
	}
	for _, m := range l.Models {
		if err := m.check(); err != nil {
			return fmt.Errorf("the model %.80q of the list: %w", m.ID, err)
		}
	}
	return nil
}

func (m Model) check() error {
	if m.ID == "" || m.Service == "" || len(m.ID)+len(m.Name)+len(m.Service) > maxName || !plain(m.ID+m.Name+m.Service) {
		return errors.New("its id, name or service is empty, too long or not printable")
	}
	for _, n := range []int{m.Window, m.Input, m.Output} {
		if n < 0 || n > maxTokens {
			return fmt.Errorf("%d is not a number of tokens", n)
		}
	}
	if m.Window < minWindow || (m.Input > 0 && m.Input < minWindow) { // as little as a setting may say
		return fmt.Errorf("its window has less than %d tokens", minWindow)
	}
	all := []Prices{}
	if m.Prices != nil {
		all = append(all, *m.Prices)
	}
	last := 0
	for _, t := range m.Tiers {
		if t.Above <= last || t.Above > maxTokens {
			return fmt.Errorf("%d does not begin a tier above %d tokens", t.Above, last)
		}
		last = t.Above
		all = append(all, t.Prices)
	}
	for _, p := range all {
		for _, x := range []float64{p.Input, p.Output, p.CacheRead, p.CacheWrite} {
			if !(x >= 0 && x <= maxPrice) || math.IsNaN(x) {
				return fmt.Errorf("%v is not a price", x)
			}
		}
	}
	return nil
}

// plain reports whether a text can be shown on a terminal.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError })
}

// Catalogue is the list in use. It is safe for concurrent use. The zero value, and nil, have the list
// that comes with yaya.
type Catalogue struct{ now atomic.Pointer[index] }

type index struct {
	list List
	by   map[string][]Model // by what [key] makes of their ids
}

var own = sync.OnceValue(func() *index {
	l, err := Parse(bundled)
	if err != nil { // a test reads it
		panic(err)
	}
	return indexed(l)
})

func indexed(l List) *index {
	x := &index{l, map[string][]Model{}}
	for _, m := range l.Models {
		x.by[key(m.ID)] = append(x.by[key(m.ID)], m)
	}
	return x
}

func (c *Catalogue) index() *index {
	if c != nil {
		if x := c.now.Load(); x != nil {
			return x
		}
	}
	return own()
}

// Use replaces the list. Models that only the list of yaya has stay, among them all local ones.
func (c *Catalogue) Use(l List) error {
	if err := l.check(); err != nil {
		return err
	}
	known := map[[2]string]bool{}
	for _, m := range l.Models {
		known[[2]string{m.Service, m.ID}] = true
	}
	l.Models = slices.Clone(l.Models)
	for _, m := range own().list.Models {
		if !known[[2]string{m.Service, m.ID}] {
			l.Models = append(l.Models, m)
		}
	}
	c.now.Store(indexed(l))
	return nil
}

// List returns the list in use; it is not to be changed.
func (c *Catalogue) List() List { return c.index().list }

// suffix matches the end of an id that names a version of the model.
var suffix = lazyregexp.New(`(-\d{8}|-\d{4}-\d{2}-\d{2}|@\d{8}|-latest|:latest|:free)$`)

// key is how ids are compared: services and programs write openai/gpt-oss-20b, gpt-oss:20b and
// models/gemini-2.5-pro.
func key(id string) string {
	id = strings.ToLower(id)
	id = id[strings.LastIndexByte(id, '/')+1:]
	return strings.ReplaceAll(id, ":", "-")
}

// find returns the models of an id, one of each service that has it.
func (x *index) find(id string) []Model {
	if found := x.by[key(id)]; len(found) > 0 {
		return found
	}
	return x.by[key(suffix().ReplaceAllString(strings.ToLower(id), ""))]
}

// Find returns what is known of a model, preferably at that service ("" for any). It reports false
// for a model that the catalogue does not have.
func (c *Catalogue) Find(service, id string) (Model, bool) {
	if len(id) > maxName {
		return Model{}, false
	}
	found := c.index().find(id)
	if len(found) == 0 {
		return Model{}, false
	}
	if i := slices.IndexFunc(found, func(m Model) bool { return m.Service == service }); i >= 0 {
		return found[i], true
	}
	return found[0], true
}

// hosts are those of the services, where their prices hold.
var hosts = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, p := range presets {
		if u, err := url.Parse(p.URL); err == nil && p.Service != "" {
			out[u.Hostname()] = p.Service
		}
	}
	return out
})

// Services are those of the catalogue.
func Services() []string {
	var out []string
	for _, s := range hosts() {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// ServiceAt returns the service at an address, "" if it is another's: a proxy, a reseller or a
// program of this machine, whose prices nobody knows.
func ServiceAt(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return ""
	}
	return hosts()[strings.ToLower(u.Hostname())]
}
