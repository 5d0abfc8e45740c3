package sandbox

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Public registries of packages, by ecosystem.
var (
	npm    = below("npmjs.org", "registry")
	yarn   = below("yarnpkg.com", "registry")
	jsr    = below("jsr.io", "", "npm")
	pypi   = []string{"pypi.org", "files.pythonhosted.org"}
	golang = below("golang.org", "proxy", "sum")
	crates = below("crates.io", "index", "static", "")
	gems   = below("rubygems.org", "", "index")
)

// below returns hosts of a domain; "" is the domain itself.
func below(domain string, names ...string) []string {
	hosts := make([]string, len(names))
	for i, n := range names {
		if hosts[i] = domain; n != "" {
			hosts[i] = n + "." + domain
		}
	}
	return hosts
}

// Registries are the hosts that package managers fetch from.
var Registries = slices.Concat(npm, yarn, jsr, pypi, golang, crates, gems)

// registryOf are the hosts that commands which fetch before they run fetch from.
var registryOf = map[string][]string{
	"npx": npm, "npm": npm, "bunx": npm, "pnpm": npm, "yarn": slices.Concat(npm, yarn),
	"deno": slices.Concat(npm, yarn, jsr),
	"uvx":  pypi, "uv": pypi, "pipx": pypi, "pip": pypi,
	"go": golang, "cargo": crates,
}

// RegistryOf returns the hosts of the registry that a command fetches from.
func RegistryOf(command string) []string {
	return slices.Clone(registryOf[filepath.Base(command)])
}

// profiles is the table of profiles. A server that the user configured works as
// before and cannot touch yaya (guarded); a server from elsewhere gets only what the
// user agreed to.
var profiles = map[string]Policy{
	"guarded": {HostWrites: true, Net: Net{Mode: Host}, Unix: true, Browser: true},
	"server":  {Strict: true, Net: Net{Mode: Hosts}, Unix: true, Limits: Limits{Memory: 4 * gib, Processes: 512}},
	"command": {Net: Net{Mode: Hosts, Allow: Registries}, Unix: true, Limits: Limits{Memory: 4 * gib, Processes: 512}},
	"check":   {Net: Net{Mode: Loopback}, Unix: true, Limits: Limits{Memory: 4 * gib, Processes: 512}},
	"plugin":  {Strict: true, Net: Net{Mode: Off}, Limits: Limits{Memory: gib, Processes: 64}},
	"browser": {Strict: true, Net: Net{Mode: Hosts}, Unix: true, Browser: true, Limits: Limits{Memory: 8 * gib, Processes: 512}},
}

// Profiles are the names of all profiles.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }

// Profile returns the policy of a profile.
func Profile(name string) (Policy, error) {
	p, ok := profiles[name]
	if !ok {
		return Policy{}, fmt.Errorf("there is no sandbox profile %q; use one of %s", name, strings.Join(Profiles(), ", "))
	}
	p.Profile = name
	p.Net.Allow = slices.Clone(p.Net.Allow)
	p.Home, _ = os.UserHomeDir() // without one there is nothing of it to hide
	return p, nil
}

// passwdHome is the home folder that the system knows of this user, "" if there is none.
var passwdHome = sync.OnceValue(func() string {
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return filepath.Clean(u.HomeDir)
})

// homes are the home folders that may hold credentials of the user: where HOME names
// another folder, those of the one that the system knows stay where they are.
func homes(home string) []string {
	var all []string
	if filepath.IsAbs(home) {
		all = append(all, home)
	}
	if at := passwdHome(); at != "" && at != home {
		all = append(all, at)
	}
	return all
}

// ofSystem are the host's files that a strict sandbox reads.
var ofSystem = map[string][]string{
	"linux":  {"/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"},
	"darwin": {"/usr", "/etc", "/opt", "/bin", "/sbin", "/System", "/Library", "/dev", "/var/select", "/var/db/dyld", "/var/db/timezone", "/nix/store"},
}
