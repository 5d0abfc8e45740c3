package memory_sqlite //nolint:staticcheck // see memory.go

import (
	"context"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Filler is in each memory that Fill writes.
const Filler = "what is it about and who said so when we met there on that day at noon with all of them in the old house near a long river under two high trees"

// Fill writes n memories, m0 and following, in one transaction.
func (p *Plugin) Fill(ctx context.Context, n int) (err error) {
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done(tx.Rollback())) }()
	put, err := tx.PrepareContext(ctx, `INSERT INTO memories(id, text, meta, written) VALUES (?, ?, '{}', '')`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, put.Close()) }()
	for i := range n {
		parity := "odd"
		if i%2 == 0 {
			parity = "even"
		}
		if _, err := put.ExecContext(ctx, fmt.Sprint("m", i), fmt.Sprintf("%s: number%d is %s", Filler, i, parity)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Recall is query.
func (p *Plugin) Recall(ctx context.Context, q event.MemoryQuery) ([]event.MemoryEntry, error) {
	return p.query(ctx, q, "")
}
