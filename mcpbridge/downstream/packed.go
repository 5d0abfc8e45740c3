package downstream

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"math"
	"net/http"
	"net/netip"
	"sync"

	"github.com/yaya-ai/yaya/internal/accept"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/netaddr"
)

// packed is a large result with the brace that ends its response, compressed once for all
// clients. The response begins with the id of the request, so packed holds the part of a gzip
// member (RFC 1952) that follows this beginning: the beginning goes out as a stored block of
// DEFLATE (RFC 1951, 3.2.4), which ends at a byte boundary. The response is a single member,
// because Python's httpx ignores all members after the first.
//
// Only lists of tools are packed. Compression lets an attacker guess a secret in a response by
// its length if the response also contains text that the attacker chooses for each request
// (BREACH). A list of tools contains nothing from the request: the id is outside the compressed
// blocks, and the list is the same for all requests of a profile. It contains no secrets either;
// results of calls may, and are never compressed.
type packed struct {
	blocks []byte
	size   uint32
	sum    uint32 // of the uncompressed bytes
	// CRC-32 is affine in its initial value: shift has the effect of each bit of it, so the sum
	// of a whole response needs no second pass over megabytes.
	shift [32]uint32
}

// pack compresses a result. It returns nil if that saves nothing.
func pack(result []byte) *packed {
	if len(result) > math.MaxInt32 {
		return nil
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil // cannot be: it is a level
	}
	_, _ = w.Write(result) // into memory
	_, _ = w.Write(brace)
	_ = w.Close()
	if b.Len() >= len(result)/2 {
		return nil
	}
	p := &packed{blocks: bytes.Clone(b.Bytes()), size: uint32(len(result) + len(brace))} //nolint:gosec // checked above
	sum := func(from uint32) uint32 {
		return crc32.Update(crc32.Update(from, crc32.IEEETable, result), crc32.IEEETable, brace)
	}
	p.sum = sum(0)
	for bit := range p.shift {
		p.shift[bit] = sum(1<<bit) ^ p.sum
	}
	return p
}

var (
	brace      = []byte{'}'}
	gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255} // no time, no name, unknown system
)

// response returns the gzip form of head, the result and the brace; nil if head is too long for
// a stored block.
func (p *packed) response(head []byte) parts {
	if len(head) > math.MaxUint16 {
		return nil
	}
	n := uint16(len(head)) //nolint:gosec // checked above
	start := append(make([]byte, 0, len(gzipHeader)+5+len(head)), gzipHeader...)
	start = append(start, 0) // not the last block, stored
	start = binary.LittleEndian.AppendUint16(start, n)
	start = binary.LittleEndian.AppendUint16(start, ^n)
	start = append(start, head...)
	sum, from := p.sum, crc32.ChecksumIEEE(head)
	for bit, effect := range p.shift {
		if from>>bit&1 == 1 {
			sum ^= effect
		}
	}
	end := binary.LittleEndian.AppendUint32(make([]byte, 0, 8), sum)
	end = binary.LittleEndian.AppendUint32(end, uint32(n)+p.size)
	return parts{start, p.blocks, end}
}

// rendered is a list of tools in the form of one era.
type rendered struct {
	plain  []byte
	packed func() *packed // compresses at the first call; later calls return the same
}

func newRendered(plain []byte) *rendered {
	return &rendered{plain, sync.OnceValue(func() *packed { return pack(plain) })}
}

// writeList writes a response with a list of tools, compressed if the client accepts that.
func writeList(w http.ResponseWriter, r *http.Request, list *rendered, out parts) {
	if len(out) != 3 || len(list.plain) <= intake.Small {
		write(w, http.StatusOK, out...)
		return
	}
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if !local(r) && accept.Gzip(r.Header["Accept-Encoding"]) {
		if p := list.packed(); p != nil {
			if small := p.response(out[0]); small != nil {
				h["Content-Encoding"] = []string{"gzip"}
				out = small
			}
		}
	}
	write(w, http.StatusOK, out...)
}

// local reports whether a request comes from a program of this machine, and not from a proxy on
// it. There, copying a list of 3 MB takes about 1 ms, and decompressing it 10 to 20 ms.
func local(r *http.Request) bool {
	if netaddr.Forwarded(r.Header) {
		return false
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err != nil || at.Addr().Unmap().IsLoopback() // an error: a Unix socket
}
