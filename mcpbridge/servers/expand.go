package servers

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/loaderenv"
)

// Scope resolves variables.
type Scope struct {
	Env       func(string) (string, bool)
	Home      string
	Workspace string // "" when there is none
	// Secret returns the value of a secret by its name. Without it, references to secrets are
	// errors.
	Secret  func(name string) (string, error)
	literal bool // nothing is a variable
	// Missed is called for each reference without a value. Optional.
	Missed func(error)
}

var variable = lazyregexp.New(`\$\{([^}]*)\}`)

// Expand resolves the variables of a server. An unset variable without a default is an error
// that names server and variable; in files of Claude Code it stays unexpanded, with a warning,
// as it does there. An unset secret is always an error. Variables of yaya itself (YAYA_…) never
// expand.
func (s Server) Expand(sc Scope) (Server, []string, error) {
	if dialects[s.Format].literal {
		s.Sandbox = expandSandbox(s.Sandbox, func(in string) string { return in }, sc.Home)
		return s, nil, s.check()
	}
	var warnings []string
	var bad error
	expand := func(in string) string {
		return variable().ReplaceAllStringFunc(in, func(ref string) string {
			out, err := sc.resolve(ref[2 : len(ref)-1])
			if err == nil {
				return out
			}
			if sc.Missed != nil {
				sc.Missed(err)
			}
			if !isSecretRef(ref) && (s.Format == FormatClaudeCode || s.Format == FormatClaudeDesktop) {
				warnings = append(warnings, fmt.Sprintf("server %q: %v; %s stays as it is", s.Name, err, ref))
				return ref
			}
			if bad == nil {
				bad = err
			}
			return ref
		})
	}
	written := s
	s = s.each(expand)
	s.Sandbox = expandSandbox(s.Sandbox, func(in string) string { return in }, sc.Home)
	if bad != nil {
		return s, warnings, bad
	}
	if err := written.unfit(sc); err != nil {
		return s, warnings, err
	}
	if strings.HasPrefix(s.Command, "~/") {
		s.Command = filepath.Join(sc.Home, s.Command[2:])
	}
	if strings.HasPrefix(s.Dir, "~/") {
		s.Dir = filepath.Join(sc.Home, s.Dir[2:])
	}
	return s, warnings, s.check()
}

// unfit returns an error if the value of a reference would change what surrounds it: in an
// address, where yaya inserts it as it is, it would end the path or break the request, and in a
// header it would begin another line. The error names the reference, not the value.
func (s Server) unfit(sc Scope) error {
	for _, m := range variable().FindAllStringSubmatch(s.URL, -1) {
		value, err := sc.resolve(m[1])
		if err != nil {
			continue // it stays as it is
		}
		if has := unfitForURL(value); has != "" {
			return fmt.Errorf("%s in its url contains %s: percent-encode the value (%%20 for a space, %%23 for #), or pass it in \"headers\"", referred(m[1]), has)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		for _, m := range variable().FindAllStringSubmatch(s.Headers[name], -1) {
			if value, err := sc.resolve(m[1]); err == nil && strings.ContainsFunc(value, isControl) {
				return fmt.Errorf("%s in its header %q contains a line break or another control character: set it without", referred(m[1]), name)
			}
		}
	}
	return nil
}

// referred names a reference for an error.
func referred(ref string) string {
	if name, ok := strings.CutPrefix(ref, secretPrefix); ok {
		return fmt.Sprintf("the secret %q", name)
	}
	name, _, _ := strings.Cut(ref, ":-")
	return fmt.Sprintf("the variable %q", name)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// unfitForURL names the first character that a value cannot have in an address, "" if all fit.
func unfitForURL(value string) string {
	for i, r := range value {
		switch {
		case r == ' ':
			return "a space"
		case r == '#':
			return "#, which ends an address"
		case r == '\n' || r == '\r':
			return "a line break"
		case r == '\t' || isControl(r):
			return "a control character"
		case r == '%' && !percentCode().MatchString(value[i:]):
			return "% without two hexadecimal digits"
		}
	}
	return ""
}

var percentCode = lazyregexp.New(`^%[0-9A-Fa-f]{2}`)

// each returns the server with f applied to every string that may contain variables.
func (s Server) each(f func(string) string) Server {
	s.Command, s.Dir, s.URL, s.EnvFile = f(s.Command), f(s.Dir), f(s.URL), f(s.EnvFile)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		s.Args[i] = f(s.Args[i])
	}
	if s.OAuth != nil {
		o := *s.OAuth
		o.Scopes = slices.Clone(o.Scopes)
		for _, p := range o.strings() {
			*p = f(*p)
		}
		s.OAuth = &o
	}
	s.Sandbox = expandSandbox(s.Sandbox, f, "")
	s.Roots = slices.Clone(s.Roots)
	for i := range s.Roots {
		s.Roots[i] = f(s.Roots[i])
	}
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			m[k] = f(m[k])
		}
	}
	return s
}

// secretPrefix begins a reference to one of the user's secrets: ${secret:NAME}.
const secretPrefix = "secret:"

func isSecretRef(ref string) bool { return strings.HasPrefix(ref, "${"+secretPrefix) }

// NamesSecret reports whether a string in an entry refers to a secret.
func NamesSecret(text string) bool { return strings.Contains(text, "${"+secretPrefix) }

// SecretNames returns the names of the secrets that a server refers to, in order of appearance
// and without duplicates.
func (s Server) SecretNames() []string {
	var out []string
	s.each(func(text string) string {
		for _, m := range variable().FindAllStringSubmatch(text, -1) {
			if name, ok := strings.CutPrefix(m[1], secretPrefix); ok {
				out = append(out, name)
			}
		}
		return text
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// OpenSecrets warns of the secrets in the command line of a server, "" if it has none: the
// system shows the command lines of all processes to all users.
func (s Server) OpenSecrets() string {
	names := Server{Command: s.Command, Args: s.Args}.SecretNames()
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(openSecrets+" %s in its command line: pass it in env", strings.Join(names, ", "))
}

const openSecrets = "every user of this machine can read the secret" //nolint:gosec // a sentence

// SaysOpen reports whether a note is one of [Server.OpenSecrets].
func SaysOpen(note string) bool { return strings.HasPrefix(note, openSecrets) }

func (sc Scope) resolve(ref string) (string, error) {
	if sc.Env == nil {
		sc.Env = func(string) (string, bool) { return "", false }
	}
	switch ref {
	case "workspaceFolder", "CLAUDE_PROJECT_DIR":
		if sc.Workspace == "" {
			return "", fmt.Errorf("${%s} has no value: yaya was not started in a workspace", ref)
		}
		return sc.Workspace, nil
	case "workspaceFolderBasename":
		return filepath.Base(sc.Workspace), nil
	case "userHome":
		return sc.Home, nil
	case "pathSeparator", "/":
		return string(filepath.Separator), nil
	}
	if name, ok := strings.CutPrefix(ref, secretPrefix); ok {
		if sc.Secret == nil {
			return "", fmt.Errorf("the secret %q cannot be used here", name)
		}
		return sc.Secret(name)
	}
	if id, ok := strings.CutPrefix(ref, "input:"); ok {
		name := "INPUT_" + strings.ToUpper(strings.Map(func(r rune) rune {
			if r == '-' || r == '.' || r == ' ' {
				return '_'
			}
			return r
		}, id))
		if v, ok := sc.Env(name); ok {
			return v, nil
		}
		return "", fmt.Errorf("the input %q has no value; set the environment variable %s", id, name)
	}
	name, def, hasDefault := strings.Cut(ref, ":-")
	if !strings.HasPrefix(name, "YAYA_") {
		if v, ok := sc.Env(name); ok && (v != "" || !hasDefault) {
			return v, nil
		}
	}
	if hasDefault {
		return def, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set; set it, or give it a default, as in ${NAME:-default}", name)
}

// ParseEnvFile reads KEY=value lines as VS Code and Cursor do: comments, an
// optional export, and quotes around the value.
func ParseEnvFile(data []byte) (map[string]string, error) {
	out := map[string]string{}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || key == "" {
			return nil, fmt.Errorf("line %d is not KEY=value", i+1)
		}
		if loaderenv.Is(key) {
			return nil, fmt.Errorf("line %d: the variable %s is refused", i+1, key)
		}
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		out[key] = value
	}
	return out, nil
}
