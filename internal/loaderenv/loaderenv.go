// Package loaderenv knows the environment variables that make a program load or run
// something else. No program of others gets one from a configuration.
package loaderenv

import (
	"slices"
	"strings"
)

var names = []string{
	"NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB",
	"RUBYOPT", "RUBYLIB", "GIT_SSH", "GIT_SSH_COMMAND", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GCONV_PATH", "IFS", "SHELLOPTS",
}

// Is reports whether a variable is one of them, in any case of its letters.
func Is(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || slices.Contains(names, name)
}
