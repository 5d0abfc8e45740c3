package toolsearch

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Tool describes a tool by the texts of its definition.
type Tool struct {
	Server, Name, Title, Description string
	Arguments                        []Argument
}

// Argument is an argument of a tool.
type Argument struct{ Name, Description string }

// The fields of a tool.
const (
	inServer = iota
	inName
	inTitle
	inText
	inArgument
	inArgumentText
	fields
)

// weights says how much a word counts by its field, and shortens how much the length of the
// field counts against it, from 0 to 1. The numbers are from the queries of testdata that tune.
var (
	weights  = [fields]float64{inServer: 1, inName: 4, inTitle: 2, inText: 1, inArgument: 0.4, inArgumentText: 0.1}
	shortens = [fields]float64{inServer: 0, inName: 0.5, inTitle: 0.2, inText: 0.6, inArgument: 0.6, inArgumentText: 0.6}
)

const (
	saturates  = 2        // BM25's k1
	synonym    = 0.8      // what a synonym counts
	maxText    = 64 << 10 // bytes of a tool
	maxTerms   = 1024     // of a tool
	maxRepeats = 4        // of a term in a field; further ones only make the field longer
	maxQuery   = 32       // terms of a query
)

// Index finds tools.
type Index struct {
	size    int
	terms   map[string]*entry
	tools   []Tool
	digests func() []digest // of the tools' texts, for embeddings
}

// entry holds the tools that have a term.
type entry struct {
	rarity float32 // BM25's inverse document frequency
	tools  []posting
}

// posting is a tool that has a term, and its saturated frequency there.
type posting struct {
	tool      int32
	frequency float32
}

// counts are the occurrences of a term in the fields of one tool, up to maxRepeats in each.
type counts struct {
	term string
	n    [fields]uint8
}

// New returns an index of tools, which keeps them.
func New(tools []Tool) *Index {
	st := stemmer{}
	docs := make([][]counts, len(tools))
	lengths := make([][fields]float64, len(tools))
	var average [fields]float64
	df := map[string]float64{}
	for i := range tools {
		docs[i], lengths[i] = count(&tools[i], st)
		for f := range fields {
			average[f] += lengths[i][f] / float64(len(tools))
		}
		for _, c := range docs[i] {
			df[c.term]++
		}
	}
	x := &Index{size: len(tools), terms: make(map[string]*entry, len(df)), tools: tools}
	x.digests = sync.OnceValue(func() []digest {
		all := make([]digest, len(tools))
		for i := range tools {
			all[i] = digestOf(tools[i].text())
		}
		return all
	})
	for term, n := range df {
		x.terms[term] = &entry{rarity: float32(math.Log(1 + (float64(len(tools))-n+0.5)/(n+0.5)))}
	}
	for i, doc := range docs {
		for _, c := range doc {
			frequency := 0.0
			for f, n := range c.n {
				if n > 0 {
					frequency += weights[f] * float64(n) / (1 - shortens[f] + shortens[f]*lengths[i][f]/average[f])
				}
			}
			e := x.terms[c.term]
			e.tools = append(e.tools, posting{int32(i), float32(frequency * (saturates + 1) / (frequency + saturates))})
		}
	}
	return x
}

// count returns the terms of a tool, and the number of terms of each field.
func count(t *Tool, st stemmer) (doc []counts, lengths [fields]float64) {
	at := map[string]int{}
	left := maxText
	add := func(field int, text string) {
		text = text[:min(len(text), left)]
		left -= len(text)
		words().terms(text, st, func(term string) bool {
			i, ok := at[term]
			if !ok {
				if len(doc) == maxTerms {
					return false
				}
				i = len(doc)
				at[term] = i
				doc = append(doc, counts{term: term})
			}
			if n := &doc[i].n[field]; *n < maxRepeats {
				*n++
			}
			lengths[field]++
			return true
		})
	}
	add(inServer, t.Server)
	add(inName, t.Name)
	add(inTitle, t.Title)
	add(inText, t.Description)
	for _, a := range t.Arguments {
		add(inArgument, a.Name)
		add(inArgumentText, a.Description)
	}
	return doc, lengths
}

// Len returns the number of tools.
func (x *Index) Len() int { return x.size }

// Search returns the places, in the slice given to [New], of at most limit tools that fit a
// query, best first.
func (x *Index) Search(query string, limit int) []int {
	v := words()
	var asked []string
	v.terms(query[:min(len(query), maxText)], stemmer{}, func(term string) bool {
		if !slices.Contains(asked, term) {
			asked = append(asked, term)
		}
		return len(asked) < maxQuery
	})
	scores := make([]float32, x.size)
	best := make([]float32, x.size) // of one term of the query: a tool counts with one synonym
	for _, term := range asked {
		clear(best)
		rarity := float32(math.MaxFloat32)
		if e := x.terms[term]; e != nil {
			rarity = e.rarity
			for _, p := range e.tools {
				best[p.tool] = rarity * p.frequency
			}
		}
		for _, other := range v.synonyms[term] {
			if e := x.terms[other]; e != nil {
				// A synonym counts as rare as the word that it stands for, at most: to
				// "create" something is no more special where the tool says "register".
				weight := synonym * min(rarity, e.rarity)
				for _, p := range e.tools {
					best[p.tool] = max(best[p.tool], weight*p.frequency)
				}
			}
		}
		for i, score := range best {
			scores[i] += score
		}
	}
	var hits []int
	for i, score := range scores {
		if score > 0 {
			hits = append(hits, i)
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return hits[:min(max(limit, 0), len(hits))]
}
