package callargs

import (
	"encoding/json"
	"strings"
	"testing"
)

// USE-4: a list that is longer than a line has a line for each element, as the JSON that it is, so that
// no text of an element looks like another one.
func TestLongListHasLines(t *testing.T) {
	long := strings.Repeat("x", longList)
	for _, c := range []struct{ name, args, want string }{
		{"short", `{"a":["b","c"]}`, `a: ["b","c"]`},
		{"long", `{"a":["` + long + `", {"b":[1, 2]},3]}`, `a:|"` + long + `"|{"b":[1, 2]}|3`},
		{"lines within", `{"a":["` + long + `\nb","c"]}`, `a:|"` + long + `\nb"|"c"`},
		{"long object", `{"a":{"b":"` + long + `"}}`, `a: {"b":"` + long + `"}`},
		{"empty", `{"a":[` + strings.Repeat(" ", longList) + `]}`, `a: [` + strings.Repeat(" ", longList) + `]`},
		{"text", `{"a":"[` + long + `]"}`, `a: [` + long + `]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, l := range Lines("tool", json.RawMessage(c.args)) {
				got = append(got, strings.TrimSuffix(l.Head+l.Text, " "))
			}
			if s := strings.Join(got, "|"); s != c.want {
				t.Errorf("the lines are %s, want %s", s, c.want)
			}
		})
	}
}
