package llm_openai //nolint:staticcheck // see openai.go

import (
	"context"
	"fmt"

	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// Embed implements [llm.Embedder]. The SDK cannot tell an index that is missing from 0.
func (c *client) Embed(ctx context.Context, model string, texts []string) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int      `json:"index"` // some services leave it out, and keep the order
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	request := map[string]any{"model": model, "input": texts}
	if err := provider.PostForVectors(ctx, c.http, c.base+"/embeddings", map[string]string{"Authorization": llmhttp.Bearer(c.key)}, request, &answer); err != nil {
		return nil, err
	}
	out := make([][]float32, len(answer.Data))
	for i, d := range answer.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= len(out) || out[i] != nil {
			return nil, fmt.Errorf("the answer has a vector for text %d, which is not there or has one", i)
		}
		out[i] = d.Embedding
	}
	return out, nil
}
