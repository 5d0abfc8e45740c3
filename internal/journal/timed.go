package journal

import "time"

// Timed returns fs with every fsync timed: observe is called with the time that one took,
// failed ones included. It must be safe for concurrent use.
func Timed(fs FS, observe func(time.Duration)) FS { return timedFS{fs, observe} }

type timedFS struct {
	FS
	observe func(time.Duration)
}

func (t timedFS) Open(name string, mode Mode) (File, error) {
	f, err := t.FS.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return timedFile{f, t.observe}, nil
}

func (t timedFS) SyncDir(name string) error {
	defer since(t.observe, time.Now())
	return t.FS.SyncDir(name)
}

type timedFile struct {
	File
	observe func(time.Duration)
}

func (f timedFile) Sync() error {
	defer since(f.observe, time.Now())
	return f.File.Sync()
}

func since(observe func(time.Duration), begun time.Time) { observe(time.Since(begun)) }
