package toolsearch

import (
	"math"
	"slices"
	"testing"
	"time"
)

// A vector in use is not displaced; one that nobody has used for a while is.
func TestVectorsAreBounded(t *testing.T) {
	now := time.Now()
	s := vectors{max: 2, keep: time.Hour, of: map[digest]*vector{}}
	s.put(digest{1}, []float32{3, 4}, now)
	s.put(digest{2}, []float32{1}, now)
	if s.put(digest{3}, []float32{1}, now) {
		t.Error("a third vector displaced one in use, want no room")
	}
	s.get(digest{1}, now.Add(time.Hour))
	if !s.put(digest{3}, []float32{1}, now.Add(time.Hour)) || s.of[digest{2}] != nil || s.of[digest{1}] == nil || len(s.of) != 2 {
		t.Errorf("an hour later there are %v, want 1 and 3", s.of)
	}
	if got := s.of[digest{1}].unit; math.Abs(float64(got[0])-0.6) > 1e-6 || math.Abs(float64(got[1])-0.8) > 1e-6 {
		t.Errorf("unit(3, 4) = %v, want 0.6, 0.8", got)
	}
}

func TestFuse(t *testing.T) {
	for _, c := range []struct {
		name           string
		words, meaning []int
		limit          int
		want           []int
	}{
		{"in both rankings", []int{1, 2, 3}, []int{4, 2, 5}, 1, []int{2}},
		{"by words alone", []int{7}, nil, 5, []int{7}},
		{"by meaning alone", nil, []int{7}, 5, []int{7}},
		{"no limit below zero", []int{7}, []int{8}, -1, []int{}},
	} {
		if got := fuse(c.words, c.meaning, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
