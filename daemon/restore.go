package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/daemon/datadir"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/backup"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/userfile"
	"github.com/yaya-ai/yaya/kernel/session"
)

// RestoreOptions say what is restored.
type RestoreOptions struct {
	File       string // the backup
	Identities []age.Identity
	DataOnly   bool // the configuration folder stays as it is
	Damaged    bool // accept files that were damaged when they were backed up
}

// Restored is the result of yaya restore.
type Restored struct {
	Data    string            `json:"data"`
	Backup  backup.Head       `json:"backup"`
	Files   int64             `json:"files"`
	Bytes   int64             `json:"bytes"`
	Config  []string          `json:"config"` // files of the configuration that were written
	Damaged []session.Finding `json:"damaged"`
	Node    string            `json:"node,omitempty"` // of a cluster that keeps its log itself
}

// restoredNote is the entry about the restore in the audit of the restored yaya.
type restoredNote struct {
	Backup  string `json:"backup"` // name of its file
	Created string `json:"created"`
	Yaya    string `json:"yaya"` // that made it
	Files   int64  `json:"files"`
	Bytes   int64  `json:"bytes"`
	Damaged int    `json:"damaged"` // files
}

// Restore puts a backup into an empty data directory, and the configuration where there is
// none. It refuses a backup that it cannot verify, and leaves the directory empty then.
// Until it has ended, no command works with the directory; one that was ended by force is
// run again.
func (g *Flags) Restore(ctx context.Context, o RestoreOptions) (out Restored, err error) {
	p, err := g.Paths()
	if err != nil {
		return out, err
	}
	out.Data = p.Data
	f, err := os.Open(o.File) //nolint:forbidigo // the user names it
	if err != nil {
		return out, fmt.Errorf("backup: %w", err)
	}
	defer func() { _ = f.Close() }()
	in, err := backup.NewReader(f, o.Identities...)
	if errors.Is(err, backup.ErrSealed) {
		return out, fmt.Errorf("backup %s: it is encrypted: give the file with the key that opens it with --identity", o.File)
	}
	if err != nil {
		return out, fmt.Errorf("backup %s: %w", o.File, err)
	}
	if out.Backup = in.Head(); out.Backup.DataFormat > DataFormat {
		return out, newerFormat("backup "+o.File, out.Backup.DataFormat, out.Backup.Yaya)
	}
	if err := p.checkFolder(os.Geteuid()); err != nil {
		return out, err
	}
	if err := os.MkdirAll(p.Data, 0o700); err != nil { //nolint:forbidigo // the root of all other access
		return out, fmt.Errorf("data directory: %w", err)
	}
	data, err := os.OpenRoot(p.Data)
	if err != nil {
		return out, fmt.Errorf("data directory: %w", err)
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if _, err := keepPrivate(data, os.Geteuid()); err != nil {
		return out, err
	}
	unlock, err := lock(data)
	if err != nil {
		return out, err
	}
	defer unlock()
	r := &restorer{p: p, settings: g.settingsFile(p), data: data, fs: journal.Root(data), o: o, out: &out}
	return out, r.run(ctx, in)
}

// restorer restores one backup; the data directory is locked.
type restorer struct {
	p        Paths
	settings string // file
	data     *os.Root
	fs       journal.FS
	o        RestoreOptions
	out      *Restored

	config map[string][]byte // by path, to be written when everything else is in its place
}

func (r *restorer) run(ctx context.Context, in *backup.Reader) error {
	if err := r.begin(); err != nil {
		return err
	}
	err := r.extract(ctx, in)
	if err != nil {
		err = fmt.Errorf("backup %s: %w", r.o.File, err)
	} else {
		err = r.verify(ctx)
	}
	if err == nil { // a queue that came and went while its tape was backed up
		err = session.MarkQueues(r.fs)
	}
	if err == nil {
		err = r.configure()
	}
	if node, problem := nodeIn(r.data); err == nil && problem == nil && node != nil && node.Route != "" { // verify has told of a problem
		r.out.Node = node.Name
	}
	if err == nil {
		err = tellLater(r.data, restoredFile, restoredNote{
			filepath.Base(r.o.File), control.Stamp(r.out.Backup.Created), Printable(r.out.Backup.Yaya, 60), r.out.Files, r.out.Bytes, len(r.out.Damaged),
		})
	}
	if err != nil {
		return errors.Join(err, r.wipe(), r.end())
	}
	if err := atomicfile.SyncTree(r.data); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return r.end()
}

// begin marks the data directory, which has to be empty, or left by a restore that was
// ended by force.
func (r *restorer) begin() error {
	_, err := r.data.Lstat(restoringFile)
	if err == nil {
		return r.wipe()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data directory: %w", err)
	}
	empty, err := holdsNothing(r.data)
	if err != nil {
		return err
	}
	if !empty {
		return fmt.Errorf("the data directory %s is not empty, and a restore overwrites nothing: move it away, or restore into another one with --data-dir", r.p.Data)
	}
	f, err := r.fs.Open(restoringFile, journal.Create)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return errors.Join(f.Sync(), f.Close(), r.fs.SyncDir("."))
}

// end makes the data directory one that yaya works with.
func (r *restorer) end() error {
	if err := r.fs.Remove(restoringFile); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return r.fs.SyncDir(".")
}

// wipe removes everything but the mark and the lock.
func (r *restorer) wipe() error {
	return emptyFolder(r.fs, ".", func(name string) bool { return name == restoringFile || name == lockName })
}

// emptyFolder removes what is in a folder, but for names to keep.
func emptyFolder(fsys journal.FS, dir string, keep func(name string) bool) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if keep(name) {
			continue
		}
		if e.IsDir() {
			if err := emptyFolder(fsys, name, func(string) bool { return false }); err != nil {
				return err
			}
		}
		if err := fsys.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// extract writes the files of the data directory, and keeps those of the configuration.
func (r *restorer) extract(ctx context.Context, in *backup.Reader) error {
	r.config = map[string][]byte{}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := in.Next()
		if errors.Is(err, io.EOF) {
			end := in.End()
			r.out.Files, r.out.Bytes = end.Files, end.Bytes
			return nil
		}
		if err != nil {
			return err
		}
		folder, name, _ := strings.Cut(m.Name, "/")
		switch {
		case folder == "config" && !strings.Contains(name, "/") && name != "":
			err = r.keep(name, m, in)
		case folder == "data" && name != "" && name != restoringFile && name != lockName:
			err = r.write(name, m, in)
		default:
			err = fmt.Errorf("it holds %q, which yaya does not put into a backup", m.Name)
		}
		if err != nil {
			return err
		}
	}
}

// write writes a file of the data directory.
func (r *restorer) write(name string, m backup.Member, in io.Reader) error {
	if dir := path.Dir(name); dir != "." {
		if err := r.fs.MkdirAll(dir); err != nil {
			return err
		}
	}
	f, err := r.fs.Open(name, journal.Create)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, in, make([]byte, 256<<10))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if m.Executable {
		if err := r.data.Chmod(name, 0o700); err != nil {
			return err
		}
	}
	return r.data.Chtimes(name, m.Modified, m.Modified)
}

// keep reads a file of the configuration. It comes before the data, and one that is there
// with another content is refused.
func (r *restorer) keep(name string, m backup.Member, in io.Reader) error {
	if m.Size > userfile.Max {
		return fmt.Errorf("%s has %d bytes, %d at most", m.Name, m.Size, userfile.Max)
	}
	content, err := io.ReadAll(io.LimitReader(in, userfile.Max)) //nolint:forbidigo // bounded by the reader
	if err != nil || r.o.DataOnly {
		return err
	}
	file := filepath.Join(r.p.Config, name)
	if name == settingsName {
		file = r.settings
	}
	is, found, err := userfile.Read(file)
	if err != nil {
		return err
	}
	if found && !bytes.Equal(is, content) {
		return fmt.Errorf("%s is there, and is another one than that of the backup: move it away, or leave the configuration as it is with --data-only", file)
	}
	if !found {
		r.config[file] = content
	}
	return nil
}

// configure writes the files of the configuration.
func (r *restorer) configure() error {
	for file, content := range r.config {
		if err := atomicfile.Replace(file, content); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
		r.out.Config = append(r.out.Config, file)
	}
	slices.Sort(r.out.Config)
	return nil
}

// verify refuses files that are not what yaya wrote.
func (r *restorer) verify(ctx context.Context) error {
	_, findings, err := datadir.Verify(ctx, r.data, datadir.Options{}) // the key of the secrets may not be here yet
	if err != nil {
		return err
	}
	_, audit, _, err := VerifyControl(r.data)
	if err != nil {
		return err
	}
	for _, f := range append(findings, audit...) {
		if f.Bad() {
			r.out.Damaged = append(r.out.Damaged, f)
		}
	}
	if len(r.out.Damaged) == 0 || r.o.Damaged {
		return nil
	}
	var lines []string
	for _, f := range r.out.Damaged {
		at := f.File
		if f.Entry > 0 {
			at += fmt.Sprintf(", entry %d", f.Entry)
		}
		lines = append(lines, at+": "+Printable(f.Problem, 600))
	}
	rest := ""
	if n := len(lines) - 20; n > 0 {
		lines, rest = lines[:20], fmt.Sprintf("\nand %d more", n)
	}
	return fmt.Errorf("backup %s holds files that are damaged, as they were when it was made; take an older backup, or restore this one with --damaged and mend them with yaya repair:\n%s%s", r.o.File, strings.Join(lines, "\n"), rest)
}
