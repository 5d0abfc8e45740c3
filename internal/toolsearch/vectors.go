package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
)

// vectors keeps those that were used last.
type vectors struct {
	max  int
	keep time.Duration // how long an unused vector keeps its place when all places are taken
	of   map[digest]*vector
}

// vector has length 1. That of a text that a model refuses has no dimensions.
type vector struct {
	unit []float32
	used time.Time
}

func (s *vectors) get(d digest, now time.Time) *vector {
	v := s.of[d]
	if v != nil {
		v.used = now
	}
	return v
}

// put reports whether there was room. A vector that is still in use is not displaced: if there are
// more tools than places, they would take turns, and each turn costs a request.
func (s *vectors) put(d digest, v []float32, now time.Time) bool {
	if s.of[d] == nil && len(s.of) >= s.max {
		var oldest digest
		first := true
		for other, v := range s.of {
			if first || v.used.Before(s.of[oldest].used) {
				oldest, first = other, false
			}
		}
		if now.Sub(s.of[oldest].used) < s.keep {
			return false
		}
		delete(s.of, oldest)
	}
	s.of[d] = &vector{unit(v), now}
	return true
}

// unit returns a vector of the same direction and length 1.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / math.Sqrt(sum))
	}
	return out
}

// text returns the text that a model embeds for a tool: its names and the beginning of its description.
// The rest costs more than it helps (see docs/adr/0091).
func (t *Tool) text() string {
	var words []string
	split(cut.Bytes(t.Name, maxDigested), func(w string) { words = append(words, w) })
	return cut.Bytes(t.Server+": "+strings.Join(words, " ")+". "+cmp.Or(t.Description, t.Title), maxDigested)
}

// Fusion of the two rankings, by reciprocal rank. The numbers are from the queries of testdata that
// tune.
const (
	fused         = 100 // places of a ranking that count
	rankOffset    = 10
	meaningWeight = 0.5
)

// fuse returns the places of two rankings, best first.
func fuse(byWords, byMeaning []int, limit int) []int {
	scores := map[int]float64{}
	var hits []int
	add := func(ranking []int, weight float64) {
		for rank, place := range ranking {
			if _, ok := scores[place]; !ok {
				hits = append(hits, place)
			}
			scores[place] += weight / float64(rankOffset+rank+1)
		}
	}
	add(byWords, 1)
	add(byMeaning, meaningWeight)
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return hits[:min(max(limit, 0), len(hits))]
}
