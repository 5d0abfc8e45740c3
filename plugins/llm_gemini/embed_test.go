package llm_gemini_test

import (
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/plugins/llm_gemini"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

func TestEmbed(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Raw: `{"embeddings":[{"values":[0.01,-0.02]},{"values":[0.5,0.25]}]}`})
	p := llm_gemini.New(provider.Env{Getenv: func(string) string { return "" }})
	providertest.New(t, p, map[string]string{"providers.work.plugin": `"llm-gemini"`, "providers.work.base_url": `"` + s.URL + `/v1beta/"`, "providers.work.api_key": `"AIza-instance"`})
	got, err := p.Embed(t.Context(), "work", "models/gemini-embedding-001", []string{"a", "b"})
	if err != nil || len(got) != 2 || got[1][0] != 0.5 {
		t.Fatalf("Embed = %v, %v, want two vectors", got, err)
	}
	r := s.Requests()[0]
	want := `{"requests":[{"content":{"parts":[{"text":"a"}]},"model":"models/gemini-embedding-001"},{"content":{"parts":[{"text":"b"}]},"model":"models/gemini-embedding-001"}]}`
	if r.Path != "/v1beta/models/gemini-embedding-001:batchEmbedContents" || r.Header.Get("X-Goog-Api-Key") != "AIza-instance" || providertest.JSON(t, r.Body) != want {
		t.Errorf("sent %s to %s with %q, want %s", providertest.JSON(t, r.Body), r.Path, r.Header.Get("X-Goog-Api-Key"), want)
	}
}
