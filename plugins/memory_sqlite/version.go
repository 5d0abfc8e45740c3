package memory_sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// upgrade takes a database to the version that has all steps. It refuses one of a newer
// yaya, and several processes may do it at once.
func upgrade(ctx context.Context, db *sql.DB, steps []string) error {
	for {
		v, err := version(ctx, db)
		if err != nil {
			return err
		}
		switch {
		case v > len(steps):
			return tooNew(v, len(steps))
		case v == len(steps):
			return nil
		}
		if err := take(ctx, db, v, steps[v]); err != nil {
			return fmt.Errorf("upgrade from version %d: %w", v, err)
		}
	}
}

// take runs the step from a version to the next, unless another process has.
func take(ctx context.Context, db *sql.DB, from int, step string) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if rerr := tx.Rollback(); !errors.Is(rerr, sql.ErrTxDone) {
			err = errors.Join(err, rerr)
		}
	}()
	if v, err := version(ctx, tx); err != nil || v != from {
		return err
	}
	if _, err := tx.ExecContext(ctx, step); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", from+1)); err != nil {
		return err
	}
	return tx.Commit()
}

func version(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (v int, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
	return v, err
}

// known refuses a database of a newer yaya.
func known(ctx context.Context, db *sql.DB, newest int) error {
	v, err := version(ctx, db)
	if err == nil && v > newest {
		err = tooNew(v, newest)
	}
	return err
}

func tooNew(v, newest int) error {
	return fmt.Errorf("it has version %d, and this yaya works with versions up to %d: run the yaya that wrote it, restore a backup from before the upgrade, or move the file away to begin with an empty memory", v, newest)
}
