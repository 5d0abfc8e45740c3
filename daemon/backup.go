package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/yaya-ai/yaya/internal/backup"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/kernel/session"
)

// BackupOptions say where a backup goes.
type BackupOptions struct {
	To         string          // a new file, or a folder, in which it gets a name with its time
	Recipients []age.Recipient // that can open it; none for a backup in the clear
}

// Backup describes the backup that yaya backup has made.
type Backup struct {
	File      string `json:"file"`
	Files     int64  `json:"files"` // that it holds
	Bytes     int64  `json:"bytes"` // that they have
	Encrypted bool   `json:"encrypted"`
	// Notes say what is not in it.
	Notes []string `json:"notes"`
	// Findings are the findings of yaya verify about the files; damaged ones are in the backup as
	// they are.
	Findings []session.Finding `json:"findings"`
}

// Backup writes a backup of the data directory and of the configuration, whether a daemon
// works there or not. Until it is whole, there is no file with its name.
func (g *Flags) Backup(ctx context.Context, o BackupOptions) (b Backup, err error) {
	p, err := g.Paths()
	if err != nil {
		return b, err
	}
	if err := p.Answers(ctx); err != nil {
		return b, err
	}
	data, err := os.OpenRoot(p.Data)
	if err != nil {
		return b, fmt.Errorf("data directory: %w", err)
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if _, err := checkFormat(data); err != nil {
		return b, err
	}
	if !HoldsData(data) {
		return b, fmt.Errorf("there is no yaya data in %s", p.Data)
	}
	now := time.Now().UTC()
	b.Encrypted = len(o.Recipients) > 0
	if b.File, err = backupName(o.To, now, b.Encrypted); err != nil {
		return b, err
	}
	target, err := os.OpenRoot(filepath.Dir(b.File))
	if err != nil {
		return b, fmt.Errorf("backup: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := outside(target, data); err != nil {
		return b, err
	}
	if b.Findings, err = verifyData(data); err != nil {
		return b, err
	}
	c := &capture{p: p, data: data, encrypted: b.Encrypted, damaged: map[string]bool{}}
	for _, f := range b.Findings {
		c.damaged[f.File] = f.Bad()
	}
	head, err := backupHead(data, now)
	if err != nil {
		return b, err
	}
	err = putBackup(journal.Root(target), filepath.Base(b.File), func(f journal.File) error {
		out := bufio.NewWriterSize(f, 1<<20)
		if c.to, err = backup.NewWriter(out, head, o.Recipients...); err != nil {
			return err
		}
		if err := c.all(ctx, g); err != nil {
			return err
		}
		end, err := c.to.Close()
		b.Files, b.Bytes = end.Files, end.Bytes
		return errors.Join(err, out.Flush())
	})
	if err != nil {
		return b, fmt.Errorf("backup %s: %w", b.File, err)
	}
	b.Notes = g.keyNotes(p, data, b.Encrypted, c.notes)
	if err := g.note(ctx, p, noteOfBackup(b)); err != nil {
		b.Notes = append(b.Notes, err.Error())
	}
	return b, nil
}

func backupHead(data *os.Root, now time.Time) (backup.Head, error) {
	format, _, err := formatOf(data)
	return backup.Head{Yaya: Version(), Created: now, DataFormat: format}, err
}

// backupName returns the path of the file of a backup.
func backupName(to string, now time.Time, encrypted bool) (string, error) {
	path, err := filepath.Abs(to)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(path) //nolint:forbidigo // the user names it
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(to, "/"):
		return "", fmt.Errorf("there is no folder %s", to)
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case !st.IsDir():
		return "", existing(path)
	}
	name, end := "yaya-"+now.Format("20060102T150405Z"), ".tar.gz"
	if encrypted {
		end += ".age"
	}
	for n, more := 2, ""; ; n, more = n+1, fmt.Sprintf("-%d", n) { // another one of this second
		at := filepath.Join(path, name+more+end)
		if _, err := os.Lstat(at); err != nil { //nolint:forbidigo // in the folder that the user names
			return at, nil //nolint:nilerr // making it says why it cannot be made
		}
	}
}

func existing(path string) error {
	return fmt.Errorf("%s exists already, and a backup overwrites nothing: choose another name, or a folder, where each backup has a name of its own", path)
}

// outside refuses a folder in the data directory: a backup would hold the ones before it.
func outside(target, data *os.Root) error {
	own, err := data.Stat(".")
	if err != nil {
		return err
	}
	dir, err := filepath.EvalSymlinks(target.Name())
	if err != nil {
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir) //nolint:forbidigo // a folder above one that the user names
		if err != nil {
			return err
		}
		if os.SameFile(st, own) {
			return fmt.Errorf("%s lies in the data directory %s: choose a folder outside it, on another disk if you can", target.Name(), data.Name())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// unfinished is how the name of a backup ends that is not whole yet.
const unfinished = ".yaya-backup.tmp"

// putBackup writes a file that is there whole or not at all, and removes what ended
// processes have left of theirs.
func putBackup(fsys journal.FS, name string, write func(journal.File) error) error {
	if err := sweepBackups(fsys); err != nil {
		return err
	}
	tmp := "." + name + unfinished
	f, err := fsys.Open(tmp, journal.Create)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("another yaya backup is writing it")
	}
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = isFree(fsys, name)
	}
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, fsys.Remove(tmp))
	}
	return fsys.SyncDir(".")
}

// isFree refuses a name that somebody has taken meanwhile.
func isFree(fsys journal.FS, name string) error {
	entries, err := fsys.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == name {
			return existing(name)
		}
	}
	return nil
}

// sweepBackups removes unfinished backups that no process writes: it would hold a lock.
func sweepBackups(fsys journal.FS) error {
	entries, err := fsys.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), unfinished) || !e.Type().IsRegular() {
			continue
		}
		f, err := fsys.Open(e.Name(), journal.Append)
		if err != nil {
			continue // it is another one's
		}
		if err := errors.Join(fsys.Remove(e.Name()), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// keyNotes adds what has to be known about the key of the secrets to the notes.
func (g *Flags) keyNotes(p Paths, data *os.Root, encrypted bool, notes []string) []string {
	key, err := g.openVault(p, data).Kind()
	switch {
	case err != nil:
		return append(notes, "the secrets: "+err.Error())
	case key == "", encrypted && strings.HasPrefix(key, p.Config):
		return notes
	case key == secrets.ByPassphrase:
		return append(notes, "the secrets are sealed with a passphrase, which is not in the backup")
	case strings.HasPrefix(key, p.Config):
		return append(notes, fmt.Sprintf("the key of the secrets, %s, is not in the backup, because the backup is not encrypted: keep a copy of the key elsewhere, or encrypt the backup with --recipient", key))
	}
	return append(notes, "the key of the secrets is in the keychain of this system, and not in the backup: to be able to open the secrets on another machine, seal them with a passphrase (yaya secret rekey)")
}

// verifyData checks the conversations and the control log of a data directory, which a yaya
// may be using.
func verifyData(data *os.Root) ([]session.Finding, error) {
	_, findings, err := session.Verify(journal.Root(data))
	if err != nil {
		return nil, err
	}
	_, audit, _, err := VerifyControl(data)
	return append(findings, audit...), err
}
