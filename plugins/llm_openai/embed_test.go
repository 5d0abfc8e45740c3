package llm_openai_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/plugins/llm_openai"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

// loadEmbedder returns the plugin with one instance at a service.
func loadEmbedder(t *testing.T, url string) *provider.Plugin {
	t.Helper()
	p := llm_openai.New(provider.Env{Getenv: func(string) string { return "" }})
	providertest.New(t, p, instance("prod", url))
	return p
}

func vectors(all ...string) fakellm.Step {
	return fakellm.Step{Raw: `{"object":"list","data":[` + strings.Join(all, ",") + `],"model":"e1","usage":{"prompt_tokens":5,"total_tokens":5}}`}
}

func embedding(index int, numbers string) string {
	return fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%s]}`, index, numbers)
}

// Vectors come in the order of the texts, by their index.
func TestEmbed(t *testing.T) {
	s := providertest.Serve(t, vectors(embedding(1, "0,1"), embedding(0, "1,0")))
	got, err := loadEmbedder(t, s.URL).Embed(t.Context(), "prod", "e1", []string{"a", "b"})
	if err != nil || len(got) != 2 || !slices.Equal(got[0], []float32{1, 0}) || !slices.Equal(got[1], []float32{0, 1}) {
		t.Fatalf("Embed = %v, %v, want [1 0] and [0 1]", got, err)
	}
	r := s.Requests()[0]
	if r.Path != "/v1/embeddings" || r.Authorization != "Bearer sk-instance" || providertest.JSON(t, r.Body) != `{"input":["a","b"],"model":"e1"}` {
		t.Errorf("sent %s to %s with %q", providertest.JSON(t, r.Body), r.Path, r.Authorization)
	}
	s = providertest.Serve(t, vectors(`{"embedding":[1]}`, `{"embedding":[2]}`))
	if got, err := loadEmbedder(t, s.URL).Embed(t.Context(), "prod", "e1", []string{"a", "b"}); err != nil || got[1][0] != 2 {
		t.Errorf("without an index: %v, %v, want them in their order", got, err)
	}
}

// Answers are hostile.
func TestEmbedRefusesAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		step fakellm.Step
		want string
	}{
		"too few":             {vectors(embedding(0, "1")), "1 vectors for 2 texts"},
		"too many":            {vectors(embedding(0, "1"), embedding(1, "1"), embedding(2, "1")), "3 vectors for 2 texts"},
		"an index twice":      {vectors(embedding(0, "1"), embedding(0, "1")), "text 0"},
		"an index far away":   {vectors(embedding(0, "1"), embedding(9, "1")), "text 9"},
		"an index below zero": {vectors(embedding(0, "1"), embedding(-1, "1")), "text -1"},
		"other dimensions":    {vectors(embedding(0, "1,2"), embedding(1, "1")), "different dimensions"},
		"no dimensions":       {vectors(embedding(0, ""), embedding(1, "")), "0 dimensions"},
		"too many dimensions": {vectors(embedding(0, strings.TrimSuffix(strings.Repeat("1,", 4097), ",")), embedding(1, "1")), "4097 dimensions"},
		"NaN":                 {vectors(embedding(0, "NaN"), embedding(1, "1")), "not a list of vectors"},
		"infinite":            {vectors(embedding(0, "1e400"), embedding(1, "1")), "not a list of vectors"},
		"a zero vector":       {vectors(embedding(0, "0,0"), embedding(1, "1,1")), "zero"},
		"huge":                {vectors(embedding(0, strings.Repeat("1,", 9<<20)), embedding(1, "1")), "exceeds"},
		"a page":              {fakellm.Step{Raw: "<html>"}, "not a list of vectors"},
		"broken off":          {fakellm.Step{Raw: `{"data":[`, Cut: true}, "unexpected EOF"},
		"an error":            {fakellm.Step{Status: 404, Text: "no such model"}, "status 404: no such model"},
		"the key":             {fakellm.Step{Status: 401, Text: "sk-instance is unknown"}, "**** is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := loadEmbedder(t, providertest.Serve(t, c.step).URL).Embed(t.Context(), "prod", "e1", []string{"a", "b"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Embed = %.60v, %.200v, want an error with %q", got, err, c.want)
			}
		})
	}
	if _, err := loadEmbedder(t, "http://127.0.0.1:1").Embed(t.Context(), "other", "e1", []string{"a"}); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("an unknown provider: %v, want an error that names it", err)
	}
}
