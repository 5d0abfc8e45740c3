// Package masked says how secrets are shown, and takes back what was shown.
package masked

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Mask is what is shown of a secret: that there is one, and nothing of it.
const Mask = "****"

// Is reports whether a value is a mask or has one in it, and so cannot be meant as a
// secret: four asterisks in a row, not three and not five.
func Is(s string) bool {
	for {
		i := strings.IndexByte(s, '*')
		if i < 0 {
			return false
		}
		rest := strings.TrimLeft(s[i:], "*")
		if len(s)-i-len(rest) == len(Mask) {
			return true
		}
		s = rest
	}
}

// Restore returns wanted with every part of it that is as it was shown replaced by
// what it really is: a masked value that comes back changes nothing, also beside
// others that were changed. Members are compared by name, elements of arrays by place.
func Restore(wanted, shown, really json.RawMessage) (json.RawMessage, error) {
	var w, s, r any
	for _, x := range []struct {
		raw []byte
		v   *any
	}{{wanted, &w}, {shown, &s}, {really, &r}} {
		dec := json.NewDecoder(bytes.NewReader(x.raw))
		dec.UseNumber()
		if err := dec.Decode(x.v); err != nil {
			return nil, err
		}
	}
	return json.Marshal(restore(w, s, r))
}

func restore(wanted, shown, really any) any {
	if reflect.DeepEqual(wanted, shown) {
		return really
	}
	switch w := wanted.(type) {
	case map[string]any:
		s, ok1 := shown.(map[string]any)
		r, ok2 := really.(map[string]any)
		if !ok1 || !ok2 {
			return wanted
		}
		for k, v := range w {
			if old, known := s[k]; known {
				w[k] = restore(v, old, r[k])
			}
		}
	case []any:
		s, ok1 := shown.([]any)
		r, ok2 := really.([]any)
		for i := range w {
			if ok1 && ok2 && i < len(s) && i < len(r) {
				w[i] = restore(w[i], s[i], r[i])
			}
		}
	}
	return wanted
}
