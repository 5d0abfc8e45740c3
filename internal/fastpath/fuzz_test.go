package fastpath_test

import (
	"fmt"
	"net/http"
	"reflect"
	"testing"
)

// Both paths give clients and handlers the same, whatever arrives.
func FuzzRoads(f *testing.F) {
	for _, c := range cases() {
		if len(c) < 2000 {
			f.Add([]byte(c), byte(0))
		}
	}
	h := http.HandlerFunc(echo)
	slow, fast := newRoad(f, false, h), newRoad(f, true, h)
	f.Fuzz(func(t *testing.T, sent []byte, pieces byte) {
		want := answers(slow.exchange(sent, 0), http.MethodPost)
		got := answers(fast.exchange(sent, int(pieces)), http.MethodPost)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q in pieces of %d: got\n%.2000s\nwant\n%.2000s", sent, pieces, fmt.Sprint(got), fmt.Sprint(want))
		}
	})
}
