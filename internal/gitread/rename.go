package gitread

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"path"
	"slices"
	"strings"
)

// Bounds of the search for renamed files.
const (
	maxRenames    = 100 // files on either side whose contents are compared
	maxSimilar    = 1 << 20
	minSimilarity = 0.5 // as git does
)

type side struct {
	path string
	treeEntry
}

// renames pairs files removed from the index with files added to it, if their
// contents are equal or similar.
func (r *Repo) renames(ctx context.Context, c *changes) error {
	var gone, come []side
	for p, ch := range c.files {
		switch ch.x {
		case 'D':
			if ch.y != 'D' { // not a conflict
				gone = append(gone, side{p, ch.old})
			}
		case 'A':
			if e := c.ix.find(p); e != nil {
				come = append(come, side{p, treeEntry{mode: e.mode, id: e.id}})
			}
		}
	}
	for _, s := range [][]side{gone, come} {
		slices.SortFunc(s, func(a, b side) int { return strings.Compare(a.path, b.path) })
	}
	join := func(from, to side) {
		c.files[to.path].x, c.files[to.path].from, c.files[to.path].old = 'R', from.path, from.treeEntry
		delete(c.files, from.path)
	}
	come = slices.DeleteFunc(come, func(to side) bool {
		best := -1
		for n, from := range gone {
			if from.id == to.id && from.mode&modeType == to.mode&modeType && (best < 0 || path.Base(from.path) == path.Base(to.path) && path.Base(gone[best].path) != path.Base(to.path)) {
				best = n
			}
		}
		if best < 0 {
			return false
		}
		join(gone[best], to)
		gone = slices.Delete(gone, best, best+1)
		return true
	})
	if len(gone) == 0 || len(come) == 0 || len(gone) > maxRenames || len(come) > maxRenames {
		return nil
	}
	type pair struct {
		from, to int
		score    float64
	}
	var pairs []pair
	left, err := r.sketches(ctx, gone)
	if err != nil {
		return err
	}
	right, err := r.sketches(ctx, come)
	if err != nil {
		return err
	}
	for to := range come {
		for from := range gone {
			if gone[from].mode&modeType != modeRegular || come[to].mode&modeType != modeRegular {
				continue
			}
			if score := left[from].similar(right[to]); score >= minSimilarity {
				if path.Base(gone[from].path) == path.Base(come[to].path) {
					score += 1e-6
				}
				pairs = append(pairs, pair{from, to, score})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	usedFrom, usedTo := map[int]bool{}, map[int]bool{}
	for _, p := range pairs {
		if !usedFrom[p.from] && !usedTo[p.to] {
			usedFrom[p.from], usedTo[p.to] = true, true
			join(gone[p.from], come[p.to])
		}
	}
	return nil
}

// sketch counts the bytes of a content by its lines, or parts of 64 bytes.
type sketch struct {
	size  int
	parts map[uint64]int
}

var seed = maphash.MakeSeed()

func (r *Repo) sketches(ctx context.Context, files []side) ([]sketch, error) {
	out := make([]sketch, len(files))
	for n, f := range files {
		if f.mode&modeType != modeRegular {
			continue
		}
		data, err := r.store.get(ctx, f.id, kindBlob)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			continue // it is not similar to anything
		}
		if len(data) > maxSimilar {
			continue
		}
		out[n] = sketch{len(data), map[uint64]int{}}
		text := bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0
		for len(data) > 0 {
			end := min(64, len(data))
			if nl := bytes.IndexByte(data[:end], '\n'); nl >= 0 {
				end = nl + 1
			}
			part := data[:end]
			data = data[end:]
			if text {
				part = bytes.ReplaceAll(part, []byte("\r\n"), []byte("\n"))
			}
			out[n].parts[maphash.Bytes(seed, part)] += len(part)
		}
	}
	return out, nil
}

// similar returns the share of the larger content that both have in common.
func (p sketch) similar(q sketch) float64 {
	if p.size == 0 || q.size == 0 {
		return 0
	}
	common := 0
	for part, n := range p.parts {
		common += min(n, q.parts[part])
	}
	return float64(common) / float64(max(p.size, q.size))
}
