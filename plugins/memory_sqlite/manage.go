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

// Which selects memories: those that all of its fields fit. The zero value selects all.
type Which struct {
	IDs     []string
	Folder  string
	Session string // its sub-agents are part of it
}

// where returns the condition of SQL that selects memories.
func (q Which) where() (condition string, args []any) {
	all := []string{"1"}
	if len(q.IDs) > 0 {
		all = append(all, "id IN (?"+strings.Repeat(", ?", len(q.IDs)-1)+")")
		for _, id := range q.IDs {
			args = append(args, id)
		}
	}
	if q.Folder != "" {
		all, args = append(all, "json_extract(meta, '$.folder') = ?"), append(args, q.Folder)
	}
	if q.Session != "" {
		// GLOB and LIKE know wildcards, which an id may have.
		all = append(all, "(json_extract(meta, '$.session_id') = ? OR substr(json_extract(meta, '$.session_id'), 1, ?) = ?)")
		of := q.Session + event.AgentSeparator
		args = append(args, q.Session, len([]rune(of)), of)
	}
	return strings.Join(all, " AND "), args
}

// managed calls f with the database at path, if there is one. Other processes may use it meanwhile.
func managed(ctx context.Context, path string, f func(*sql.DB) error) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p := New(path)
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	if err = errors.Join(f(db), p.OnUnload(ctx, nil)); err != nil {
		return damaged(fmt.Errorf("memory %s: %w", path, err))
	}
	return nil
}

// List returns memories of the database at path, the newest first and at most limit.
func List(ctx context.Context, path string, q Which, limit int) (out []Memory, err error) {
	err = managed(ctx, path, func(db *sql.DB) (err error) {
		out, err = list(ctx, db, q, limit)
		return err
	})
	return out, err
}

func list(ctx context.Context, db *sql.DB, q Which, limit int) (out []Memory, err error) {
	where, args := q.where()
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

// Remove removes memories from the database at path, and returns how many. The file has bytes of them until SQLite
// uses their place again.
func Remove(ctx context.Context, path string, q Which) (n int, err error) {
	err = managed(ctx, path, func(db *sql.DB) error {
		where, args := q.where()
		res, err := db.ExecContext(ctx, `DELETE FROM memories WHERE `+where, args...) //nolint:gosec // the condition has placeholders alone
		if err != nil {
			return err
		}
		gone, err := res.RowsAffected()
		n = int(gone)
		return err
	})
	return n, err
}
