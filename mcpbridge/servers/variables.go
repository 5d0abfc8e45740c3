package servers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

var (
	envRef      = lazyregexp.New(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	opencodeRef = lazyregexp.New(`\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	dollarRef   = lazyregexp.New(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	bareRef     = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	continueRef = lazyregexp.New(`\$\{\{\s*(?:secrets|inputs)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)
	// foreignRef are references that only their client can resolve.
	foreignRef = lazyregexp.New(`\$\{(?:file|command|config|localEnv):[^}]*\}|\{file:[^}]*\}|\$\{\{[^}]*\}\}`)
)

// canonical rewrites the format's own variable syntax to ${NAME} and ${NAME:-default}. A
// reference that yaya cannot resolve is an error of the entry, since it would reach the server
// as plain text.
func (e *entry) canonical(key, s string) string {
	if dialects[e.format].literal || !strings.ContainsAny(s, "${`\\") {
		return s
	}
	if e.format == FormatYaya {
		return envRef().ReplaceAllString(s, "$${$1}")
	}
	in := s
	s, err := dialects[e.format].canonical(s)
	if err != nil {
		e.errs = append(e.errs, fmt.Errorf("%q %w", key, err))
	}
	if ref := foreignRef().FindString(s); ref != "" && e.format != FormatClaudeCode && e.format != FormatClaudeDesktop {
		e.errs = append(e.errs, fmt.Errorf("%q has %s, which only %s can resolve; use an environment variable, ${NAME}", key, ref, e.format.Client()))
	}
	e.rewrote = e.rewrote || s != in
	return s
}

// canonical rewrites the variables of a format.
func (d dialect) canonical(s string) (string, error) {
	if d.variables != nil {
		return d.variables(s)
	}
	s = envRef().ReplaceAllString(s, "$${$1}")
	unset := ""
	if d.unsetIsEmpty {
		unset = ":-"
		s = bareRef().ReplaceAllString(s, "$${$1:-}")
	}
	if d.dollar {
		s = dollarRef().ReplaceAllString(s, "$${$1"+unset+"}")
	}
	return s, nil
}

func fromOpencode(s string) (string, error) {
	return opencodeRef().ReplaceAllString(envRef().ReplaceAllString(s, "$${$1}"), "$${$1}"), nil
}

func fromContinue(s string) (string, error) {
	return continueRef().ReplaceAllString(s, "$${$1}"), nil
}

// shellRef matches the text that may follow a variable's name inside the braces in crush's
// shell syntax and that yaya understands: nothing, or a default.
var shellRef = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*)(:-[^$` + "`" + `]*|:\?.*|\?.*)?$`)

// fromShell rewrites a value that crush expands like a shell. yaya runs no commands for this,
// so a value that needs one is an error, and so is syntax that yaya does not support.
func fromShell(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, "$(") || s[i] == '`':
			return s, errors.New("contains the output of a command, but yaya runs no commands when it reads a file; put the output into an environment variable")
		case s[i] == '\\' && len(rest) > 1 && strings.IndexByte("$`\\", rest[1]) >= 0:
			i++
			if strings.HasPrefix(rest[1:], "${") {
				return s, errors.New(`has a "${" that is not a variable, which yaya cannot write; use an environment variable with that value`)
			}
			b.WriteByte(rest[1])
		case strings.HasPrefix(rest, "${"):
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				return s, errors.New(`has a "${" without its "}"`)
			}
			m := shellRef().FindStringSubmatch(rest[2:end])
			if m == nil {
				return s, fmt.Errorf("has %s, but yaya supports only ${NAME} and ${NAME:-default}", rest[:end+1])
			}
			i += end
			switch {
			case m[2] == "":
				b.WriteString("${" + m[1] + ":-}")
			case strings.HasPrefix(m[2], ":-"):
				b.WriteString(rest[:end+1])
			default: // it must be set, as each variable must that has no default
				b.WriteString("${" + m[1] + "}")
			}
		default:
			if name := dollarRef().FindString(rest); name != "" && strings.HasPrefix(rest, name) {
				b.WriteString("${" + name[1:] + ":-}")
				i += len(name) - 1
				continue
			}
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
