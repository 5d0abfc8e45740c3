// Package memory_sqlite is a long-term memory in an SQLite database: queries find entries by
// their words, ranked by FTS5's bm25.
//
// The first query or write opens the database. Several processes may use it at once.
package memory_sqlite //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

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
		hits, err := p.query(ctx, e, ev.SessionID)
		if err != nil {
			return err
		}
		return c.Emit(event.MemoryAnswered.Name(), ev.SessionID, event.MemoryResult{Hits: hits, Request: event.Request{RequestID: ev.ID}})
	case event.MemoryWrite:
		return p.write(ctx, e.Entry)
	}
	return nil
}

// steps take the database from each version to the next, each in a transaction. SQLite's
// user_version counts them. Databases of version 0 may have what the first step makes.
func steps() []string { return []string{firstSchema, scopeSchema} }

const firstSchema = `
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

// scopeSchema has the index find memories by whom they are for, see [scope].
const scopeSchema = `
ALTER TABLE memories ADD COLUMN scope TEXT NOT NULL DEFAULT '';
DROP TRIGGER memories_in;
DROP TRIGGER memories_out;
DROP TRIGGER memories_new;
DROP TABLE words;
CREATE VIRTUAL TABLE words USING fts5(text, scope, content=memories, content_rowid=n, tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER memories_in AFTER INSERT ON memories BEGIN
	INSERT INTO words(rowid, text, scope) VALUES (new.n, new.text, new.scope);
END;
CREATE TRIGGER memories_out AFTER DELETE ON memories BEGIN
	INSERT INTO words(words, rowid, text, scope) VALUES ('delete', old.n, old.text, old.scope);
END;
CREATE TRIGGER memories_new AFTER UPDATE ON memories BEGIN
	INSERT INTO words(words, rowid, text, scope) VALUES ('delete', old.n, old.text, old.scope);
	INSERT INTO words(rowid, text, scope) VALUES (new.n, new.text, new.scope);
END;
INSERT INTO words(words) VALUES ('rebuild');`

func (p *Plugin) open(ctx context.Context) (*sql.DB, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the memory is closed")
	}
	if p.db != nil {
		return p.db, nil
	}
	// SQLite would make the file readable by everybody.
	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:forbidigo // the path is yaya's own
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	db, err := sql.Open("sqlite", connection(p.path, "&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"))
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	db.SetMaxOpenConns(4)
	if err := upgrade(ctx, db, steps()); err != nil {
		return nil, errors.Join(damaged(fmt.Errorf("memory %s: %w", p.path, err)), db.Close())
	}
	p.db = db
	return db, nil
}

// Count returns the number of memories; 0 before the first write or query opens the database.
func (p *Plugin) Count(ctx context.Context) (n int) {
	p.mu.Lock()
	db := p.db
	p.mu.Unlock()
	if db == nil {
		return 0
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM memories`).Scan(&n); err != nil {
		return 0 // closed or busy: the next count may succeed
	}
	return n
}

// Forget removes the memories that were written last before that time, and returns how
// many.
func (p *Plugin) Forget(ctx context.Context, before time.Time) (int, error) {
	if _, err := os.Stat(p.path); errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	db, err := p.open(ctx)
	if err != nil {
		return 0, err
	}
	n, err := remove(ctx, db, "written < ?", before.UTC().Format(time.RFC3339))
	if err != nil {
		err = fmt.Errorf("memory: %w", err)
	}
	return n, err
}

func (p *Plugin) write(ctx context.Context, e event.MemoryEntry) error {
	if strings.TrimSpace(e.Text) == "" || len(e.Text) > MaxText {
		return fmt.Errorf("a memory must have between 1 and %d bytes, not %d", MaxText, len(e.Text))
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
	_, err = db.ExecContext(ctx, `INSERT INTO memories(id, text, meta, scope, written) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT(id) DO UPDATE SET text = excluded.text, meta = excluded.meta, scope = excluded.scope, written = excluded.written`,
		e.ID, e.Text, string(meta), scope(e.Meta), time.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return damaged(fmt.Errorf("memory: %w", err))
	}
	return nil
}

// HealthCheck implements [plugin.HealthChecker]. It opens a database that exists, reads from it, and
// takes the lock of writers for a moment.
func (p *Plugin) HealthCheck(ctx context.Context, _ plugin.Context) plugin.HealthReport {
	st, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return plugin.HealthReport{Status: plugin.Healthy, Summary: "not opened yet"}
	case err == nil && !st.Mode().IsRegular():
		return plugin.HealthReport{Status: plugin.Failing, Summary: p.path + " is not a file"}
	case err == nil:
		err = p.try(ctx)
	}
	if err != nil {
		return plugin.HealthReport{Status: plugin.Failing, Summary: err.Error()}
	}
	return plugin.HealthReport{Status: plugin.Healthy, Summary: p.path}
}

// try reads from the database, and takes the lock of writers.
func (p *Plugin) try(ctx context.Context) error {
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil) // BEGIN IMMEDIATE, by _txlock
	if err != nil {
		return fmt.Errorf("memory %s cannot be written: %w", p.path, err)
	}
	var id string
	err = tx.QueryRowContext(ctx, `SELECT id FROM memories ORDER BY n DESC LIMIT 1`).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err := errors.Join(err, done(tx.Rollback())); err != nil {
		return damaged(fmt.Errorf("memory %s cannot be read: %w", p.path, err))
	}
	return nil
}
