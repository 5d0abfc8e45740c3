package toolsearch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/workgroup"
)

// Bounds of what is asked of a model, and kept of its answers.
const (
	maxDigested  = 4 << 10 // bytes of a tool in which a change asks for another vector
	embedText    = 384     // bytes of these that a model sees, when secrets are concealed
	embedQuery   = 1 << 10 // bytes of a query
	embedBatch   = 64      // tools in a request
	embedTries   = 8       // failures of one fill; the next search begins again
	embedTimeout = time.Minute
	maxVectors   = 8192 // of tools: with 1,536 dimensions, 48 MiB
	maxAnswers   = 256  // vectors of queries
	maxAsking    = 8    // queries that a model works on at a time

	queryWait    = 500 * time.Millisecond
	queryTimeout = 30 * time.Second // a local model may have to be loaded first

	firstPause = time.Second
	mostPause  = 5 * time.Minute
	warnEvery  = time.Minute
)

// ErrRefused is wrapped by the error of a [Model] that refuses a text, which others may not have to
// wait for.
var ErrRefused = errors.New("the texts were refused")

// Model computes embeddings. Its values are comparable: the vectors of two that differ are not
// compared with each other.
type Model interface {
	// Embed returns one vector for each text. None is zero, and all have the same dimensions.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Config assembles [Embeddings].
type Config struct {
	// Model returns the model in use, nil for none. It must not block.
	Model func() Model
	// Conceal removes secrets from a text before a model sees it.
	Conceal func(string) string
	Log     zerolog.Logger
}

// Embeddings ranks tools by meaning, beside the words of an [Index]. Vectors of tools are computed
// in the background, after a search that lacks them, and kept in memory by the digest of their text.
// While most of them are missing, or the model does not answer, the words alone decide. The methods
// are safe for concurrent use; those of nil rank by words.
type Embeddings struct {
	cfg    Config
	start  func(f func(ctx context.Context)) bool // a goroutine, which Close waits for
	cancel context.CancelFunc
	work   workgroup.Group

	mu       sync.Mutex
	model    Model // whose vectors these are
	tools    vectors
	queries  vectors
	filling  bool
	asking   map[digest]chan struct{} // queries; closed when their model has answered
	err      error                    // of the last request
	failures int                      // in a row
	until    time.Time                // nothing is asked before
	warned   time.Time
}

// NewEmbeddings returns embeddings, which start nothing before a search.
func NewEmbeddings(cfg Config) *Embeddings {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Embeddings{cfg: cfg, cancel: cancel, asking: map[digest]chan struct{}{}}
	e.tools = vectors{max: maxVectors, keep: time.Hour, of: map[digest]*vector{}}
	e.queries = vectors{max: maxAnswers, of: map[digest]*vector{}}
	e.start = func(f func(context.Context)) bool { return e.work.Go(func() { f(ctx) }) }
	return e
}

// Close ends requests and waits for them. Searches rank by words from then on.
func (e *Embeddings) Close() {
	e.cancel()
	e.work.Close()
}

// Err returns the error of the last request for vectors, nil if it succeeded or no model is set.
func (e *Embeddings) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.model == nil {
		return nil
	}
	return e.err
}

// Search is [Index.Search], with the ranking by meaning fused in where there is one. It waits half a
// second at most for the vector of the query.
func (e *Embeddings) Search(ctx context.Context, x *Index, query string, limit int) []int {
	byMeaning := e.rank(ctx, x, query)
	if byMeaning == nil {
		return x.Search(query, limit)
	}
	return fuse(x.Search(query, max(limit, fused)), byMeaning, limit)
}

// rank returns the tools that are next to a query, best first; nil if that is not known.
func (e *Embeddings) rank(ctx context.Context, x *Index, query string) []int {
	if e == nil || x.Len() == 0 || strings.TrimSpace(query) == "" {
		return nil
	}
	m := e.cfg.Model()
	e.use(m)
	if m == nil {
		return nil
	}
	tools, ok := e.toolVectors(m, x)
	if !ok {
		return nil
	}
	q := e.queryVector(ctx, m, query)
	if q == nil {
		return nil
	}
	hits := make([]int, 0, len(tools))
	scores := make([]float32, len(tools))
	for i, v := range tools {
		if len(v) == 0 {
			continue
		}
		if len(v) != len(q) { // the service has another model under this name
			e.forget(m, errors.New("the vectors of tools and of the query have different dimensions"))
			return nil
		}
		hits = append(hits, i)
		for k := range v {
			scores[i] += v[k] * q[k]
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return hits[:min(len(hits), fused)]
}

// use drops the vectors of another model.
func (e *Embeddings) use(m Model) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.model != m {
		e.model, e.err, e.failures, e.until = m, nil, 0, time.Time{}
		clear(e.tools.of)
		clear(e.queries.of)
	}
}

// forget drops all vectors, and asks for none for a while.
func (e *Embeddings) forget(m Model, err error) {
	e.note(m, err, true)
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.tools.of)
	clear(e.queries.of)
}

// missing is a tool that has no vector yet.
type missing struct {
	digest digest
	tool   *Tool
}

// toolVectors returns the vectors of tools, and begins to get those that are missing. It reports
// false if these are more than a tenth: the others would displace them.
func (e *Embeddings) toolVectors(m Model, x *Index) ([][]float32, bool) {
	digests := x.digests()
	out := make([][]float32, len(digests))
	var lacks []missing
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, d := range digests {
		if v := e.tools.get(d, now); v != nil {
			out[i] = v.unit
		} else {
			lacks = append(lacks, missing{d, &x.tools[i]})
		}
	}
	if len(lacks) > 0 && !e.filling {
		e.filling = e.start(func(ctx context.Context) { e.fill(ctx, m, lacks) })
	}
	return out, len(lacks)*10 <= len(digests)
}

// fill gets vectors of tools, until a model has failed too often.
func (e *Embeddings) fill(ctx context.Context, m Model, lacks []missing) {
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.filling = false
	}()
	for tries := 0; len(lacks) > 0 && tries < embedTries && e.pause(ctx) && e.cfg.Model() == m; {
		n := min(embedBatch, len(lacks))
		more, err := e.embedTools(ctx, m, lacks[:n])
		if ctx.Err() != nil {
			return
		}
		e.note(m, err, true)
		switch {
		case err != nil:
			tries++
		case !more:
			return
		default:
			lacks = lacks[n:]
		}
	}
}

// pause waits until requests may be made. It reports false when none may be made any longer.
func (e *Embeddings) pause(ctx context.Context) bool {
	e.mu.Lock()
	wait := time.Until(e.until)
	e.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return true
	}
}

// embedTools gets and keeps the vectors of one batch. It reports whether there is room for more. One
// text that is refused, because it has too many tokens for instance, does not keep the others from
// getting theirs: the batch is halved until that text is alone.
func (e *Embeddings) embedTools(ctx context.Context, m Model, lacks []missing) (more bool, err error) {
	texts := make([]string, len(lacks))
	for i, l := range lacks {
		texts[i] = cut.Bytes(e.cfg.Conceal(l.tool.text()), embedText)
	}
	got, err := embed(ctx, m, embedTimeout, texts)
	switch {
	case errors.Is(err, ErrRefused) && len(lacks) > 1:
		half := len(lacks) / 2
		if more, err = e.embedTools(ctx, m, lacks[:half]); !more || err != nil {
			return more, err
		}
		return e.embedTools(ctx, m, lacks[half:])
	case errors.Is(err, ErrRefused):
		// A model that takes no other text either is wrong, and not the text.
		if _, err := embed(ctx, m, embedTimeout, []string{"tool"}); err != nil {
			return false, err
		}
		got = make([][]float32, 1) // no vector, and no further question
	case err != nil:
		return false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	more = e.model == m
	for i := 0; i < len(lacks) && more; i++ {
		more = e.tools.put(lacks[i].digest, got[i], time.Now())
	}
	return more, nil
}

// queryVector returns the vector of a query, nil if it does not come in time. A model that takes
// longer goes on, so that a later search has the vector: a local one may just be loaded.
func (e *Embeddings) queryVector(ctx context.Context, m Model, query string) []float32 {
	query = cut.Bytes(e.cfg.Conceal(query), embedQuery)
	d := digestOf(query)
	e.mu.Lock()
	if v := e.queries.get(d, time.Now()); v != nil {
		e.mu.Unlock()
		return v.unit
	}
	done := e.asking[d]
	if done == nil {
		if len(e.asking) >= maxAsking || time.Now().Before(e.until) {
			e.mu.Unlock()
			return nil
		}
		done = make(chan struct{})
		if !e.start(func(ctx context.Context) { e.ask(ctx, m, query, d, done) }) {
			e.mu.Unlock()
			return nil
		}
		e.asking[d] = done
	}
	e.mu.Unlock()
	late := time.NewTimer(queryWait)
	defer late.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-late.C:
		e.note(m, errors.New("the model did not answer within "+queryWait.String()), false)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := e.queries.get(d, time.Now()); v != nil && e.model == m {
		return v.unit
	}
	return nil
}

// ask gets and keeps the vector of a query.
func (e *Embeddings) ask(ctx context.Context, m Model, query string, d digest, done chan struct{}) {
	begun := time.Now()
	got, err := embed(ctx, m, queryTimeout, []string{query})
	if ctx.Err() == nil && !errors.Is(err, ErrRefused) && (err != nil || time.Since(begun) < queryWait) {
		e.note(m, err, true)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.model == m {
		e.queries.put(d, got[0], time.Now())
	}
	delete(e.asking, d)
	close(done)
}

func embed(ctx context.Context, m Model, timeout time.Duration, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return m.Embed(ctx, texts)
}

// note keeps how a request ended. After a failure that pauses, none is made for a while.
func (e *Embeddings) note(m Model, err error, pauses bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.model != m {
		return
	}
	e.err = err
	if err == nil {
		e.failures, e.until = 0, time.Time{}
		return
	}
	now := time.Now()
	if pauses {
		e.until = now.Add(backoff.Spread(backoff.Pause(firstPause, mostPause, e.failures), 1, 1.25))
		e.failures++
	}
	if now.Sub(e.warned) >= warnEvery {
		e.warned = now
		e.cfg.Log.Warn().Str("reason", e.cfg.Conceal(err.Error())).Msg("tools are found by their words alone: the embeddings of tools or queries are missing")
	}
}

// digest identifies a text.
type digest [sha256.Size]byte

func digestOf(text string) digest { return sha256.Sum256([]byte(text)) }
