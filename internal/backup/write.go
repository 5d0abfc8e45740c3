package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"

	"filippo.io/age"
)

// Format is the version of the format that a [Writer] writes.
const Format = 1

// Names of the first and the last member.
const (
	headName = "backup.json"
	endName  = "end.json"
)

// Head says what a backup is of.
type Head struct {
	Format  int       `json:"format"`  // of the backup
	Yaya    string    `json:"yaya"`    // version that made it
	Created time.Time `json:"created"` // when it was begun
	// DataFormat is the format of the data directory.
	DataFormat int `json:"data_format"`
}

// End says what a whole backup holds.
type End struct {
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
	Sum   string `json:"sha256"`
}

// Member is a file in a backup.
type Member struct {
	Name       string // slashes between its elements
	Size       int64
	Executable bool
	Modified   time.Time
}

// Writer writes a backup.
type Writer struct {
	sealed io.WriteCloser // nil without recipients
	packed *gzip.Writer
	tar    *tar.Writer
	end    End
	sum    hash.Hash
}

// NewWriter begins a backup. Without recipients it is not encrypted.
func NewWriter(w io.Writer, h Head, recipients ...age.Recipient) (*Writer, error) {
	out := &Writer{sum: sha256.New()}
	if len(recipients) > 0 {
		sealed, err := age.Encrypt(w, recipients...)
		if err != nil {
			return nil, fmt.Errorf("encrypt: %w", err)
		}
		out.sealed, w = sealed, sealed
	}
	var err error
	if out.packed, err = gzip.NewWriterLevel(w, gzip.BestSpeed); err != nil {
		return nil, err
	}
	out.tar = tar.NewWriter(out.packed)
	h.Format = Format
	return out, out.document(headName, h.Created, h)
}

// document writes a member that describes the others.
func (w *Writer) document(name string, at time.Time, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	err = w.header(Member{Name: name, Size: int64(len(raw)), Modified: at})
	if err == nil {
		_, err = w.tar.Write(raw)
	}
	return err
}

func (w *Writer) header(m Member) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: m.Name, Size: m.Size, Mode: 0o600, ModTime: m.Modified, Format: tar.FormatPAX}
	if m.Executable {
		h.Mode = 0o700
	}
	return w.tar.WriteHeader(h)
}

// Add writes a file, whose m.Size bytes r yields.
func (w *Writer) Add(m Member, r io.Reader) error {
	if !validName(m.Name) {
		return fmt.Errorf("%q cannot be the name of a file in a backup", m.Name)
	}
	if err := w.header(m); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	begin(w.sum, m)
	n, err := io.Copy(w.tar, io.TeeReader(io.LimitReader(r, m.Size), w.sum))
	if err == nil && n < m.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	w.end.Files++
	w.end.Bytes += n
	return nil
}

// begin adds what precedes the content of a file to the sum.
func begin(sum hash.Hash, m Member) { fmt.Fprintf(sum, "%s\x00%d\x00", m.Name, m.Size) }

// Close writes the end. Without it, a backup is not whole.
func (w *Writer) Close() (End, error) {
	w.end.Sum = hex.EncodeToString(w.sum.Sum(nil))
	err := w.document(endName, time.Now(), w.end)
	if err == nil {
		err = w.tar.Close()
	}
	if err == nil {
		err = w.packed.Close()
	}
	if err == nil && w.sealed != nil {
		err = w.sealed.Close()
	}
	return w.end, err
}

// validName reports whether a file of a backup can have a name: it leads nowhere else.
func validName(name string) bool {
	return fs.ValidPath(name) && name != "." && name != headName && name != endName
}

var (
	errEnds   = errors.New("it ends too early: it was not written completely, or was cut")
	errBehind = errors.New("it has bytes behind its end: something was appended, or two files were joined; take the file as yaya backup wrote it")
)
