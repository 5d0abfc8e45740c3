package jsonrpc

import (
	"bytes"
	"hash/maphash"
)

// name is the position of a member's name in a document, without its quotes.
type name struct {
	start, end uint32
	hash       uint32 // of the decoded name; in a table only, and never 0 there
	escaped    bool
}

// in returns the decoded name.
func (n name) in(data []byte) []byte {
	if n.escaped {
		return []byte(Unquote(data[n.start:n.end]))
	}
	return data[n.start:n.end]
}

// keySet finds a repeated member name. Few names are compared one by one, many, and
// those that are written with escapes, through a hash table. It keeps no copy of a
// name: the table of a million members has some 32 MiB, whatever their names are.
type keySet struct {
	few   [16]name
	n     int
	table []name // open addressing; a hash of 0 is a free place
}

// seed prevents others from choosing names that collide.
var seed = maphash.MakeSeed()

// add adds a name; it reports false when the name exists.
func (k *keySet) add(data []byte, key name) bool {
	if k.table == nil {
		if !key.escaped && k.n < len(k.few) {
			for _, have := range k.few[:k.n] {
				if bytes.Equal(data[have.start:have.end], data[key.start:key.end]) {
					return false
				}
			}
			k.few[k.n] = key
			k.n++
			return true
		}
		k.grow(data, k.few[:k.n])
	} else if 4*k.n >= 3*len(k.table) {
		k.grow(data, k.table)
	}
	if !k.put(data, key) {
		return false
	}
	k.n++
	return true
}

// grow moves names into a table that has twice the places.
func (k *keySet) grow(data []byte, from []name) {
	was := k.table != nil
	k.table = make([]name, max(2*len(from), 64))
	for _, key := range from {
		if !was || key.hash != 0 {
			k.put(data, key)
		}
	}
}

// put finds the place of a name; it reports false when the name has it.
func (k *keySet) put(data []byte, key name) bool {
	if key.hash == 0 {
		key.hash = uint32(maphash.Bytes(seed, key.in(data))) | 1 //nolint:gosec // a part of it is enough
	}
	mask := len(k.table) - 1
	for i := int(key.hash>>1) & mask; ; i = (i + 1) & mask {
		switch have := &k.table[i]; {
		case have.hash == 0:
			*have = key
			return true
		case have.hash == key.hash && bytes.Equal(have.in(data), key.in(data)):
			return false
		}
	}
}
