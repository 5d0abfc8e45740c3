package llm_gemini //nolint:staticcheck // see gemini.go

import (
	"context"
	"strings"

	"github.com/yaya-ai/yaya/plugins/provider"
)

// Embed implements [llm.Embedder]. The SDK panics when an answer has another shape than the
// service's, and passes each number through values of any type.
func (c *client) Embed(ctx context.Context, model string, texts []string) ([][]float32, error) {
	type (
		part struct {
			Text string `json:"text"`
		}
		content struct {
			Parts []part `json:"parts"`
		}
		request struct {
			Model   string  `json:"model"`
			Content content `json:"content"`
		}
	)
	model = strings.TrimPrefix(model, "models/")
	var all struct {
		Requests []request `json:"requests"`
	}
	for _, text := range texts {
		all.Requests = append(all.Requests, request{"models/" + model, content{[]part{{text}}}})
	}
	var answer struct {
		Embeddings []struct {
			Values []float32 `json:"values"`
		} `json:"embeddings"`
	}
	address := c.base + "/v1beta/models/" + model + ":batchEmbedContents"
	if err := provider.PostForVectors(ctx, c.http, address, map[string]string{"X-Goog-Api-Key": c.key}, all, &answer); err != nil {
		return nil, err
	}
	var out [][]float32
	for _, e := range answer.Embeddings {
		out = append(out, e.Values)
	}
	return out, nil
}
