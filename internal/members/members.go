// Package members decodes JSON objects that may have the members of a struct, and no others.
package members

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
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
	name, nerr := strconv.Unquote(quoted)
	if nerr != nil {
		name = quoted
	}
	return fmt.Errorf("unknown member %s%s", quoted, Known(name, to))
}

// Known ends an error about an unknown member: it names the closest member of the struct that of
// points to, if one is close, and all of them.
func Known(name string, of any) string {
	return Among(name, names(reflect.TypeOf(of).Elem()))
}

// Among is [Known] for a name that should be one of a list.
func Among(name string, known []string) string {
	return Meant(name, known) + "; the known ones are " + strings.Join(known, ", ")
}

// Meant asks, at the end of an error about an unknown name, whether the closest known one was meant.
// It is "" if none is close.
func Meant(name string, known []string) string {
	if c := Closest(name, known); c != "" {
		return fmt.Sprintf(" (did you mean %q?)", c)
	}
	return ""
}

// Closest returns the name that another one was probably meant to be, "" if none is close: about
// a third of its letters differ at most, or one begins with the other. Of equally close names, the
// one with fewer differing letters is meant: gpt-5-minni begins with gpt-5, and means gpt-5-mini.
func Closest(name string, known []string) string {
	name = strings.ToLower(name)
	best, least, fewest := "", min(len(name)+1, maxCompared)/3, maxCompared+1
	for _, k := range known {
		lower := strings.ToLower(k)
		letters := distance(name, lower)
		d := letters
		if len(name) > 2 && len(lower) > 2 && (strings.HasPrefix(lower, name) || strings.HasPrefix(name, lower)) {
			d = min(d, 1)
		}
		if d < least || (d == least && letters < fewest) {
			best, least, fewest = k, d, letters
		}
	}
	return best
}

// maxCompared bounds the names that are compared, in bytes.
const maxCompared = 64

// distance is the number of bytes to insert, remove or replace that makes one text of another.
func distance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return maxCompared
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := above
			if a[i] != b[j] {
				change++
			}
			above = row[j+1]
			row[j+1] = min(change, above+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// names returns the members of a struct, in the order of its fields.
func names(t reflect.Type) (out []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			out = append(out, names(f.Type)...)
		case !f.IsExported() || name == "-" || slices.Contains(out, name):
		case name == "":
			out = append(out, f.Name)
		default:
			out = append(out, name)
		}
	}
	return out
}
