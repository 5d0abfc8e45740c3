package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/toolsearch"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/llm_gemini"
	"github.com/yaya-ai/yaya/plugins/llm_ollama"
	"github.com/yaya-ai/yaya/plugins/llm_openai"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// searchEmbeddings is the setting that names the model by which search_tools ranks tools, beside
// their words.
const searchEmbeddings = "plugin.mcp_bridge.search_embeddings"

// embedders are the plugins whose services compute embeddings.
var embedders = []string{llm_openai.Name, llm_ollama.Name, llm_gemini.Name}

// embeddingsSetting refuses a model that cannot embed.
func embeddingsSetting(s *config.Store, key string, v json.RawMessage) error {
	if key != searchEmbeddings {
		return nil
	}
	var name string
	err := json.Unmarshal(v, &name)
	if err == nil && name != "" {
		_, _, err = embedder(s, name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// embedder returns the provider and the model that a value of the setting names.
func embedder(s *config.Store, name string) (*config.Instance, string, error) {
	id, model, _ := strings.Cut(name, "/")
	if model == "" {
		return nil, "", fmt.Errorf("%.80q is not ID/MODEL, the id of a provider and a model for embeddings, such as openai/text-embedding-3-small", name)
	}
	i := s.Providers().GetInstance(id)
	switch {
	case i == nil:
		return nil, "", fmt.Errorf("there is no provider %.80q (yaya provider list)", id)
	case !slices.Contains(embedders, i.Plugin):
		return nil, "", fmt.Errorf("the provider %q has no embeddings: it uses the plugin %s, and providers with %s have them", id, i.Plugin, strings.Join(embedders, ", "))
	}
	return i, model, nil
}

// embedding is a model of a provider. It implements [toolsearch.Model].
type embedding struct {
	plugin             *provider.Plugin
	id, model, address string // another address is another model
}

// Embed implements [toolsearch.Model].
func (m embedding) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := m.plugin.Embed(ctx, m.id, m.model, texts)
	if e, ok := errors.AsType[*llm.Error](err); ok && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, e.StatusCode) {
		return nil, fmt.Errorf("%w: %w", toolsearch.ErrRefused, err)
	}
	return vectors, err
}

// embedding returns the model that the settings name, nil if they name none or it cannot be used.
func (c *core) embedding(s *config.Store) (toolsearch.Model, error) {
	name := s.Text(searchEmbeddings)
	if name == "" {
		return nil, nil //nolint:nilnil // nil stands for words alone
	}
	i, model, err := embedder(s, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", searchEmbeddings, err)
	}
	for _, p := range c.services {
		if p.Manifest().Name == i.Plugin {
			return embedding{p, i.ID, model, cmp.Or(i.Text("base_url"), s.Text("plugin."+config.Namespace(i.Plugin)+".base_url"))}, nil
		}
	}
	return nil, fmt.Errorf("%s: no providers are loaded here", searchEmbeddings)
}

// newEmbeddings returns what ranks tools by meaning.
func (b *bridge) newEmbeddings() {
	at := b.core.st.at
	b.embedding = config.Derive(at.settings, b.core.embedding)
	b.embeddings = toolsearch.NewEmbeddings(toolsearch.Config{
		Model: func() toolsearch.Model {
			m, _ := b.embedding() // doctor says why there is none
			return m
		},
		Conceal: at.secrets.ConcealString, Log: at.log,
	})
}

// embeddingsDiagnosis says why tools are found by words alone that should be found by meaning.
func (b *bridge) embeddingsDiagnosis() (plugin.Diagnosis, bool) {
	_, err := b.embedding()
	if err == nil {
		if err = b.embeddings.Err(); err == nil {
			return plugin.Diagnosis{}, false
		}
		err = fmt.Errorf("%s: the last request failed: %w", searchEmbeddings, err)
	}
	return plugin.Diagnosis{Plugin: checkSearch, HealthReport: plugin.HealthReport{
		Status: plugin.Degraded, Summary: "tools are found by their words alone: " + cut.Text(b.core.st.at.secrets.ConcealString(err.Error()), 400),
	}}, true
}
