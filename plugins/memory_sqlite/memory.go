// Package memory_sqlite is a long-term memory in an SQLite database: what is
// written is found again by its words, ranked by FTS5's bm25.
//
// The database is opened by the first query or write. Several processes may use
// it at once.
package memory_sqlite //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	_ "modernc.org/sqlite" // the driver

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Bounds.
const (
	MaxText  = 64 << 10 // bytes of one memory
	MaxHits  = 50
	maxWords = 32 // of a query
)

// Plugin is the memory.
type Plugin struct {
	path string

	mu     sync.Mutex
	db     *sql.DB
	closed bool
}

// New returns the plugin, with its database at path.
func New(path string) *Plugin { return &Plugin{path: path} }

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "memory-sqlite", Version: "0.1.0", Category: plugin.Memory, MemoryKind: "long-term"}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string {
	return []string{event.MemoryQueried.Name(), event.MemoryWritten.Name()}
}

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(context.Context, plugin.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = false
	return nil
}

// OnUnload implements [plugin.Plugin].
func (p *Plugin) OnUnload(context.Context, plugin.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.db == nil {
		return nil
	}
	err := p.db.Close()
	p.db = nil
	return err
}

// OnEvent implements [plugin.Plugin].
func (p *Plugin) OnEvent(ctx context.Context, ev event.Event, c plugin.Context) error {
	switch e := ev.Payload.(type) {
	case event.MemoryQuery:
		hits, err := p.query(ctx, e)
		if err != nil {
			return err
		}
		return c.Emit(event.MemoryAnswered.Name(), ev.SessionID, event.MemoryResult{Hits: hits, Request: event.Request{RequestID: ev.ID}})
	case event.MemoryWrite:
		return p.write(ctx, e.Entry)
	}
	return nil
}

const schema = `
CREATE TABLE IF NOT EXISTS memories (
	n INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	text TEXT NOT NULL,
	meta TEXT NOT NULL,
	written TEXT NOT NULL
);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content=memories, content_rowid=n, tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER IF NOT EXISTS memories_in AFTER INSERT ON memories BEGIN
	INSERT INTO words(rowid, text) VALUES (new.n, new.text);
END;
CREATE TRIGGER IF NOT EXISTS memories_out AFTER DELETE ON memories BEGIN
	INSERT INTO words(words, rowid, text) VALUES ('delete', old.n, old.text);
END;
CREATE TRIGGER IF NOT EXISTS memories_new AFTER UPDATE ON memories BEGIN
	INSERT INTO words(words, rowid, text) VALUES ('delete', old.n, old.text);
	INSERT INTO words(rowid, text) VALUES (new.n, new.text);
END;`

func (p *Plugin) open(ctx context.Context) (*sql.DB, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the memory is closed")
	}
	if p.db != nil {
		return p.db, nil
	}
	// SQLite would make the file readable by all.
	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:forbidigo // the path is yaya's own
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: p.path}).EscapedPath(), RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	db.SetMaxOpenConns(4)
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(fmt.Errorf("memory %s: %w", p.path, err), db.Close())
	}
	p.db = db
	return db, nil
}

// Count returns how many memories there are; 0 when the memory has not been opened
// yet, which it is when something is remembered or looked for.
func (p *Plugin) Count(ctx context.Context) (n int) {
	p.mu.Lock()
	db := p.db
	p.mu.Unlock()
	if db == nil {
		return 0
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM memories`).Scan(&n); err != nil {
		return 0 // closed, or busy: the next one counts
	}
	return n
}

func (p *Plugin) write(ctx context.Context, e event.MemoryEntry) error {
	if strings.TrimSpace(e.Text) == "" || len(e.Text) > MaxText {
		return fmt.Errorf("a memory has between 1 and %d bytes, not %d", MaxText, len(e.Text))
	}
	if e.ID == "" {
		e.ID = "mem_" + rand.Text()
	}
	meta, err := json.Marshal(e.Meta)
	if err != nil {
		return err
	}
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO memories(id, text, meta, written) VALUES (?, ?, ?, ?)
		ON CONFLICT(id) DO UPDATE SET text = excluded.text, meta = excluded.meta, written = excluded.written`,
		e.ID, e.Text, string(meta), time.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

func (p *Plugin) query(ctx context.Context, q event.MemoryQuery) (hits []event.MemoryEntry, err error) {
	hits = []event.MemoryEntry{}
	match := words(q.Query)
	if match == "" || q.K <= 0 {
		return hits, nil
	}
	db, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT m.id, m.text, m.meta FROM words JOIN memories m ON m.n = words.rowid
		WHERE words MATCH ? ORDER BY bm25(words), m.n DESC LIMIT ?`, match, min(q.K, MaxHits))
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e event.MemoryEntry
		var meta string
		if err := rows.Scan(&e.ID, &e.Text, &meta); err != nil {
			return nil, fmt.Errorf("memory: %w", err)
		}
		if err := json.Unmarshal([]byte(meta), &e.Meta); err != nil {
			return nil, fmt.Errorf("memory %s: %w", e.ID, err)
		}
		hits = append(hits, e)
	}
	return hits, rows.Err()
}

// words makes a query of any text: each of its words may match, none of its
// characters means anything to FTS5.
func words(text string) string {
	fields := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	seen := map[string]bool{}
	var out []string
	for _, w := range fields {
		w = strings.ToLower(w)
		if len(out) == maxWords || seen[w] || len(w) > 64 {
			continue
		}
		seen[w] = true
		out = append(out, `"`+w+`"`)
	}
	return strings.Join(out, " OR ")
}

// HealthCheck implements [plugin.HealthChecker]. It does not open the database.
func (p *Plugin) HealthCheck(ctx context.Context, _ plugin.Context) plugin.HealthReport {
	p.mu.Lock()
	db := p.db
	p.mu.Unlock()
	if db == nil {
		if st, err := os.Stat(p.path); err == nil && !st.Mode().IsRegular() {
			return plugin.HealthReport{Status: plugin.Failing, Summary: p.path + " is not a file"}
		}
		return plugin.HealthReport{Status: plugin.Healthy, Summary: "not opened yet"}
	}
	if err := db.PingContext(ctx); err != nil {
		return plugin.HealthReport{Status: plugin.Failing, Summary: err.Error()}
	}
	return plugin.HealthReport{Status: plugin.Healthy, Summary: p.path}
}
