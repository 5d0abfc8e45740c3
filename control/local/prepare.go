package local

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/journal"
)

// isKey reports whether a file in the folder of keys proves that there was a log.
func isKey(name string) bool {
	return strings.HasSuffix(name, ".key") || name == HeadFile
}

// hasAny reports whether the folder of keys has such a file.
func hasAny(keys journal.FS, such func(name string) bool) (bool, error) {
	names, err := keys.ReadDir(".")
	if err != nil {
		return false, fmt.Errorf("folder of keys: %w", err)
	}
	return slices.ContainsFunc(names, func(n fs.DirEntry) bool { return such(n.Name()) }), nil
}

// Prepare runs before everything else at a start. It refuses a data directory whose
// log is missing while keys exist, and creates an empty log in a new directory:
// before any key, so that no crash leaves keys without a log. known reports whether
// this yaya has run here before, so that its keys must exist.
func Prepare(data, keys journal.FS) (known bool, err error) {
	had, err := hasAny(keys, isKey)
	if err != nil {
		return false, err
	}
	f, err := data.Open(File, journal.ReadOnly)
	if errors.Is(err, fs.ErrNotExist) {
		segments, err := listSegments(data)
		if err != nil {
			return false, err
		}
		if len(segments) > 0 { // a crash can leave the log without a tail
			return true, nil
		}
		if had {
			return true, removed()
		}
		return false, create(data)
	}
	if err != nil {
		return false, fmt.Errorf("control log: %w", err)
	}
	size, err := f.Size()
	if err := errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("control log: %w", err)
	}
	known = size > 0
	if !known {
		known, err = hasAny(keys, func(name string) bool { return name == SealKeyFile || name == HeadFile })
	}
	return known, err
}

// PrepareReplica runs before a replica is opened. It creates an empty log if there is none: the
// others have its entries.
func PrepareReplica(data journal.FS) error {
	f, err := data.Open(File, journal.ReadOnly)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("control log: %w", err)
	}
	segments, err := listSegments(data)
	if err != nil || len(segments) > 0 {
		return err
	}
	return create(data)
}

// create makes an empty log, durably.
func create(data journal.FS) error {
	err := data.MkdirAll(folder)
	if err == nil {
		err = data.SyncDir(".")
	}
	var f journal.File
	if err == nil {
		f, err = data.Open(File, journal.Create)
	}
	if err == nil {
		if err = errors.Join(f.Sync(), f.Close()); err == nil {
			err = data.SyncDir(folder)
		}
	}
	if err != nil {
		return fmt.Errorf("control log: %w", err)
	}
	return nil
}
