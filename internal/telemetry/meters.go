package telemetry

import (
	"context"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meters are the instruments.
type meters struct {
	server, client meter
	model          metric.Float64Histogram
	tokens         metric.Int64Histogram
	tool, agent    metric.Float64Histogram
}

func newMeters(m metric.Meter) (*meters, error) {
	var out meters
	for _, h := range []struct {
		to      *metric.Float64Histogram
		name    string
		about   string
		buckets []float64
	}{
		{&out.server.took, meterServer, "Time of requests that MCP clients made.", bucketsMCP},
		{&out.client.took, meterClient, "Time of requests to MCP servers.", bucketsMCP},
		{&out.model, meterModel, "Time of model calls.", bucketsModel},
		{&out.tool, meterTool, "Time of agents' tool calls.", bucketsMCP},
		{&out.agent, meterAgent, "Time of agents' turns.", bucketsMCP},
	} {
		var err error
		if *h.to, err = m.Float64Histogram(h.name, metric.WithUnit("s"), metric.WithDescription(h.about), metric.WithExplicitBucketBoundaries(h.buckets...)); err != nil {
			return nil, err
		}
	}
	var err error
	out.tokens, err = m.Int64Histogram(meterTokens, metric.WithUnit("{token}"), metric.WithDescription("Tokens of model calls."), metric.WithExplicitBucketBoundaries(bucketsTokens...))
	return &out, err
}

// maxSets bounds the combinations of attributes that a meter tells apart by their target; of
// others it keeps the method and the failure.
const (
	maxSets    = 1000
	maxMethods = 200 // more sets without a target
)

// meter is a histogram of requests. It remembers their attributes: to build and hash them takes
// longer than the observation.
type meter struct {
	took metric.Float64Histogram

	mu   sync.RWMutex
	sets map[setKey][]metric.RecordOption
}

// setKey holds the values that determine the attributes of a metric.
type setKey struct{ method, target, server, transport, failure string }

func (m *meter) record(ctx context.Context, seconds float64, c Call, failure string) {
	if c.Method != methodCallTool && c.Method != methodPrompt {
		c.Target = "" // URIs are without number
	}
	key := setKey{c.Method, c.Target, c.Server, c.Transport, failure}
	m.mu.RLock()
	o := m.sets[key]
	m.mu.RUnlock()
	if o == nil {
		o = m.remember(key, c, failure)
	}
	m.took.Record(ctx, seconds, o...)
}

// remember builds the attributes of a request, and keeps them.
func (m *meter) remember(key setKey, c Call, failure string) []metric.RecordOption {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sets) >= maxSets {
		c.Target, c.Server = "", ""
	}
	// A key outlives the request, whose memory its texts may be.
	c.Method, c.Target, c.Server = strings.Clone(c.Method), strings.Clone(c.Target), strings.Clone(c.Server)
	key.method, key.target, key.server = c.Method, c.Target, c.Server
	if o := m.sets[key]; o != nil { // without the target
		return o
	}
	attrs := c.attributes(false)
	if failure != "" {
		attrs = append(attrs, attribute.String(attrErrorType, failure))
	}
	o := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
	if len(m.sets) < maxSets+maxMethods {
		if m.sets == nil {
			m.sets = map[setKey][]metric.RecordOption{}
		}
		m.sets[key] = o
	}
	return o
}
