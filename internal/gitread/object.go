package gitread

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// kind is the type of an object, as packs number it.
type kind byte

const (
	kindCommit kind = 1
	kindTree   kind = 2
	kindBlob   kind = 3
	kindTag    kind = 4
	kindOffset kind = 6
	kindRef    kind = 7
)

var kinds = map[string]kind{"commit": kindCommit, "tree": kindTree, "blob": kindBlob, "tag": kindTag}

// errMissing reports an object that the repository does not have itself.
var errMissing = errors.New("is not among the repository's own objects (alternates and partial clones are not followed)")

// store reads objects. It counts inflated bytes, because a small file can hold a
// lot.
type store struct {
	root  *os.Root
	left  int64 // bytes that may still be made
	packs []*pack
	known bool // packs were looked for
}

func (s *store) close() error {
	var err error
	for _, p := range s.packs {
		err = errors.Join(err, p.close())
	}
	return err
}

// take reserves memory for the announced size of an object.
func (s *store) take(n int64) error {
	if n < 0 || n > maxObject {
		return fmt.Errorf("%w: an object has %d bytes", errTooLarge, n)
	}
	if s.left -= n; s.left < 0 {
		return fmt.Errorf("%w: its objects have more than %d bytes", errTooLarge, maxInflate)
	}
	return nil
}

// get returns an object of the wanted kind.
func (s *store) get(ctx context.Context, i id, want kind) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	got, data, err := s.loose(i)
	if errors.Is(err, fs.ErrNotExist) {
		got, data, err = s.fromPacks(ctx, i)
	}
	if err == nil && got != want {
		err = damaged("it is not of the kind that it has to be")
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", i, err)
	}
	return data, nil
}

func (s *store) loose(i id) (kind, []byte, error) {
	name := i.String()
	f, _, err := openFile(s.root, "objects/"+name[:2]+"/"+name[2:])
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = f.Close() }()
	z, err := zlib.NewReader(f)
	if err != nil {
		return 0, nil, damaged("%v", err)
	}
	// The header is "kind size NUL".
	var header []byte
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(z, one); err != nil {
			return 0, nil, damaged("%v", err)
		}
		if one[0] == 0 {
			break
		}
		if header = append(header, one[0]); len(header) > 32 {
			return 0, nil, damaged("its header")
		}
	}
	word, number, _ := strings.Cut(string(header), " ")
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || kinds[word] == 0 {
		return 0, nil, damaged("its header")
	}
	data, err := s.inflate(z, size)
	return kinds[word], data, err
}

// inflate reads as many bytes as were announced.
func (s *store) inflate(z io.Reader, size int64) ([]byte, error) {
	if err := s.take(size); err != nil {
		return nil, err
	}
	var b bytes.Buffer // grows with what is there, not with what is claimed
	b.Grow(int(min(size, 64<<10)))
	if n, err := io.CopyN(&b, z, size); err != nil || n != size {
		return nil, damaged("it ends early: %v", err)
	}
	return b.Bytes(), nil
}

func (s *store) fromPacks(ctx context.Context, i id) (kind, []byte, error) {
	if !s.known {
		s.known = true
		if err := s.findPacks(); err != nil {
			return 0, nil, err
		}
	}
	for n, p := range s.packs {
		off, found, err := p.find(s.root, i)
		if err != nil {
			return 0, nil, err
		}
		if found {
			s.packs[0], s.packs[n] = s.packs[n], s.packs[0] // the next one is likely there, too
			return p.read(ctx, s, off)
		}
	}
	return 0, nil, errMissing
}

const maxPacks = 1000

func (s *store) findPacks() error {
	dir, err := s.root.OpenFile("objects/pack", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(16 * maxPacks)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".idx"); ok {
			if len(s.packs) == maxPacks {
				return fmt.Errorf("%w: it has more than %d packs (run git gc)", errTooLarge, maxPacks)
			}
			s.packs = append(s.packs, &pack{name: "objects/pack/" + name})
		}
	}
	return nil
}
