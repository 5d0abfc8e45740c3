package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// Bounds of the answer of a service that embeds texts.
const (
	maxDimensions = 4096
	maxVectors    = 16 << 20 // bytes: 64 vectors of 4,096 numbers with 20 digits take 6 MiB
)

// Embed returns one vector for each text, by a model of an instance. All vectors have the same
// dimensions, at most 4,096, and none is zero.
func (p *Plugin) Embed(ctx context.Context, id, model string, texts []string) ([][]float32, error) {
	i, ok := p.clients.All()[id]
	if !ok {
		return nil, fmt.Errorf("the provider %q is not loaded", id)
	}
	if i.missing != nil {
		return nil, i.missing
	}
	e, ok := i.client.(llm.Embedder)
	if !ok {
		return nil, fmt.Errorf("the provider %q cannot embed: %s has no embeddings", id, p.service.Name)
	}
	vectors, err := e.Embed(ctx, model, texts)
	if err != nil {
		return nil, Failed(err)
	}
	if err := checkVectors(vectors, len(texts)); err != nil {
		return nil, fmt.Errorf("the answer of the provider %q, model %q: %w", id, model, err)
	}
	return vectors, nil
}

func checkVectors(vectors [][]float32, n int) error {
	if len(vectors) != n {
		return fmt.Errorf("it has %d vectors for %d texts", len(vectors), n)
	}
	for _, v := range vectors {
		switch {
		case len(v) == 0 || len(v) > maxDimensions:
			return fmt.Errorf("a vector has %d dimensions, not 1 to %d", len(v), maxDimensions)
		case len(v) != len(vectors[0]):
			return fmt.Errorf("its vectors have different dimensions, %d and %d", len(vectors[0]), len(v))
		}
		sum := 0.0
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return errors.New("a vector is zero, or not finite")
		}
	}
	return nil
}

// PostForVectors sends a request for embeddings as JSON, and decodes the response into out.
func PostForVectors(ctx context.Context, c *llmhttp.Client, address string, header map[string]string, request, out any) error {
	body, err := c.Post(ctx, address, header, request)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(body, maxVectors+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return err
	}
	if len(raw) > maxVectors {
		return fmt.Errorf("the answer exceeds %d bytes", maxVectors)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("the answer is not a list of vectors: %w", err)
	}
	return nil
}
