package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// usesFile keeps when tokens were used last, in the data directory.
const usesFile = "tokens-used.json"

// usesEvery is how often it is written at most.
const usesEvery = time.Minute

// rememberUses writes down when tokens were used last, until the returned function is called.
// It logs an error of writing, which has no other effect.
func rememberUses(ctx context.Context, data *os.Root, a *auth.Authority, log zerolog.Logger) (stop func()) {
	save := func() {
		uses, changed := a.LastUses()
		if !changed {
			return
		}
		raw, err := json.Marshal(uses)
		if err == nil {
			_, err = atomicfile.Write(data, usesFile, raw)
		}
		if err != nil {
			log.Warn().Err(err).Msg("it cannot be kept when tokens were used last")
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(usesEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				save()
				return
			case <-tick.C:
				save()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// restoreUses takes over when tokens were used last. A file that cannot be read is
// logged, and written again.
func restoreUses(data *os.Root, a *auth.Authority, log zerolog.Logger) {
	uses, err := readUses(data)
	if err != nil {
		log.Warn().Err(err).Msg("it cannot be read when tokens were used last")
	}
	a.RestoreUses(uses)
}

func readUses(data *os.Root) (map[int64]time.Time, error) {
	f, err := data.Open(usesFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, 1<<20)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return nil, err
	}
	var uses map[int64]time.Time
	return uses, json.Unmarshal(raw, &uses)
}
