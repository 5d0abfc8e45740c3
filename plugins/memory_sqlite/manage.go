package memory_sqlite //nolint:staticcheck // see memory.go

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Memory is one that is kept.
type Memory struct {
	ID      string    `json:"id"`
	Written time.Time `json:"written"` // last
	Folder  string    `json:"folder,omitempty"`
	Session string    `json:"session,omitempty"`
	Text    string    `json:"text"`
}

// Filter selects memories that all of its fields fit. The zero value selects all.
type Filter struct {
	IDs     []string
	Folder  string
	Session string // its sub-agents are part of it
}

// where returns the condition of SQL that selects memories. Meta that is not JSON fits no folder and no session.
func (f Filter) where() (condition string, args []any, err error) {
	const meta = "CASE WHEN json_valid(meta) THEN json_extract(meta, '$.%s') END"
	all := []string{"1"}
	if len(f.IDs) > 0 {
		ids, err := json.Marshal(f.IDs) // SQLite takes 32,766 arguments
		if err != nil {
			return "", nil, err
		}
		all, args = append(all, "id IN (SELECT value FROM json_each(?))"), append(args, string(ids))
	}
	if f.Folder != "" {
		all, args = append(all, fmt.Sprintf(meta, "folder")+" = ?"), append(args, f.Folder)
	}
	if f.Session != "" {
		// GLOB and LIKE know wildcards, which an id may have.
		of, id := f.Session+event.AgentSeparator, fmt.Sprintf(meta, "session_id")
		all, args = append(all, "("+id+" = ? OR substr("+id+", 1, length(?)) = ?)"), append(args, f.Session, of, of)
	}
	return strings.Join(all, " AND "), args, nil
}

// List returns memories of the database at path, the newest first and at most limit. It changes nothing, and other
// processes may use the database meanwhile. Without one there are no memories.
func List(ctx context.Context, path string, f Filter, limit int) (out []Memory, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := readOnly(path)
	if err == nil {
		out, err = list(ctx, db, f, limit)
		err = errors.Join(err, db.Close())
	}
	return out, told(path, err)
}

func list(ctx context.Context, db *sql.DB, f Filter, limit int) (out []Memory, err error) {
	if err := known(ctx, db, len(steps())); err != nil {
		return nil, err
	}
	where, args, err := f.where()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT id, text, meta, written FROM memories WHERE `+where+` ORDER BY written DESC, n DESC LIMIT ?`, append(args, limit)...) //nolint:gosec // the condition has placeholders alone
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var m Memory
		var meta, written string
		if err := rows.Scan(&m.ID, &m.Text, &meta, &written); err != nil {
			return nil, err
		}
		var of map[string]string
		_ = json.Unmarshal([]byte(meta), &of) // is shown as far as it can be read
		m.Folder, m.Session = of["folder"], of["session_id"]
		m.Written, _ = time.Parse(time.RFC3339, written)
		out = append(out, m)
	}
	return out, rows.Err()
}

// A removal takes the lock of writers for some milliseconds and leaves it to others for some: what agents remember
// meanwhile must not wait for its end.
const (
	removedAtOnce = 250
	removalPause  = 5 * time.Millisecond
)

// Remove removes memories from the database at path, and returns how many. Other processes may use it meanwhile.
// When ctx ends, those that are removed stay so. The file has bytes of them until SQLite uses their place again.
func Remove(ctx context.Context, path string, f Filter) (n int, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	where, args, err := f.where()
	if err != nil {
		return 0, err
	}
	p := New(path)
	db, err := p.open(ctx)
	if err != nil {
		return 0, err
	}
	n, err = remove(ctx, db, where, args...)
	return n, told(path, errors.Join(err, p.OnUnload(ctx, nil)))
}

// remove removes the memories that a condition of SQL selects.
func remove(ctx context.Context, db *sql.DB, where string, args ...any) (n int, err error) {
	for {
		res, err := db.ExecContext(ctx, `DELETE FROM memories WHERE n IN (SELECT n FROM memories WHERE `+where+` LIMIT ?)`, append(args, removedAtOnce)...) //nolint:gosec // the condition has placeholders alone
		if err != nil {
			return n, err
		}
		gone, err := res.RowsAffected()
		if n += int(gone); err != nil || gone < removedAtOnce {
			return n, err
		}
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-time.After(removalPause):
		}
	}
}

// told adds to an error which database it is about, and what to do.
func told(path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_BUSY {
		return fmt.Errorf("memory %s: another process has been writing to it for seconds: %w; try again", path, err)
	}
	return damaged(fmt.Errorf("memory %s: %w", path, err))
}
