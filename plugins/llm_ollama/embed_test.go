package llm_ollama_test

import (
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/plugins/llm_ollama"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

func TestEmbed(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Raw: `{"model":"all-minilm","embeddings":[[0.01,-0.02],[0.5,0.25]],"total_duration":14143917,"load_duration":1019500,"prompt_eval_count":8}`})
	p := llm_ollama.New(provider.Env{Getenv: func(string) string { return "" }})
	providertest.New(t, p, map[string]string{"providers.local.plugin": `"llm-ollama"`, "providers.local.base_url": `"` + s.URL + `/v1"`})
	got, err := p.Embed(t.Context(), "local", "all-minilm", []string{"a", "b"})
	if err != nil || len(got) != 2 || got[1][0] != 0.5 {
		t.Fatalf("Embed = %v, %v, want two vectors", got, err)
	}
	if r := s.Requests()[0]; r.Path != "/api/embed" || providertest.JSON(t, r.Body) != `{"input":["a","b"],"model":"all-minilm"}` {
		t.Errorf("sent %s to %s", providertest.JSON(t, r.Body), r.Path)
	}
}
