package gateway

import (
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// CallStats sums up the calls of tools, since the start.
type CallStats struct {
	Total, Errors float64
	P50, P95      time.Duration // within a bucket, as if its calls were spread evenly
}

// Stats holds the metrics for people.
type Stats struct {
	All       CallStats
	Providers map[string]CallStats // by provider
	Values    map[string]float64   // of what has one value and no labels, by name
	TokensIn  float64              // that models were sent, cached ones among them
	TokensOut float64              // that models have written
}

// Stats reads the metrics.
func (m *Metrics) Stats() (Stats, error) {
	families, err := m.reg.Gather()
	if err != nil {
		return Stats{}, err
	}
	out := Stats{Providers: map[string]CallStats{}, Values: map[string]float64{}}
	all := new(dto.Histogram)
	for _, f := range families {
		for _, x := range f.GetMetric() {
			provider := label(x, "provider")
			switch {
			case f.GetName() == "yaya_tool_calls_total":
				s, n := out.Providers[provider], x.GetCounter().GetValue()
				s.Total += n
				out.All.Total += n
				if label(x, "outcome") != "ok" {
					s.Errors += n
					out.All.Errors += n
				}
				out.Providers[provider] = s
			case f.GetName() == "yaya_tool_call_seconds":
				s := out.Providers[provider]
				s.P50, s.P95 = quantile(x.GetHistogram(), .5), quantile(x.GetHistogram(), .95)
				out.Providers[provider] = s
				add(all, x.GetHistogram())
			case f.GetName() == "yaya_model_tokens_total" && label(x, "kind") == "output":
				out.TokensOut += x.GetCounter().GetValue()
			case f.GetName() == "yaya_model_tokens_total":
				out.TokensIn += x.GetCounter().GetValue()
			case len(x.GetLabel()) == 0 && x.Gauge != nil:
				out.Values[f.GetName()] = x.GetGauge().GetValue()
			case len(x.GetLabel()) == 0 && x.Counter != nil:
				out.Values[f.GetName()] = x.GetCounter().GetValue()
			}
		}
	}
	out.All.P50, out.All.P95 = quantile(all, .5), quantile(all, .95)
	return out, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// add adds a histogram to another one with the same buckets.
func add(sum, h *dto.Histogram) {
	n := sum.GetSampleCount() + h.GetSampleCount()
	sum.SampleCount = &n
	if len(sum.GetBucket()) == 0 {
		for _, b := range h.GetBucket() {
			count, bound := b.GetCumulativeCount(), b.GetUpperBound()
			sum.Bucket = append(sum.Bucket, &dto.Bucket{CumulativeCount: &count, UpperBound: &bound})
		}
		return
	}
	for i, b := range h.GetBucket() {
		*sum.Bucket[i].CumulativeCount += b.GetCumulativeCount()
	}
}

// quantile estimates a quantile of a histogram of seconds.
func quantile(h *dto.Histogram, q float64) time.Duration {
	rank := q * float64(h.GetSampleCount())
	if rank == 0 {
		return 0
	}
	below, lower := 0.0, 0.0
	for _, b := range h.GetBucket() {
		count, upper := float64(b.GetCumulativeCount()), b.GetUpperBound()
		if count >= rank && count > below {
			if math.IsInf(upper, 1) {
				break
			}
			return time.Duration((lower + (upper-lower)*(rank-below)/(count-below)) * float64(time.Second))
		}
		below, lower = count, upper
	}
	return time.Duration(lower * float64(time.Second)) // beyond the last bucket
}
