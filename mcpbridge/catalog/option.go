package catalog

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/masked"
)

// Option is one way to use a server: a package that yaya starts, or a remote.
type Option struct {
	ID         string // npm, pypi, oci, nuget, mcpb or remote; npm-2 for a second one
	Kind       string
	Identifier string // of the package, or the URL of the remote, with its {variables}
	Version    string
	Runner     *Runner // nil for a remote and a bundle
	Refused    string  // why yaya does not use it, "" if it does
	Inputs     []Asked

	pack   *Package
	remote *Remote
}

// Asked is a value that the user gives.
type Asked struct {
	Name        string
	Use         string // variable, argument, header or address
	Description string
	Required    bool
	Secret      bool
	Format      string // string, number, boolean, filepath
	Default     string
	Placeholder string
	Choices     []string
	Repeated    bool
}

// The kinds of options, as registryType has them, and that of a remote.
const (
	kindNPM    = "npm"
	kindPyPI   = "pypi"
	kindOCI    = "oci"
	kindNuGet  = "nuget"
	kindBundle = "mcpb"
	kindRemote = "remote"
)

// Options returns the ways to use a server, in the order of the entry.
func (e Entry) Options() []Option {
	var out []Option
	add := func(o Option) {
		o.ID = o.Kind
		n := 1
		for slices.ContainsFunc(out, func(x Option) bool { return x.ID == o.ID }) {
			n++
			o.ID = o.Kind + "-" + strconv.Itoa(n)
		}
		f := &form{}
		if err := o.words(f, new(made)); err != nil {
			o.Refused = err.Error()
		} else {
			o.Inputs = f.asked
		}
		out = append(out, o)
	}
	for i := range e.Server.Packages {
		p := &e.Server.Packages[i]
		kind := p.RegistryType
		if !kindPattern().MatchString(kind) {
			kind = "unknown"
		}
		o := Option{Kind: kind, Identifier: cut.Text(p.Identifier, 300), Version: cut.Text(p.Version, 128), pack: p}
		if r, ok := runners[p.RegistryType]; ok {
			o.Runner = &r
		}
		add(o)
	}
	for i := range e.Server.Remotes {
		r := &e.Server.Remotes[i]
		add(Option{Kind: kindRemote, Identifier: cut.Text(r.URL, 500), remote: r})
	}
	return out
}

var kindPattern = lazyregexp.New(`^[a-z][a-z0-9]{0,15}$`)

// form collects what an option asks for or, with given values, fills them in. Both walk the
// option in the same order, so that the same input has the same name.
type form struct {
	asked  []Asked
	fill   bool
	given  map[string][]string
	used   map[string]bool // names of given values that were taken
	secret func(name, value string) string
	paths  []string // that the user has given
	hosts  []string // of addresses that the user has given
}

var askedPattern = lazyregexp.New(`[^A-Za-z0-9_.-]+`)

// ask adds an input under a name of its own, and returns its values: none for one that is not
// given and need not be.
func (f *form) ask(name, use string, in Input, repeated bool) ([]piece, error) {
	name = strings.Trim(askedPattern().ReplaceAllString(cut.Bytes(name, 64), "-"), "-.")
	if name == "" {
		name = use
	}
	for base, n := name, 2; slices.ContainsFunc(f.asked, func(a Asked) bool { return a.Name == name }); n++ {
		name = base + "-" + strconv.Itoa(n)
	}
	if len(in.Choices) > maxChoices {
		return nil, fmt.Errorf("%s has more than %d choices", name, maxChoices)
	}
	for _, text := range append([]string{in.Default}, in.Choices...) {
		if err := fixed(name, text); err != nil {
			return nil, err
		}
	}
	format := in.Format
	if !slices.Contains([]string{"number", "boolean", "filepath"}, format) {
		format = "string"
	}
	secret := in.Secret || format == "string" && len(in.Choices) == 0 && masked.SecretName(name) && !masked.About(name, "")
	a := Asked{
		Name: name, Use: use, Description: cut.Text(in.Description, maxTexts), Required: in.Required, Secret: secret, Format: format,
		Default: in.Default, Placeholder: cut.Text(in.Placeholder, 200), Choices: in.Choices, Repeated: repeated,
	}
	f.asked = append(f.asked, a)
	if len(f.asked) > maxInputs {
		return nil, fmt.Errorf("it asks for more than %d values", maxInputs)
	}
	if !f.fill {
		return []piece{{text: in.Default}}, nil
	}
	values, by := f.given[name]
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	if by {
		f.used[name] = true
	}
	switch {
	case len(values) > 0:
	case in.Default != "":
		values, by = []string{in.Default}, false
	case in.Required:
		return nil, fmt.Errorf("%s is missing: %s", name, cut.Line(cmpText(in.Description, "the server needs it"), 200))
	default:
		return nil, nil
	}
	if len(values) > 1 && !repeated {
		return nil, fmt.Errorf("%s takes one value", name)
	}
	out := make([]piece, 0, len(values))
	for _, v := range values {
		if err := a.check(v); err != nil {
			return nil, err
		}
		if a.Secret && by && !strings.HasPrefix(v, "${secret:") {
			v = f.secret(name, v)
		} else {
			f.note(a, v, by)
		}
		p := piece{text: v}
		if by {
			p.name = name
		}
		out = append(out, p)
	}
	return out, nil
}

func cmpText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// note remembers the paths and hosts of a value, for the sandbox.
func (f *form) note(a Asked, v string, by bool) {
	if by && strings.HasPrefix(v, "/") && a.Use == "argument" || by && a.Format == "filepath" {
		f.paths = append(f.paths, v)
	}
	if u, err := url.Parse(v); err == nil && by && u.Host != "" && !strings.Contains(u.Host, "*") && (u.Scheme == "http" || u.Scheme == "https") {
		f.hosts = append(f.hosts, u.Host)
	}
}

// check returns an error if a given value does not fit. It does not repeat the value of a secret.
func (a Asked) check(v string) error {
	shown := cut.Text(v, 60)
	if a.Secret {
		shown = "the value"
	}
	switch {
	case len(v) > maxValue:
		return fmt.Errorf("%s has %d bytes, %d at most", a.Name, len(v), maxValue)
	case Odd(v):
		return fmt.Errorf("%s has control or invisible characters", a.Name)
	case len(a.Choices) > 0 && !slices.Contains(a.Choices, v):
		return fmt.Errorf("%s: %q is not one of %s", a.Name, shown, cut.Text(strings.Join(a.Choices, ", "), 300))
	case a.Format == "number" && !isNumber(v):
		return fmt.Errorf("%s: %q is not a number", a.Name, shown)
	case a.Format == "boolean" && v != "true" && v != "false":
		return fmt.Errorf("%s: %q is neither true nor false", a.Name, shown)
	case a.Format == "filepath" && !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "${"):
		return fmt.Errorf("%s: %q is not an absolute path", a.Name, shown)
	}
	return nil
}

func isNumber(v string) bool {
	_, err := strconv.ParseFloat(v, 64)
	return err == nil
}

// fixed refuses a text of an entry that would not be what is shown: yaya expands references
// in an entry of its configuration, to the user's secrets and environment.
func fixed(what, text string) error {
	what = cut.Text(what, 80)
	switch {
	case len(text) > maxValue:
		return fmt.Errorf("a value of %q has %d bytes, %d at most", what, len(text), maxValue)
	case Odd(text):
		return fmt.Errorf("a value of %q has control or invisible characters", what)
	case strings.Contains(text, "${"):
		return fmt.Errorf("a value of %q has a reference (${…}), by which it would get your secrets or your environment", what)
	}
	return nil
}

var braces = lazyregexp.New(`\{([^{}]*)\}`)

// piece is a part of a text: its publisher's, or a value that the user has given.
type piece struct {
	text string
	name string // of the input that the user has given, "" for the publisher's
}

// value is a text that was made of pieces.
type value struct {
	text   string
	shown  string // with the names of inputs in the places of what the user has given
	theirs bool   // whether a part of it is the publisher's
}

// join makes a text of its pieces. yaya expands references in it, so that each has to lie within
// one value of the user: a choice $ before {secret:openai} would send a secret of his away.
func join(what string, pieces []piece) (v value, err error) {
	var text, shown strings.Builder
	var own [][2]int // from where to where the user's values are
	for _, p := range pieces {
		from := text.Len()
		text.WriteString(p.text)
		if p.name == "" {
			shown.WriteString(p.text)
			v.theirs = v.theirs || p.text != ""
			continue
		}
		shown.WriteString("{" + p.name + "}")
		own = append(own, [2]int{from, text.Len()})
	}
	v.text, v.shown = text.String(), shown.String()
	for at := 0; ; {
		i := strings.Index(v.text[at:], "${")
		if i < 0 {
			return v, nil
		}
		from := at + i
		at = from + len("${")
		to := at
		if end := strings.IndexByte(v.text[at:], '}'); end >= 0 {
			to = at + end + 1
		}
		if !slices.ContainsFunc(own, func(o [2]int) bool { return o[0] <= from && to <= o[1] }) {
			return value{}, fmt.Errorf("a value of %q becomes a reference (${…}), by which it would get your secrets or your environment", cut.Text(what, 80))
		}
	}
}

// joined makes a text of each piece alone.
func joined(what string, pieces []piece) (out []value, err error) {
	for _, p := range pieces {
		v, err := join(what, []piece{p})
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// input returns the values of an input of an entry: its fixed value with its variables, or what is
// asked for.
func (f *form) input(name, use string, in Input, repeated bool) ([]value, error) {
	if in.Value == "" {
		pieces, err := f.ask(name, use, in, repeated)
		if err != nil {
			return nil, err
		}
		return joined(name, pieces)
	}
	variables := in.Variables
	if in.Secret || use != "address" && masked.SecretName(name) { // so are its parts: Bearer {key}
		variables = maps.Clone(variables)
		for key, v := range variables {
			v.Secret = v.Secret || len(v.Choices) == 0
			variables[key] = v
		}
	}
	out, absent, err := f.template(name, use, in.Value, variables)
	if err != nil || absent {
		return nil, err
	}
	return []value{out}, nil
}

// template replaces the variables of a text. absent says that one has no value and needs none.
func (f *form) template(name, use, text string, variables map[string]Input) (out value, absent bool, err error) {
	if err := fixed(name, text); err != nil {
		return value{}, false, err
	}
	if len(variables) > maxInputs {
		return value{}, false, fmt.Errorf("%s has more than %d variables", cut.Text(name, 80), maxInputs)
	}
	known := map[string]piece{}
	var pieces []piece
	last := 0
	for _, at := range braces().FindAllStringIndex(text, -1) {
		key := text[at[0]+1 : at[1]-1]
		in, ok := variables[key]
		if !ok {
			continue
		}
		pieces = append(pieces, piece{text: text[last:at[0]]})
		last = at[1]
		p, ok := known[key]
		switch {
		case ok:
		case in.Value != "":
			if err := fixed(key, in.Value); err != nil {
				return value{}, false, err
			}
			p.text = in.Value
		default:
			values, err := f.ask(key, use, in, false)
			if err != nil {
				return value{}, false, err
			}
			if len(values) == 0 {
				absent = true
			} else {
				p = values[0]
			}
		}
		known[key] = p
		pieces = append(pieces, p)
	}
	out, err = join(name, append(pieces, piece{text: text[last:]}))
	return out, absent, err
}
