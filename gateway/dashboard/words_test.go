package dashboard_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/config"
)

const quoted = `'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"`

var (
	wordCall  = regexp.MustCompile(`\b(?:t|rich)\(\s*(` + quoted + `|[^)])`)
	countCall = regexp.MustCompile(`\bcount\((?:[^()'"]|\((?:[^()]|\([^()]*\))*\)|'[^']*')*?,\s*(` + quoted + `),\s*(` + quoted + `)`)
	blank     = regexp.MustCompile(`\{\w+\}`)
)

// texts returns those of the modules of the page, by text, each with a module that has it.
func texts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("page/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %v, %v, want the modules", files, err)
	}
	found := map[string]string{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "page/words.js" {
			continue
		}
		src := string(data)
		for _, m := range wordCall.FindAllStringSubmatch(src, -1) {
			text, ok := literal(m[1])
			if !ok {
				t.Errorf("%s: %q: want a text in quotes, which the tables can have", name, m[0])
				continue
			}
			found[text] = name
		}
		counts := countCall.FindAllStringSubmatch(src, -1)
		if want := len(regexp.MustCompile(`\bcount\(`).FindAllString(src, -1)); len(counts) != want {
			t.Errorf("%s: %d of %d calls of count have two texts in quotes", name, len(counts), want)
		}
		for _, m := range counts {
			one, ok := literal(m[1])
			many, ok2 := literal(m[2])
			if !ok || !ok2 || !strings.Contains(one, "{n}") || !strings.Contains(many, "{n}") {
				t.Errorf("%s: %q, want {n} in both", name, m[0])
			}
			found[many] = name
		}
	}
	return found
}

// literal returns the text of a string literal of JavaScript.
func literal(s string) (string, bool) {
	if len(s) < 2 || (s[0] != '\'' && s[0] != '"') {
		return "", false
	}
	body := s[1 : len(s)-1]
	if s[0] == '\'' {
		body = strings.ReplaceAll(strings.ReplaceAll(body, `\'`, `'`), `"`, `\"`)
	}
	var out string
	err := json.Unmarshal([]byte(`"`+body+`"`), &out)
	return out, err == nil
}

// said returns the texts that yaya sends and each language has, by the keys that said.js looks
// for, each with its source.
func said() map[string]string {
	all := map[string]string{}
	for _, k := range config.Keys {
		all["setting: "+k.Doc] = "the setting " + k.Name
		if k.Unset() != "" {
			all["setting: "+k.Unset()] = "the setting " + k.Name
		}
	}
	for _, p := range sandbox.Profiles() {
		all["sandbox: "+sandbox.About(p)] = "the profile " + p
	}
	for _, need := range sandbox.Need(math.MaxUint32 >> 1).Names() {
		all["sandbox: "+need] = "the sandbox"
	}
	for _, programs := range []string{"agents' commands", "checks of agents' work"} {
		all["sandbox: "+programs] = "daemon/sandboxreport.go"
	}
	for _, why := range []string{"devices are enrolled, or have lasting tokens", "auth.issuer admits others"} {
		all["traffic: "+why] = "daemon/traffic.go"
	}
	return all
}

// UI-01: each language has every text of the page, with the same values in it, and none that
// the page does not have.
func TestLanguagesAreComplete(t *testing.T) {
	want := texts(t)
	for text, from := range said() {
		want[text] = from
	}
	if len(want) < 50 {
		t.Fatalf("the page has %d texts, want all of it", len(want))
	}
	tables, err := filepath.Glob("page/*.json")
	if err != nil || len(tables) == 0 {
		t.Fatalf("Glob = %v, %v, want the tables", tables, err)
	}
	for _, name := range tables {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var table map[string]string
		if err := json.Unmarshal(data, &table); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for text, module := range want {
			got, ok := table[text]
			if !ok || got == "" {
				t.Errorf("%s lacks %q of %s", name, text, module)
				continue
			}
			a, b := blank.FindAllString(text, -1), blank.FindAllString(got, -1)
			slices.Sort(a)
			slices.Sort(b)
			if !slices.Equal(a, b) {
				t.Errorf("%s: %q has the values %v, want %v as in %q", name, got, b, a, text)
			}
		}
		for text := range table {
			if want[text] == "" {
				t.Errorf("%s has %q, which the page does not", name, text)
			}
		}
	}
}
