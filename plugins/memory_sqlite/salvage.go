package memory_sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"unicode/utf8"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/unread"
)

// damaged adds to an error of a damaged database what to do about it.
func damaged(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	if code := e.Code() & 0xff; code != sqlite3.SQLITE_CORRUPT && code != sqlite3.SQLITE_NOTADB { // without what extends it
		return err
	}
	return fmt.Errorf("%w; stop yaya and mend it: yaya repair", err)
}

// unreadable marks an error of SQLite that says nothing about the content of the database:
// that it cannot be opened, read or locked.
func unreadable(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok || e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ { // the file was cut
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_INTERRUPT:
		return unread.Error(err)
	}
	return err
}

// readOnly opens a database to look at it. Without a log beside it, nothing is created.
func readOnly(path string) (*sql.DB, error) {
	query := "mode=ro&_pragma=busy_timeout(5000)"
	if _, err := os.Stat(path + "-wal"); errors.Is(err, fs.ErrNotExist) {
		query = "mode=ro&immutable=1"
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}
	db, err := sql.Open("sqlite", u.String())
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// Check returns an error if the database at path is damaged, or one of [unread.Is] if it
// cannot be read. Without one there is
// nothing to damage. It changes nothing, and a running yaya may use the database
// meanwhile. SQLite keeps no sums: a changed byte within a text goes unnoticed.
func Check(ctx context.Context, path string) (err error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Size() == 0 { // the first use makes it
		return nil
	}
	// SQLite does not say why it cannot open a file. Opening it here would take the locks of
	// this process from it.
	if err := hostfile.CheckRead(path); err != nil {
		return err
	}
	db, err := readOnly(path)
	if err != nil {
		return err
	}
	defer func() { err = unreadable(errors.Join(err, db.Close())) }()
	var said string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return errors.New(said)
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM memories`).Scan(new(int)); err != nil {
		return err
	}
	return db.QueryRowContext(ctx, `SELECT count(*) FROM words WHERE words MATCH 'a'`).Scan(new(int))
}

// Salvage reads the memories that can be read in the damaged database at from, and writes
// them into a new one at to. It returns how many those are, and how many are known to be
// lost: the numbers of rows show those in between.
func Salvage(ctx context.Context, from, to string) (kept, lost int, err error) {
	old, err := readOnly(from)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	p := New(to)
	db, err := p.open(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	s := salvage{tx: tx}
	// From both ends: the damage may lie anywhere between.
	up := s.rows(ctx, old, `SELECT n, id, text, meta, written FROM memories NOT INDEXED ORDER BY n`)
	if up != nil && s.failed == nil {
		s.below = s.highest
		_ = s.rows(ctx, old, `SELECT n, id, text, meta, written FROM memories NOT INDEXED ORDER BY n DESC`) // the rest is lost
	}
	if s.failed != nil {
		return 0, 0, s.failed
	}
	if err := tx.Commit(); err != nil {
		return 0, 0, err
	}
	return s.kept, max(int(s.highest)-s.kept, 0), nil
}

// salvage copies rows. Its errors of reading say that rows are lost; failed is one of
// writing.
type salvage struct {
	tx      *sql.Tx
	below   int64 // rows up to here are copied
	highest int64
	kept    int
	failed  error
}

func (s *salvage) rows(ctx context.Context, from *sql.DB, query string) (err error) {
	rows, err := from.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n int64
		var id, text, meta, written string
		if err := rows.Scan(&n, &id, &text, &meta, &written); err != nil {
			return err
		}
		if n <= s.below {
			return nil
		}
		s.highest = max(s.highest, n)
		var of map[string]string
		if !utf8.ValidString(text) || json.Unmarshal([]byte(meta), &of) != nil {
			continue // it is lost: a query that finds it would fail
		}
		res, err := s.tx.ExecContext(ctx, `INSERT INTO memories(n, id, text, meta, scope, written) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, n, id, text, meta, scope(of), written)
		if err != nil {
			s.failed = fmt.Errorf("write a memory: %w", err)
			return s.failed
		}
		if added, err := res.RowsAffected(); err == nil {
			s.kept += int(added)
		}
	}
	return rows.Err()
}
