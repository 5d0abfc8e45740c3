package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"regexp/syntax"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Query describes a search.
type Query struct {
	Pattern string
	// Literal treats the pattern as plain text, not as a regular expression (RE2).
	Literal    bool
	IgnoreCase bool
	Path       string // "" is the whole workspace
	Glob       string // of file names or paths; "" is all
	Limit      int    // matches
}

// Match is a matching line.
type Match struct {
	Path string
	Line int // from 1
	Text string
}

const (
	maxLineShown = 300
	maxSearched  = 8 << 20 // bytes of a file that is searched
)

// Search finds lines, in the order of the tree; more reports that there are others.
// Files are read by several goroutines at once.
func (w *Workspace) Search(ctx context.Context, q Query) (out []Match, more bool, err error) {
	expr := q.Pattern
	if q.Literal {
		expr = regexp.QuoteMeta(expr)
	}
	if q.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile("(?m)" + expr)
	if err != nil {
		return nil, false, err
	}
	if q.Glob != "" {
		if _, err := path.Match(q.Glob, ""); err != nil {
			return nil, false, err
		}
	}
	s := &searcher{w: w, re: re, need: needle(expr, q.IgnoreCase), limit: q.Limit, jobs: make(chan job, 256)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		workers.Go(func() { s.work(ctx) })
	}
	n := 0
	walk := func(e Entry) error {
		if e.Dir || e.Size > maxSearched || (q.Glob != "" && !glob(q.Glob, e.Path)) {
			return nil
		}
		if s.found.Load() > int64(q.Limit)*4 { // what came first has been handed out by then
			more = true
			return fs.SkipAll
		}
		select {
		case s.jobs <- job{n, e.Path}:
			n++
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	start := q.Path
	if start == "" {
		start = "."
	}
	err = w.Walk(ctx, start, walk)
	if errors.Is(err, errNotFolder) { // a file by itself
		var clean string
		var info fs.FileInfo
		if clean, err = w.Clean(start); err == nil {
			clean, err = w.real(clean)
		}
		if err == nil {
			if info, err = w.root.Stat(clean); err == nil {
				err = walk(Entry{Path: clean, Size: info.Size()})
			}
		}
	}
	close(s.jobs)
	workers.Wait()
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(s.results, func(a, b found) int { return a.n - b.n })
	for _, f := range s.results {
		out = append(out, f.matches...)
	}
	if len(out) > q.Limit {
		out, more = out[:q.Limit], true
	}
	return out, more, nil
}

// glob matches a name, or a path if the pattern has a slash; ** stands for any
// folders.
func glob(pattern, p string) bool {
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(pattern, path.Base(p)) // it was checked
		return ok
	}
	return deep(strings.Split(strings.TrimPrefix(pattern, "/"), "/"), strings.Split(p, "/"))
}

func deep(pattern, parts []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(parts) + 1 {
				if deep(pattern[1:], parts[i:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		if ok, _ := path.Match(pattern[0], parts[0]); !ok { // it was checked
			return false
		}
		pattern, parts = pattern[1:], parts[1:]
	}
	return len(parts) == 0
}

// needle is a text that every match has, so that files without it need no regular
// expression; nil if there is none.
func needle(expr string, fold bool) []byte {
	if fold {
		return nil
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	re = re.Simplify()
	var best []rune
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	for _, p := range parts {
		if p.Op == syntax.OpLiteral && p.Flags&syntax.FoldCase == 0 && len(p.Rune) > len(best) {
			best = p.Rune
		}
	}
	if len(best) == 0 {
		return nil
	}
	return []byte(string(best))
}

type job struct {
	n    int
	path string
}

type found struct {
	n       int
	matches []Match
}

type searcher struct {
	w     *Workspace
	re    *regexp.Regexp
	need  []byte
	limit int
	jobs  chan job
	found atomic.Int64

	mu      sync.Mutex
	results []found
}

func (s *searcher) work(ctx context.Context) {
	for j := range s.jobs {
		if ctx.Err() != nil {
			continue // drain
		}
		data, _, err := s.w.read(j.path)
		if err != nil || IsBinary(data) || (s.need != nil && !bytes.Contains(data, s.need)) {
			continue
		}
		if ms := s.lines(j.path, data); len(ms) > 0 {
			s.found.Add(int64(len(ms)))
			s.mu.Lock()
			s.results = append(s.results, found{j.n, ms})
			s.mu.Unlock()
		}
	}
}

// lines returns the lines of a file that match, at most as many as are wanted.
func (s *searcher) lines(p string, data []byte) []Match {
	var out []Match
	line, at := 1, 0
	for at < len(data) && len(out) <= s.limit {
		loc := s.re.FindIndex(data[at:])
		if loc == nil {
			break
		}
		start := at + loc[0]
		begin := bytes.LastIndexByte(data[:start], '\n') + 1
		end := bytes.IndexByte(data[start:], '\n')
		if end < 0 {
			end = len(data)
		} else {
			end += start
		}
		line += bytes.Count(data[min(at, begin):begin], []byte{'\n'})
		text := strings.ToValidUTF8(strings.TrimRight(string(data[begin:end]), "\r"), "\uFFFD")
		if r := []rune(text); len(r) > maxLineShown {
			text = string(r[:maxLineShown]) + "…"
		}
		out = append(out, Match{p, line, text})
		line++
		at = end + 1
	}
	return out
}
