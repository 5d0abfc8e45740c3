package models_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/models"
)

// MIS-3: the list that comes with yaya names its source and date, and knows the services.
func TestBundled(t *testing.T) {
	raw, err := os.ReadFile("models.json")
	if err != nil {
		t.Fatal(err)
	}
	l, err := models.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, l.Date); err != nil || !strings.Contains(l.Source, "models.dev") {
		t.Errorf("the list is from %q at %q, want a source and a date", l.Source, l.Date)
	}
	count := map[string]int{}
	seen := map[string]bool{}
	for _, m := range l.Models {
		count[m.Service]++
		if at := m.Service + "/" + m.ID; seen[at] {
			t.Errorf("%s stands there twice", at)
		} else {
			seen[at] = true
		}
		if m.Service == models.Local && m.Prices != nil {
			t.Errorf("%s has prices, and nobody sells it", m.ID)
		}
	}
	for _, s := range append(models.Services(), models.Local) {
		if count[s] == 0 {
			t.Errorf("the list has no model of %s", s)
		}
	}
}

// MIS-3: services, programs and people write the id of a model in several ways.
func TestFind(t *testing.T) {
	c := new(models.Catalogue)
	for _, tc := range []struct{ service, id, want string }{
		{"anthropic", "claude-sonnet-4-5", "anthropic claude-sonnet-4-5"},
		{"", "claude-sonnet-4-5-20990101", "anthropic claude-sonnet-4-5"},
		{"", "anthropic/claude-opus-4-6", "anthropic claude-opus-4-6"},
		{"openai", "gpt-4o-2024-11-20", "openai gpt-4o-2024-11-20"},
		{"openai", "gpt-4o-2099-01-01", "openai gpt-4o"},
		{"openai", "GPT-4o", "openai gpt-4o"},
		{"google", "models/gemini-2.5-pro", "google gemini-2.5-pro"},
		{"", "gpt-oss:20b", "local gpt-oss:20b"},
		{"", "openai/gpt-oss-20b", "local gpt-oss:20b"},
		{"", "gpt-oss-20b", "local gpt-oss:20b"},
		{"mistral", "mistral-nemo", "mistral mistral-nemo"},
		{"local", "mistral-nemo:latest", "local mistral-nemo"},
		{"", "gpt-4o-of-mine", ""},
		{"", "", ""},
		{"", strings.Repeat("a", 1000), ""},
	} {
		m, ok := c.Find(tc.service, tc.id)
		if got := strings.TrimSpace(m.Service + " " + m.ID); got != tc.want || ok != (tc.want != "") {
			t.Errorf("Find(%q, %.40q) = %q, want %q", tc.service, tc.id, got, tc.want)
		}
	}
}

func TestServiceAt(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1": "openai", "https://API.anthropic.com": "anthropic", "https://generativelanguage.googleapis.com/v1beta/openai": "google",
		"http://api.openai.com/v1": "", "https://api.openai.com.example.com": "", "http://127.0.0.1:11434/v1": "", "https://openrouter.ai/api/v1": "", "": "", "::": "",
	} {
		if got := models.ServiceAt(address); got != want {
			t.Errorf("ServiceAt(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	m := models.Model{Prices: &models.Prices{Input: 2, Output: 10, CacheRead: 0.2}, Tiers: []models.Tier{{Above: 1000, Prices: models.Prices{Input: 4, Output: 20}}}}
	for name, tc := range map[string]struct {
		m    models.Model
		u    event.Usage
		want float64
	}{
		"each kind":      {m, llm.NewUsage(100, 200, 300, 10), (2*100 + 0.2*200 + 2*300 + 10*10) / 1e6},
		"a long request": {m, llm.NewUsage(100, 1000, 0, 10), (4*1100 + 20*10) / 1e6},
		"the border":     {m, llm.NewUsage(1000, 0, 0, 0), 2 * 1000 / 1e6},
		"no prices":      {models.Model{}, llm.NewUsage(100, 0, 0, 10), 0},
		"hostile counts": {m, event.Usage{InputOther: -5, Output: -7}, 0},
	} {
		if got := tc.m.Cost(tc.u); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

// A list that somebody has changed is refused as a whole.
func TestParse(t *testing.T) {
	for name, one := range map[string]string{
		"no window":         `{"service":"a","id":"b","name":"c"}`,
		"tiny window":       `{"service":"a","id":"b","name":"c","window":1023}`,
		"tiny input":        `{"service":"a","id":"b","name":"c","window":2000,"input":1}`,
		"isolate":           `{"service":"a","id":"b","name":"\u2066c","window":2000}`,
		"negative window":   `{"service":"a","id":"b","name":"c","window":-1}`,
		"huge window":       `{"service":"a","id":"b","name":"c","window":100000001}`,
		"no id":             `{"service":"a","name":"c","window":2000}`,
		"negative price":    `{"service":"a","id":"b","name":"c","window":2000,"prices":{"input":-1,"output":1}}`,
		"huge price":        `{"service":"a","id":"b","name":"c","window":2000,"prices":{"input":1e9,"output":1}}`,
		"tiers go down":     `{"service":"a","id":"b","name":"c","window":2000,"tiers":[{"above":5,"input":1,"output":1},{"above":5,"input":1,"output":1}]}`,
		"unknown member":    `{"service":"a","id":"b","name":"c","window":2000,"context":1}`,
		"control character": `{"service":"a","id":"b\u001b[2J","name":"c","window":2000}`,
		"direction":         `{"service":"a","id":"b","name":"\u202ec","window":2000}`,
		"long name":         `{"service":"a","id":"b","name":"` + strings.Repeat("x", 201) + `","window":2000}`,
	} {
		if l, err := models.Parse([]byte(`{"source":"s","date":"d","models":[` + one + `]}`)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, l.Models)
		}
	}
	if _, err := models.Parse([]byte(`{"source":"s","date":"d","models":[]}`)); err == nil {
		t.Error("an empty list was taken")
	}
	if _, err := models.Parse(make([]byte, models.MaxList+1)); err == nil {
		t.Error("a list that is too long was taken")
	}
}

// sourced is a part of models.dev/api.json: two models that are taken, and others.
const sourced = `{"anthropic":{"id":"anthropic","env":["ANTHROPIC_API_KEY"],"models":{
 "claude-x":{"id":"claude-x","name":"Claude X","attachment":true,"reasoning":true,"tool_call":true,"modalities":{"input":["text","image","pdf"],"output":["text"]},"limit":{"context":200000,"output":64000},"cost":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75}},
 "claude-old":{"id":"claude-old","name":"Old","status":"deprecated","modalities":{"input":["text"],"output":["text"]},"limit":{"context":1,"output":1}},
 "broken":{"id":7},"nothing":null}},
"openai":{"models":{
 "gpt-x":{"id":"gpt-x","name":"GPT X","tool_call":true,"modalities":{"input":["text"],"output":["text"]},"limit":{"context":400000,"input":272000,"output":128000},"cost":{"input":1,"output":2,"tiers":[{"tier":{"size":272000},"input":2,"output":3,"cache_read":0.5}],"context_over_200k":{"input":2,"output":3}}},
 "gpt-image":{"id":"gpt-image","name":"Image","modalities":{"input":["text"],"output":["image"]},"limit":{"context":1000,"output":10}},
 "gpt-bad":{"id":"gpt-bad","name":"Bad","modalities":{"input":["text"],"output":["text"]},"limit":{"context":-5,"output":10}}}},
"stranger":{"models":{"m":{"id":"m","name":"M","modalities":{"input":["text"],"output":["text"]},"limit":{"context":1000,"output":10}}}}}`

func TestConvert(t *testing.T) {
	l, err := models.Convert([]byte(sourced), "here", "2026-01-02")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"source":"here","date":"2026-01-02","license":"MIT, models.dev","models":[` +
		`{"service":"anthropic","id":"claude-x","name":"Claude X","window":200000,"output":64000,"prices":{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75},"tools":true,"images":true,"reasoning":true},` +
		`{"service":"openai","id":"gpt-x","name":"GPT X","window":400000,"input":272000,"output":128000,"prices":{"input":1,"output":2},"tiers":[{"above":272000,"input":2,"output":3,"cache_read":0.5}],"tools":true}]}`
	if string(raw) != want {
		t.Errorf("got\n%s, want\n%s", raw, want)
	}
	for _, bad := range []string{`[]`, `{}`, `{"openai":{"models":{}}}`, `<html>`} {
		if _, err := models.Convert([]byte(bad), "here", "now"); err == nil {
			t.Errorf("Convert(%s) = nil error, want one", bad)
		}
	}

	c := new(models.Catalogue)
	if err := c.Use(l); err != nil {
		t.Fatal(err)
	}
	if m, ok := c.Find("openai", "gpt-x"); !ok || m.Room() != 272000 {
		t.Errorf("got %+v, want the model of the new list, with room for 272000 tokens", m)
	}
	if _, ok := c.Find("", "gpt-oss:20b"); !ok {
		t.Error("a local model is gone, which the new list does not have")
	}
	if err := c.Use(models.List{}); err == nil {
		t.Error("an empty list was taken")
	}
}

// MIS-3: the settings of a provider count more than the catalogue, and prices hold at their service
// alone.
func TestSettings(t *testing.T) {
	c := new(models.Catalogue)
	for name, tc := range map[string]struct {
		settings, model, service string
		want                     string // window, pictures, prices
	}{
		"the service":       {`{}`, "claude-sonnet-4-5", "anthropic", "200000 true &{3 15 0.3 3.75}"},
		"elsewhere":         {`{}`, "claude-sonnet-4-5", "", "200000 true <nil>"},
		"less than window":  {`{}`, "gpt-5", "", "272000 true <nil>"},
		"no pictures":       {`{}`, "o3-mini", "", "200000 false <nil>"},
		"unknown":           {`{}`, "mine", "openai", "0 true <nil>"},
		"window":            {`{"context_window":5000}`, "gpt-5", "openai", "5000 true &{1.25 10 0.125 0}"},
		"pictures":          {`{"images":true}`, "o3-mini", "", "200000 true <nil>"},
		"no pictures known": {`{"images":false}`, "mine", "", "0 false <nil>"},
		"prices":            {`{"input_price":1,"output_price":2}`, "gpt-5", "openai", "272000 true &{1 2 0 0}"},
		"cached":            {`{"cache_read_price":0.5,"cache_write_price":7}`, "gpt-5", "openai", "272000 true &{1.25 10 0.5 7}"},
		"odd fields":        {`{"context_window":"x","images":3,"input_price":"1"}`, "gpt-5", "openai", "272000 true &{1.25 10 0.125 0}"},
	} {
		var i config.Instance
		if err := json.Unmarshal([]byte(tc.settings), &i.Config); err != nil {
			t.Fatal(err)
		}
		f := c.Of(i, tc.model, tc.service)
		if got := fmt.Sprintf("%d %v %v", f.Room(), f.Pictures, f.Prices); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
