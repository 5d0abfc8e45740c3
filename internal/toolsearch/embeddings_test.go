package toolsearch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/toolsearch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a model that knows three meanings.
type fake struct {
	mu       sync.Mutex
	requests [][]string
	refuse   func(ctx context.Context, texts []string) error
	more     int // dimensions
}

func (f *fake) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	f.mu.Lock()
	f.requests = append(f.requests, slices.Clone(texts))
	refuse, more := f.refuse, f.more
	f.mu.Unlock()
	if refuse != nil {
		if err := refuse(ctx, texts); err != nil {
			return nil, err
		}
	}
	var out [][]float32
	for _, text := range texts {
		v := make([]float32, 3+more)
		v[2] = 0.1
		for i, words := range []string{"umbrella rain forecast", "owe invoice debt"} {
			for w := range strings.FieldsSeq(words) {
				v[i] += float32(strings.Count(strings.ToLower(text), w))
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// sent returns the texts that were sent since it was last called.
func (f *fake) sent() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		all = append(all, r...)
	}
	f.requests = nil
	return all
}

func (f *fake) set(refuse func(ctx context.Context, texts []string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

var tools = []toolsearch.Tool{
	{Server: "weather", Name: "get_forecast", Description: "Rain and sun of the next days."},
	{Server: "books", Name: "list_invoices", Description: "Invoices that are open."},
	{Server: "fs", Name: "read_file", Description: "Reads a file."},
}

const (
	dry   = "do I need an umbrella"
	debts = "unpaid debt"
)

// buffer is a log that is read while others write.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// with runs a test in fake time, with embeddings by a model that may be nil.
func with(t *testing.T, model toolsearch.Model, log *buffer, f func(t *testing.T, e *toolsearch.Embeddings, first func(x *toolsearch.Index, query string) string)) {
	synctest.Test(t, func(t *testing.T) {
		cfg := toolsearch.Config{Model: func() toolsearch.Model { return model }, Conceal: func(s string) string { return strings.ReplaceAll(s, "hunter2", "****") }}
		if log != nil {
			cfg.Log = zerolog.New(log)
		}
		e := toolsearch.NewEmbeddings(cfg)
		defer e.Close()
		f(t, e, func(x *toolsearch.Index, query string) string {
			t.Helper()
			return fmt.Sprint(e.Search(t.Context(), x, query, 1))
		})
	})
}

// The first search finds by words, and gets the vectors; the next finds by meaning. Each text is
// sent once.
func TestEmbeddings(t *testing.T) {
	m := new(fake)
	with(t, m, nil, func(t *testing.T, e *toolsearch.Embeddings, first func(*toolsearch.Index, string) string) {
		x := toolsearch.New(tools)
		if got := first(x, dry); got != "[]" {
			t.Errorf("before there are vectors: %q finds %s, want nothing", dry, got)
		}
		synctest.Wait()
		if got := len(m.sent()); got != len(tools) {
			t.Errorf("sent %d texts after the first search, want those of %d tools", got, len(tools))
		}
		for range 2 {
			if got := first(x, dry); got != "[0]" {
				t.Errorf("%q finds %s, want the forecast [0]", dry, got)
			}
		}
		if got := m.sent(); !slices.Equal(got, []string{dry}) {
			t.Errorf("two equal searches sent %q, want the query once", got)
		}
		// Another profile sees less, and needs nothing else.
		part := toolsearch.New(tools[1:])
		if got := e.Search(t.Context(), part, dry, 5); slices.Contains(got, len(tools)-1) || len(got) > len(tools)-1 {
			t.Errorf("a search in two tools finds %v", got)
		}
		changed := slices.Clone(tools)
		changed[2].Description = "Reads a file. password hunter2"
		first(toolsearch.New(changed), debts)
		synctest.Wait()
		got := m.sent()
		if i := slices.Index(got, debts); i >= 0 {
			got = slices.Delete(got, i, i+1)
		}
		if len(got) != 1 || !strings.Contains(got[0], "password ****") {
			t.Errorf("a changed tool sent %q, want its text alone, without the secret", got)
		}
		if got := first(toolsearch.New(changed), debts); got != "[1]" {
			t.Errorf("%q finds %s, want the invoices [1]", debts, got)
		}
		if err := e.Err(); err != nil {
			t.Errorf("Err() = %v, want nil", err)
		}
	})
}

// Without a model nothing is sent, and words decide.
func TestNoModel(t *testing.T) {
	with(t, nil, nil, func(t *testing.T, e *toolsearch.Embeddings, first func(*toolsearch.Index, string) string) {
		x := toolsearch.New(tools)
		if got := first(x, "forecast"); got != "[0]" || e.Err() != nil {
			t.Errorf("got %s and %v, want [0] and no error", got, e.Err())
		}
		var none *toolsearch.Embeddings
		if got := none.Search(t.Context(), x, "forecast", 1); !slices.Equal(got, []int{0}) {
			t.Errorf("no embeddings at all: got %v, want [0]", got)
		}
	})
}

// A text is cut after its secrets are concealed.
func TestEmbeddedTextIsBounded(t *testing.T) {
	m := new(fake)
	with(t, m, nil, func(t *testing.T, _ *toolsearch.Embeddings, first func(*toolsearch.Index, string) string) {
		first(toolsearch.New([]toolsearch.Tool{{Name: "a", Description: strings.Repeat("x", 374) + "hunter2" + strings.Repeat("é", 1<<20)}}), "x")
		synctest.Wait()
		if got := m.sent(); len(got) != 1 || len(got[0]) > 384 || strings.Contains(got[0], "hunt") || !strings.Contains(got[0], "****") {
			t.Errorf("sent %d bytes, ending in %q, want at most 384 without a part of the secret", len(got[0]), got[0][len(got[0])-20:])
		}
	})
}

// A model that fails is asked again after longer and longer pauses, and after some failures only when
// somebody searches. Searches go on by words at once. There is one warning a minute.
func TestModelFails(t *testing.T) {
	m, log := new(fake), new(buffer)
	m.set(func(context.Context, []string) error { return errors.New("the service is away") })
	with(t, m, log, func(t *testing.T, e *toolsearch.Embeddings, first func(*toolsearch.Index, string) string) {
		x := toolsearch.New(tools)
		first(x, "forecast")
		time.Sleep(59 * time.Second) // fake time
		synctest.Wait()
		if got, want := strings.Count(log.String(), "service is away"), 1; got != want {
			t.Errorf("%d warnings in the first minute, want %d: %s", got, want, log.String())
		}
		time.Sleep(time.Hour)
		if got := len(m.sent()); got != 8*len(tools) {
			t.Errorf("sent %d texts in an hour, want those of 8 requests", got)
		}
		if err := e.Err(); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("Err() = %v, want that the service is away", err)
		}
		begun := time.Now()
		if got := first(x, "forecast"); got != "[0]" || time.Since(begun) > 0 {
			t.Errorf("a search finds %s after %v, want [0] at once", got, time.Since(begun))
		}
		m.set(nil)
		time.Sleep(10 * time.Minute)
		first(x, dry)
		synctest.Wait()
		if got := first(x, dry); got != "[0]" || e.Err() != nil {
			t.Errorf("after the service is back: got %s and %v, want [0] and no error", got, e.Err())
		}
	})
}

// A search waits half a second for the vector of its query. The vector is there for a later one.
func TestSlowModel(t *testing.T) {
	m := new(fake)
	with(t, m, nil, func(t *testing.T, e *toolsearch.Embeddings, first func(*toolsearch.Index, string) string) {
		x := toolsearch.New(tools)
		first(x, "forecast")
		synctest.Wait()
		m.set(func(ctx context.Context, _ []string) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(4 * time.Second):
				return nil
			}
		})
		begun := time.Now()
		if got := first(x, dry); got != "[]" || time.Since(begun) != 500*time.Millisecond {
			t.Errorf("got %s after %v, want nothing after 500ms", got, time.Since(begun))
		}
		if err := e.Err(); err == nil || !strings.Contains(err.Error(), "500ms") {
			t.Errorf("Err() = %v, want that the model is slow", err)
		}
		time.Sleep(5 * time.Second)
		begun = time.Now()
		if got := first(x, dry); got != "[0]" || time.Since(begun) != 0 {
			t.Errorf("later: got %s after %v, want [0] at once", got, time.Since(begun))
		}
		// Many at a time do not wait, and do not ask.
		m.sent()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() { first(x, fmt.Sprint("query ", i)) })
		}
		wg.Wait()
		if got := len(m.sent()); got > 8 {
			t.Errorf("50 searches at a time sent %d queries, want at most 8", got)
		}
	})
}

// A text that the model refuses has no vector; the others have theirs. A model that refuses
// everything has failed.
func TestRefusedText(t *testing.T) {
	m := new(fake)
	refused := func(_ context.Context, texts []string) error {
		if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "too many tokens") }) {
			return fmt.Errorf("%w: status 413", toolsearch.ErrRefused)
		}
		return nil
	}
	m.set(refused)
	with(t, m, nil, func(t *testing.T, e *toolsearch.Embeddings, first func(*toolsearch.Index, string) string) {
		all := slices.Clone(tools)
		for i := range 97 {
			all = append(all, toolsearch.Tool{Server: "many", Name: fmt.Sprint("t", i)})
		}
		all[40].Description = "too many tokens"
		x := toolsearch.New(all)
		first(x, dry)
		synctest.Wait()
		if got := first(x, dry); got != "[0]" || e.Err() != nil {
			t.Errorf("got %s and %v, want [0] and no error", got, e.Err())
		}
		m.sent()
		if first(x, dry); len(m.sent()) != 0 {
			t.Error("a refused text was sent again, want it once")
		}
		m.set(func(context.Context, []string) error { return fmt.Errorf("%w: unknown model", toolsearch.ErrRefused) })
		first(toolsearch.New(append(all, toolsearch.Tool{Name: "new"})), dry)
		synctest.Wait()
		if err := e.Err(); err == nil || !strings.Contains(err.Error(), "unknown model") {
			t.Errorf("Err() = %v, want that the model is unknown", err)
		}
	})
}

// Vectors of another model, or of other dimensions, are not compared.
func TestOtherModel(t *testing.T) {
	one, other := new(fake), &fake{more: 2}
	var now toolsearch.Model = one
	synctest.Test(t, func(t *testing.T) {
		e := toolsearch.NewEmbeddings(toolsearch.Config{Model: func() toolsearch.Model { return now }, Conceal: func(s string) string { return s }})
		defer e.Close()
		x := toolsearch.New(tools)
		search := func() string { return fmt.Sprint(e.Search(t.Context(), x, dry, 1)) }
		search()
		synctest.Wait()
		now = other
		if got := search(); got != "[]" {
			t.Errorf("another model: got %s, want nothing yet", got)
		}
		synctest.Wait()
		if got := search(); got != "[0]" {
			t.Errorf("with its vectors: got %s, want [0]", got)
		}
		other.mu.Lock()
		other.more = 5
		other.mu.Unlock()
		e.Search(t.Context(), x, debts, 1)
		if err := e.Err(); err == nil || !strings.Contains(err.Error(), "dimensions") {
			t.Errorf("other dimensions: Err() = %v, want that they differ", err)
		}
		time.Sleep(2 * time.Second)
		e.Search(t.Context(), x, debts, 1)
		synctest.Wait()
		if got := fmt.Sprint(e.Search(t.Context(), x, debts, 1)); got != "[1]" {
			t.Errorf("after all vectors are new: got %s, want [1]", got)
		}
		now = nil
		if got := search(); got != "[]" || e.Err() != nil {
			t.Errorf("switched off: got %s and %v, want nothing and no error", got, e.Err())
		}
	})
}

// Close ends requests under way, and waits for them. Later searches use words.
func TestCloseWhileEmbedding(t *testing.T) {
	m := new(fake)
	m.set(func(ctx context.Context, _ []string) error { <-ctx.Done(); return ctx.Err() })
	with(t, m, nil, func(t *testing.T, e *toolsearch.Embeddings, first func(*toolsearch.Index, string) string) {
		x := toolsearch.New(tools)
		first(x, dry)
		synctest.Wait()
		e.Close()
		if got := first(x, "forecast"); got != "[0]" || e.Err() != nil {
			t.Errorf("after Close: got %s and %v, want [0] and no error", got, e.Err())
		}
	})
}
