package gitread

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// pack is a file with many objects, and its index (gitformat-pack). The index is
// searched where it lies: it can have hundreds of megabytes.
type pack struct {
	name   string
	idx    *os.File
	data   *os.File
	fanout [256]uint32
	// size of data, and of idx
	size, idxSize int64
	// cache has what was made last, by offset: trees share their bases.
	cache map[int64]cached
	held  int
}

type cached struct {
	kind kind
	data []byte
}

const (
	maxHeld  = 16 << 20
	maxChain = 4096 // git makes chains of up to 4095
	idxTable = 8 + 4*256
)

func (p *pack) close() error {
	var err error
	for _, f := range []*os.File{p.idx, p.data} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

func (p *pack) open(root *os.Root) error {
	if p.idx != nil {
		return nil
	}
	idx, info, err := openFile(root, p.name+".idx")
	if err != nil {
		return err
	}
	p.idx, p.idxSize = idx, info.Size()
	var head [idxTable]byte
	if _, err := idx.ReadAt(head[:], 0); err != nil || !bytes.Equal(head[:8], []byte("\xfftOc\x00\x00\x00\x02")) {
		return damaged("%s.idx is not an index of version 2", p.name)
	}
	last := uint32(0)
	for n := range p.fanout {
		p.fanout[n] = binary.BigEndian.Uint32(head[8+4*n:])
		if p.fanout[n] < last {
			return damaged("%s.idx", p.name)
		}
		last = p.fanout[n]
	}
	if p.idxSize < idxTable+int64(last)*28+40 {
		return damaged("%s.idx is too short", p.name)
	}
	data, info, err := openFile(root, p.name+".pack")
	if err != nil {
		return err
	}
	p.data, p.size = data, info.Size()
	return nil
}

// find returns where an object is in the pack.
func (p *pack) find(root *os.Root, i id) (int64, bool, error) {
	if err := p.open(root); err != nil {
		return 0, false, err
	}
	lo, hi := uint32(0), p.fanout[i[0]]
	if i[0] > 0 {
		lo = p.fanout[i[0]-1]
	}
	total := int64(p.fanout[255])
	for lo < hi {
		mid := lo + (hi-lo)/2
		var at id
		if _, err := p.idx.ReadAt(at[:], idxTable+20*int64(mid)); err != nil {
			return 0, false, damaged("%s.idx: %v", p.name, err)
		}
		switch c := bytes.Compare(at[:], i[:]); {
		case c < 0:
			lo = mid + 1
		case c > 0:
			hi = mid
		default:
			off, err := p.offset(int64(mid), total)
			return off, true, err
		}
	}
	return 0, false, nil
}

func (p *pack) offset(n, total int64) (int64, error) {
	var b [8]byte
	if _, err := p.idx.ReadAt(b[:4], idxTable+24*total+4*n); err != nil {
		return 0, damaged("%s.idx: %v", p.name, err)
	}
	off := int64(binary.BigEndian.Uint32(b[:4]))
	if off&(1<<31) != 0 { // beyond 2 GiB: in a table of its own
		if _, err := p.idx.ReadAt(b[:], idxTable+28*total+8*(off&(1<<31-1))); err != nil {
			return 0, damaged("%s.idx: %v", p.name, err)
		}
		off = int64(binary.BigEndian.Uint64(b[:])) //nolint:gosec // checked below
	}
	if off < 12 || off >= p.size {
		return 0, damaged("%s.idx leads out of its pack", p.name)
	}
	return off, nil
}

// read returns the object at an offset: a base, and the differences that lead to it.
func (p *pack) read(ctx context.Context, s *store, off int64) (kind, []byte, error) {
	type step struct {
		at    int64
		delta []byte
	}
	var steps []step
	var base cached
	held := 0
	for len(steps) < maxChain {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		if c, ok := p.cache[off]; ok {
			base = c
			break
		}
		k, next, data, err := p.entry(s, off)
		if err != nil {
			return 0, nil, err
		}
		if k != kindOffset && k != kindRef {
			base = cached{k, data}
			p.keep(off, base)
			break
		}
		if held += len(data); held > 2*maxObject {
			return 0, nil, errTooLarge
		}
		steps = append(steps, step{off, data})
		off = next
	}
	if base.kind == 0 {
		return 0, nil, damaged("%s: a chain of more than %d differences", p.name, maxChain)
	}
	for n := len(steps) - 1; n >= 0; n-- {
		data, err := s.apply(base.data, steps[n].delta)
		if err != nil {
			return 0, nil, err
		}
		base = cached{base.kind, data}
		p.keep(steps[n].at, base)
	}
	return base.kind, base.data, nil
}

// keep caches results, trees above all; when the cache is full, it is emptied.
func (p *pack) keep(off int64, c cached) {
	if len(c.data) > maxHeld/16 {
		return
	}
	if p.held += len(c.data); p.cache == nil || p.held > maxHeld {
		p.cache, p.held = map[int64]cached{}, len(c.data)
	}
	p.cache[off] = c
}

// entry reads one entry: an object, or a difference and where its base is.
func (p *pack) entry(s *store, off int64) (k kind, base int64, data []byte, err error) {
	r := bufio.NewReaderSize(io.NewSectionReader(p.data, off, p.size-off), 4<<10)
	c, err := r.ReadByte()
	if err != nil {
		return 0, 0, nil, damaged("%s: %v", p.name, err)
	}
	k = kind(c >> 4 & 7)
	size := int64(c & 15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil || shift > 40 {
			return 0, 0, nil, damaged("%s: the size of an object", p.name)
		}
		size |= int64(c&0x7f) << shift
	}
	switch k {
	case kindCommit, kindTree, kindBlob, kindTag:
	case kindOffset:
		back := int64(0)
		for n := 0; ; n++ {
			if c, err = r.ReadByte(); err != nil || n > 8 {
				return 0, 0, nil, damaged("%s: where a base is", p.name)
			}
			back = back<<7 | int64(c&0x7f)
			if c&0x80 == 0 {
				break
			}
			back++
		}
		if base = off - back; back <= 0 || base < 12 {
			return 0, 0, nil, damaged("%s: a base lies outside", p.name)
		}
	case kindRef:
		var i id
		if _, err := io.ReadFull(r, i[:]); err != nil {
			return 0, 0, nil, damaged("%s: %v", p.name, err)
		}
		var found bool
		if base, found, err = p.find(s.root, i); err != nil || !found {
			return 0, 0, nil, errors.Join(damaged("%s: a base is missing", p.name), err)
		}
	default:
		return 0, 0, nil, damaged("%s: an object of an unknown kind", p.name)
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return 0, 0, nil, damaged("%s: %v", p.name, err)
	}
	data, err = s.inflate(z, size)
	return k, base, data, err
}

// apply builds an object from its base and a difference.
func (s *store) apply(base, delta []byte) ([]byte, error) {
	bad := damaged("a difference does not fit its base")
	number := func() (n int64, ok bool) {
		for shift := 0; shift < 56 && len(delta) > 0; shift += 7 {
			c := delta[0]
			delta = delta[1:]
			n |= int64(c&0x7f) << shift
			if c&0x80 == 0 {
				return n, true
			}
		}
		return 0, false
	}
	from, ok := number()
	size, okay := number()
	if !ok || !okay || from != int64(len(base)) {
		return nil, bad
	}
	if err := s.take(size); err != nil {
		return nil, err
	}
	out := make([]byte, 0, size)
	for len(delta) > 0 {
		c := delta[0]
		delta = delta[1:]
		if c&0x80 == 0 { // bytes of the difference itself
			n := int(c)
			if n == 0 || n > len(delta) || len(out)+n > int(size) {
				return nil, bad
			}
			out = append(out, delta[:n]...)
			delta = delta[n:]
			continue
		}
		var at, n int
		for bit := range 7 {
			if c&(1<<bit) == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, bad
			}
			if bit < 4 {
				at |= int(delta[0]) << (8 * bit)
			} else {
				n |= int(delta[0]) << (8 * (bit - 4))
			}
			delta = delta[1:]
		}
		if n == 0 {
			n = 0x10000
		}
		if at > len(base) || n > len(base)-at || len(out)+n > int(size) {
			return nil, bad
		}
		out = append(out, base[at:at+n]...)
	}
	if int64(len(out)) != size {
		return nil, bad
	}
	return out, nil
}
