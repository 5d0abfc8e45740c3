package memory_sqlite //nolint:staticcheck // see memory.go

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yaya-ai/yaya/kernel/event"
)

// A recall costs as much as the memories that it ranks, so it looks at a bounded number of them:
// FTS5's bm25 reads every memory that has any of the words, which for common words is all of them.
const (
	maxRecent = 250  // newest memories of one word
	maxRanked = 3000 // memories that bm25 ranks, over all words
)

// word is a word of a query.
type word struct {
	match  string  // for FTS5
	recent []int64 // the newest memories that have it
	common bool    // there are more
	weight float64 // how much it tells
}

// query returns the memories that match best. Words that few memories have decide: bm25 ranks those
// memories. Only when they are too few, the newest memories with the common words follow.
func (p *Plugin) query(ctx context.Context, q event.MemoryQuery, session string) (hits []event.MemoryEntry, err error) {
	hits = []event.MemoryEntry{}
	words, k, in := wordsOf(q.Query), min(q.K, MaxHits), within(q.Folder, session)
	if len(words) == 0 || k <= 0 {
		return hits, nil
	}
	db, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one state for all reads
	if err != nil {
		return nil, damaged(fmt.Errorf("memory: %w", err))
	}
	defer func() { err = errors.Join(err, done(tx.Rollback())) }()
	if err := look(ctx, tx, words, in); err != nil {
		return nil, damaged(fmt.Errorf("memory: %w", err))
	}
	rare, common := split(words)
	if len(rare) > 0 {
		if hits, err = ranked(ctx, tx, rare, in, k); err != nil {
			return nil, damaged(fmt.Errorf("memory: %w", err))
		}
	}
	if len(hits) == k {
		return hits, nil
	}
	more, err := newest(ctx, tx, common, hits, k-len(hits))
	if err != nil {
		return nil, damaged(fmt.Errorf("memory: %w", err))
	}
	return append(hits, more...), nil
}

// inFolder is in the scope of each memory of a folder. Those of none, which may be all, have no word of it: bm25
// counts the memories of each word of a query.
const inFolder = "infolder"

// within is what FTS5 adds to a match: memories of a folder, without those of a session.
func within(folder, session string) string {
	in := ` NOT scope : "` + inFolder + `"`
	if folder != "" {
		in = ` AND scope : "` + ofFolder(folder) + `"`
	}
	if session != "" {
		in += ` NOT scope : "` + ofSession(session) + `"`
	}
	return in
}

// scope returns the words by which within finds a memory.
func scope(meta map[string]string) string {
	var words []string
	if f := meta["folder"]; f != "" {
		words = append(words, inFolder, ofFolder(f))
	}
	if s := meta["session_id"]; s != "" {
		words = append(words, ofSession(s))
	}
	return strings.Join(words, " ")
}

// ofFolder and ofSession make a word of what FTS5 would split.
func ofFolder(folder string) string { return "f" + digest(folder) }

func ofSession(id string) string { return "s" + digest(event.Root(id)) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// done leaves out that a transaction has ended already, as one does when its context ends.
func done(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// look finds the newest memories of each word, of those that count.
func look(ctx context.Context, tx *sql.Tx, words []word, in string) error {
	var last sql.NullInt64
	if err := tx.QueryRowContext(ctx, `SELECT max(n) FROM memories`).Scan(&last); err != nil {
		return err
	}
	find, err := tx.PrepareContext(ctx, `SELECT coalesce(group_concat(rowid), '') FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = find.Close() }() // it belongs to the transaction
	for i := range words {
		w := &words[i]
		var list string
		if err := find.QueryRowContext(ctx, "text : "+w.match+in, maxRecent+1).Scan(&list); err != nil {
			return err
		}
		for id := range strings.SplitSeq(list, ",") {
			if n, err := strconv.ParseInt(id, 10, 64); err == nil { // an empty list has no numbers
				w.recent = append(w.recent, n)
			}
		}
		all := float64(len(w.recent))
		if w.common = len(w.recent) > maxRecent; w.common {
			// As many as there would be if the older ones were as frequent as the newest.
			span := last.Int64 - w.recent[len(w.recent)-1] + 1
			all *= float64(last.Int64) / float64(span)
		}
		w.weight = math.Log(1 + float64(last.Int64)/max(all, 1))
	}
	return nil
}

// split divides words into those whose memories can all be ranked, the rarest first, and others.
func split(words []word) (rare, common []word) {
	slices.SortStableFunc(words, func(a, b word) int { return cmp.Compare(len(a.recent), len(b.recent)) })
	sum := 0
	for i, w := range words {
		if sum += len(w.recent); w.common || sum > maxRanked {
			return words[:i], words[i:]
		}
	}
	return words, nil
}

// ranked returns the best memories that have any of the words, of those that count.
func ranked(ctx context.Context, tx *sql.Tx, words []word, in string, k int) ([]event.MemoryEntry, error) {
	var match []string
	for _, w := range words {
		match = append(match, w.match)
	}
	rows, err := tx.QueryContext(ctx, `SELECT m.id, m.text, m.meta FROM words JOIN memories m ON m.n = words.rowid
		WHERE words MATCH ? ORDER BY bm25(words, 1.0, 0.0), m.n DESC LIMIT ?`, "text : ("+strings.Join(match, " OR ")+")"+in, k)
	if err != nil {
		return nil, err
	}
	return entries(rows)
}

// newest returns memories with common words: first those that have the words that tell most, and of
// equals the newest.
func newest(ctx context.Context, tx *sql.Tx, words []word, but []event.MemoryEntry, k int) ([]event.MemoryEntry, error) {
	weights := map[int64]float64{}
	for _, w := range words {
		for _, n := range w.recent {
			weights[n] += w.weight
		}
	}
	type candidate struct {
		n      int64
		weight float64
	}
	all := make([]candidate, 0, len(weights))
	for n, weight := range weights {
		all = append(all, candidate{n, weight})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.n, a.n)) })
	var out []event.MemoryEntry
	for _, c := range all[:min(len(all), k+len(but))] {
		rows, err := tx.QueryContext(ctx, `SELECT id, text, meta FROM memories WHERE n = ?`, c.n)
		if err != nil {
			return nil, err
		}
		got, err := entries(rows)
		if err != nil {
			return nil, err
		}
		for _, e := range got {
			if len(out) < k && !slices.ContainsFunc(but, func(o event.MemoryEntry) bool { return o.ID == e.ID }) {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// entries reads rows of id, text and meta, and closes them.
func entries(rows *sql.Rows) (out []event.MemoryEntry, err error) {
	out = []event.MemoryEntry{}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e event.MemoryEntry
		var meta string
		if err := rows.Scan(&e.ID, &e.Text, &meta); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(meta), &e.Meta); err != nil {
			return nil, fmt.Errorf("%s: %w", e.ID, err)
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// wordsOf converts any text to the words of a query: any of them may match, and none of their
// characters is special to FTS5.
func wordsOf(text string) []word {
	seen := map[string]bool{}
	var out []word
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		w = strings.ToLower(w)
		if len(out) == maxWords {
			break
		}
		if seen[w] || len(w) > 64 {
			continue
		}
		seen[w] = true
		out = append(out, word{match: `"` + w + `"`})
	}
	return out
}
