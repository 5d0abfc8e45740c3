// Package members decodes JSON objects that may have the members of a struct, and no others.
package members

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Decode decodes an object into the struct that to points to. For a member that the struct does
// not have, the error names those that it has. Other errors are those of encoding/json.
func Decode(raw []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(to)
	if err == nil {
		return nil
	}
	quoted, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !unknown {
		return err
	}
	return fmt.Errorf("unknown member %s; the known ones are %s", quoted, strings.Join(names(reflect.TypeOf(to).Elem()), ", "))
}

// names returns the members of a struct, in the order of its fields.
func names(t reflect.Type) (out []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			out = append(out, names(f.Type)...)
		case !f.IsExported() || name == "-":
		case name == "":
			out = append(out, f.Name)
		default:
			out = append(out, name)
		}
	}
	return out
}
