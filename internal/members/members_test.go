package members

import (
	"strings"
	"testing"
)

type inner struct {
	Deep string `json:"deep"`
}

type outer struct {
	inner
	First  string `json:"first,omitempty"`
	Plain  int
	Hidden string `json:"-"`
	own    string
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		`{"first":"a","Plain":1,"deep":"d"}`:     "",
		`{"frist":"a"}`:                          `unknown member "frist" (did you mean "first"?); the known ones are deep, first, Plain`,
		`{"firstly":"a"}`:                        `(did you mean "first"?)`,
		`{"other":"a"}`:                          `unknown member "other"; the known ones are`,
		`{"` + strings.Repeat("x", 100) + `":1}`: `; the known ones are`,
		`{"Hidden":"a"}`:                         `unknown member "Hidden"`,
		`{"first":1}`:                            "cannot unmarshal number",
		`[`:                                      "unexpected EOF",
	} {
		var to outer
		to.own = "kept"
		err := Decode([]byte(in), &to)
		if want == "" && (err != nil || to.First != "a" || to.Deep != "d" || to.Plain != 1 || to.own != "kept") {
			t.Errorf("Decode(%s) = %+v, %v; want all members and no error", in, to, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Decode(%s) = %v, want an error with %q", in, err, want)
		}
	}
}
