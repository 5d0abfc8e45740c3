package servers

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/loaderenv"
)

// basics are the variables of yaya's environment that every server's process gets.
var basics = []string{"PATH", "HOME", "LANG", "TMPDIR", "USER"}

// windows are those that programs on Windows need in order to find the system, their user's
// folders and other programs. Names have no case there.
var windows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "USERNAME", "APPDATA", "LOCALAPPDATA",
	"PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OS",
}

// network are the variables that a process needs behind a proxy, including one with its own
// certificate authority, and the cache folders of npm, uv and pip.
var network = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"NODE_USE_ENV_PROXY", "npm_config_proxy", "npm_config_https_proxy", "npm_config_noproxy", "NPM_CONFIG_PROXY", "NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_NOPROXY", "PIP_PROXY",

	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
	"npm_config_cafile", "NPM_CONFIG_CAFILE", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "PIP_CERT",

	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"npm_config_cache", "npm_config_prefix", "npm_config_userconfig", "npm_config_globalconfig",
	"NPM_CONFIG_CACHE", "NPM_CONFIG_PREFIX", "NPM_CONFIG_USERCONFIG", "NPM_CONFIG_GLOBALCONFIG",
	"UV_CACHE_DIR", "UV_CONFIG_FILE", "UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR", "UV_OFFLINE", "UV_HTTP_TIMEOUT",
	"PIP_CACHE_DIR", "PIP_CONFIG_FILE",
}

// registries are the variables with the registries of npm, uv and pip. Such an address can
// contain a password: then only a command that downloads gets it.
var registries = []string{
	"npm_config_registry", "NPM_CONFIG_REGISTRY",
	"UV_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "UV_PYTHON_INSTALL_MIRROR", "UV_PYPY_INSTALL_MIRROR",
	"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS",
}

// CheckEnvName returns an error if a variable must not be passed to a server's process.
func CheckEnvName(name string) error {
	switch {
	case loaderenv.Is(name):
		return fmt.Errorf("the environment variable %s can make the command run other code and is refused; set it in a wrapper script that you name as the command", name)
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("%q cannot be an environment variable", name)
	}
	return nil
}

// Environ returns the whole environment of the server's process. From yaya's own environment,
// it takes the basics, the variables for the network and package managers, and those named in
// also and in the entry. Configured variables come last and win. The server must be expanded.
func (s Server) Environ(lookup func(string) (string, bool), also ...string) []string {
	env := map[string]string{}
	needed := basics
	if runtime.GOOS == "windows" {
		needed = slices.Concat(basics, windows)
	}
	for _, key := range slices.Concat(needed, network, registries, also, s.PassEnv) {
		if v, ok := lookup(key); ok {
			env[key] = v
		}
	}
	if !s.Fetches() {
		for _, key := range registries {
			// Credentials precede an @; npm and uv accept no other form.
			if strings.Contains(env[key], "@") && !slices.Contains(also, key) && !slices.Contains(s.PassEnv, key) {
				delete(env, key)
			}
		}
	}
	maps.Copy(env, s.Env)
	out := make([]string, 0, len(env))
	for _, key := range slices.Sorted(maps.Keys(env)) {
		out = append(out, key+"="+env[key])
	}
	return out
}
