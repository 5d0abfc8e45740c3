package backup

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"filippo.io/age"
)

// maxDocument bounds backup.json and end.json, in bytes.
const maxDocument = 64 << 10

// sealedIntro is how every file of age begins.
const sealedIntro = "age-encryption.org/v1\n"

// ErrSealed is the error about a backup that needs an identity to be opened.
var ErrSealed = errors.New("the backup is encrypted")

// Reader reads a backup.
type Reader struct {
	head   Head
	inner  *bufio.Reader // what packed reads, which takes no byte more than its own
	packed *gzip.Reader
	tar    *tar.Reader
	end    End
	sum    hash.Hash
	now    Member
	left   int64 // of the present file
}

// NewReader reads the head of a backup. identities open one that is encrypted; without them
// the error is [ErrSealed].
func NewReader(r io.Reader, identities ...age.Identity) (*Reader, error) {
	b := bufio.NewReader(r)
	intro, err := b.Peek(len(sealedIntro))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var in io.Reader = b
	if string(intro) == sealedIntro {
		if len(identities) == 0 {
			return nil, ErrSealed
		}
		if in, err = age.Decrypt(b, identities...); err != nil {
			return nil, fmt.Errorf("decrypt: %w", err)
		}
	} else if !bytes.HasPrefix(intro, []byte{0x1f, 0x8b}) {
		return nil, errors.New("it is not a backup of yaya")
	}
	out := &Reader{sum: sha256.New()}
	plain, ok := in.(*bufio.Reader)
	if !ok {
		plain = bufio.NewReader(in)
	}
	if out.packed, err = gzip.NewReader(plain); err != nil {
		return nil, damaged(err)
	}
	out.packed.Multistream(false) // what follows is not of this backup: see finish
	out.inner = plain
	out.tar = tar.NewReader(out.packed)
	h, err := out.tar.Next()
	if err != nil {
		return nil, damaged(err)
	}
	if h.Name != headName {
		return nil, errors.New("it is not a backup of yaya")
	}
	if err := out.document(h, &out.head); err != nil {
		return nil, err
	}
	if out.head.Format != Format {
		return nil, fmt.Errorf("it has format %d, and this yaya reads format %d: use the yaya that made it (%s)", out.head.Format, Format, out.head.Yaya)
	}
	return out, nil
}

// Head returns what the backup is of.
func (r *Reader) Head() Head { return r.head }

// document reads a member that describes the others.
func (r *Reader) document(h *tar.Header, v any) error {
	raw, err := io.ReadAll(io.LimitReader(r.tar, maxDocument+1)) //nolint:forbidigo // bounded by the reader
	switch {
	case err != nil:
		return damaged(err)
	case len(raw) > maxDocument:
		return fmt.Errorf("%s has more than %d bytes", h.Name, maxDocument)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

// Next goes to the next file. After the last it returns io.EOF if the backup is whole, and
// an error that says what is wrong with it otherwise.
func (r *Reader) Next() (Member, error) {
	if r.left > 0 { // a part of the file was not read, and belongs to the sum
		if _, err := io.Copy(io.Discard, r); err != nil {
			return Member{}, err
		}
	}
	h, err := r.tar.Next()
	if err != nil {
		return Member{}, damaged(err)
	}
	if h.Name == endName {
		return Member{}, r.finish(h)
	}
	m := Member{Name: h.Name, Size: h.Size, Executable: h.Mode&0o100 != 0, Modified: h.ModTime}
	if h.Typeflag != tar.TypeReg || !validName(m.Name) {
		return Member{}, fmt.Errorf("it holds %q, which yaya does not put into a backup", h.Name)
	}
	begin(r.sum, m)
	r.now, r.left = m, m.Size
	r.end.Files++
	r.end.Bytes += m.Size
	return m, nil
}

// Read reads the present file.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.tar.Read(p)
	_, _ = r.sum.Write(p[:n]) // a hash never fails
	r.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = damaged(err)
	}
	return n, err
}

// finish checks the end, and that nothing follows.
func (r *Reader) finish(h *tar.Header) error {
	var want End
	if err := r.document(h, &want); err != nil {
		return err
	}
	if h, err := r.tar.Next(); err == nil {
		return fmt.Errorf("it holds %q behind its end", h.Name)
	} else if !errors.Is(err, io.EOF) {
		return damaged(err)
	}
	// The sums of gzip and age come last.
	n, err := io.Copy(io.Discard, r.packed)
	if err != nil {
		return damaged(err)
	}
	if n > 0 {
		return errBehind
	}
	switch _, err := r.inner.ReadByte(); {
	case err == nil:
		return errBehind
	case !errors.Is(err, io.EOF):
		return damaged(err)
	}
	r.end.Sum = hex.EncodeToString(r.sum.Sum(nil))
	if r.end != want {
		return fmt.Errorf("it is damaged: %d files with %d bytes do not match its sum of %d files with %d bytes", r.end.Files, r.end.Bytes, want.Files, want.Bytes)
	}
	return io.EOF
}

// End returns what was read; it is complete after [Reader.Next] has returned io.EOF.
func (r *Reader) End() End { return r.end }

// damaged says of a failure to read what it means.
func damaged(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errEnds
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("it is damaged: %w", err)
	}
	return err
}
