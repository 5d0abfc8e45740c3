package llm_ollama //nolint:staticcheck // see ollama.go

import (
	"context"

	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// Embed implements [llm.Embedder]. The server cuts a text that is longer than the model's window.
func (c *client) Embed(ctx context.Context, model string, texts []string) ([][]float32, error) {
	var answer struct {
		Embeddings [][]float32 `json:"embeddings"`
	}
	request := map[string]any{"model": model, "input": texts}
	err := provider.PostForVectors(ctx, c.http, c.base+"/api/embed", map[string]string{"Authorization": llmhttp.Bearer(c.key)}, request, &answer)
	return answer.Embeddings, err
}
