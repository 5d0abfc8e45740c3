// Package loaderenv knows the environment variables that make a program load or run
// something else. No program of others gets one of [Is] from a configuration, and the
// entry of a catalogue sets none of [Loads].
package loaderenv

import (
	"slices"
	"strings"
)

var names = []string{
	"NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB",
	"RUBYOPT", "RUBYLIB", "GIT_SSH", "GIT_SSH_COMMAND", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GCONV_PATH", "IFS", "SHELLOPTS",
}

// further are variables that people set for programs that they know.
var further = []string{
	"GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_TEMPLATE_DIR",
	"GIT_DIR", "GIT_COMMON_DIR", "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER", "SSH_ASKPASS", "SUDO_ASKPASS",
	"PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "PROMPT_COMMAND", "PS4", "ZDOTDIR",
	"NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "PYTHONWARNINGS", "PYTHONBREAKPOINT", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX",
	"JDK_JAVA_OPTIONS", "CLASSPATH", "MAVEN_OPTS", "GRADLE_OPTS", "PERL5DB", "PERLLIB", "GEM_HOME", "GEM_PATH", "RUBYGEMS_GEMDEPS", "BUNDLE_GEMFILE",
	"DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE", "COR_ENABLE_PROFILING", "PHPRC", "PHP_INI_SCAN_DIR",
	"OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "GLIBC_TUNABLES", "GTK_MODULES", "GTK_PATH", "QT_PLUGIN_PATH",
	"GOFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS",
}

// beginnings are those of further variables.
var beginnings = []string{"GIT_CONFIG", "GIT_SSH", "COREPACK_", "CORECLR_", "COR_PROFILER", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "BASH_FUNC_"}

// Is reports whether a variable is one that no configuration sets, in any case of its letters.
func Is(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || slices.Contains(names, name)
}

// Loads reports whether a variable is one that an entry of a catalogue does not set: one of [Is], or
// one that you can set yourself, such as PAGER.
func Loads(name string) bool {
	upper := strings.ToUpper(name)
	return Is(name) || slices.Contains(further, upper) || slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(upper, b) })
}
