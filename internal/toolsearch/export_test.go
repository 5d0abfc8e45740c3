package toolsearch

import "context"

// Fill gets the vectors of all tools, however long that takes.
func (e *Embeddings) Fill(ctx context.Context, x *Index) error {
	m := e.cfg.Model()
	e.use(m)
	var lacks []missing
	for i, d := range x.digests() {
		lacks = append(lacks, missing{d, &x.tools[i]})
	}
	e.fill(ctx, m, lacks)
	return e.Err()
}

// Ask gets the vector of a query, however long that takes.
func (e *Embeddings) Ask(ctx context.Context, query string) {
	e.ask(ctx, e.cfg.Model(), query, digestOf(query), make(chan struct{}))
}
