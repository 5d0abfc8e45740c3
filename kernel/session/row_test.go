package session

import (
	"testing"
	"unsafe"
)

// OP-101: the index's row of a session stays within the memory that Go
// allocates in one piece of 96 bytes; one more field would take 112.
func TestSizeOfARow(t *testing.T) {
	if got := unsafe.Sizeof(row{}); got > 96 {
		t.Errorf("a row has %d bytes, want at most 96", got)
	}
}
