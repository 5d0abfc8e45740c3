package jsonrpc

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FID-8: a batch is split into its messages, byte for byte.
func TestBatch(t *testing.T) {
	for _, tc := range []struct {
		name, in, want string
		err            error
	}{
		{"two", " [ {\"a\": 1} ,\n[2] ] ", `{"a": 1}|[2]`, nil},
		{"one", `[1]`, `1`, nil},
		{"empty", `[ ]`, "", ErrInvalid},
		{"not an array", `{}`, "", ErrSyntax},
		{"cut off", `[{}`, "", ErrSyntax},
		{"no element", `[{},]`, "", ErrSyntax},
		{"something behind it", `[{}]x`, "", ErrSyntax},
		{"too many", `[` + strings.Repeat("1,", MaxBatch) + `1]`, "", ErrInvalid},
		{"a member twice", `[{"a":1,"a":2}]`, "", ErrSyntax},
	} {
		got, err := Batch([]byte(tc.in))
		if !errors.Is(err, tc.err) || (err == nil && string(bytes.Join(got, []byte("|"))) != tc.want) {
			t.Errorf("%s: got %s, %v, want %s, %v", tc.name, bytes.Join(got, []byte("|")), err, tc.want, tc.err)
		}
	}
}
