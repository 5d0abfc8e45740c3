package memory_sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// connection is the address of the database at path for the driver.
func connection(path, pragmas string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_pragma=busy_timeout(5000)" + pragmas}
	return u.String()
}

// Copy writes a copy of the memory at one moment to a new file, even while others write.
func Copy(ctx context.Context, from, to string) (err error) {
	if _, err := os.Stat(from); err != nil { //nolint:forbidigo // SQLite would create it
		return err
	}
	db, err := sql.Open("sqlite", connection(from, ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// SQLite would make the file readable by everybody; it writes into an empty one.
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:forbidigo,gosec // the caller names it
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, to); err != nil {
		return fmt.Errorf("copy of %s: %w", from, err)
	}
	return nil
}

// Verify reports what is wrong with the memory at path, "" if nothing is. It reads all of
// it; the file must not be in use.
func Verify(ctx context.Context, path string) (problem string, err error) {
	db, err := sql.Open("sqlite", connection(path, "&mode=ro&immutable=1"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&problem); err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return err.Error(), nil //nolint:nilerr // a file that is not a database is damaged
	}
	if problem == "ok" {
		problem = ""
	}
	return problem, nil
}
