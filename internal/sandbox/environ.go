package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// proxyAddr is the address of the proxy in a sandbox with its own network.
const (
	proxyAddr = "127.0.0.1:3128"
	proxyPort = 3128
)

// environ adapts the environment of a program to its sandbox: programs that do not
// know that they have no network retry for minutes. more overrides the rest.
func environ(p *Policy, env []string, tmp, proxyURL string, more ...[2]string) []string {
	vars := [][2]string{}
	add := func(value string, names ...string) {
		for _, n := range names {
			vars = append(vars, [2]string{n, value})
		}
	}
	var drop []string
	proxies := []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}
	yarnProxies := []string{"YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"} // it knows no others
	switch p.Net.Mode {
	case Hosts:
		add(proxyURL, proxies...)
		add(proxyURL, yarnProxies...)
		add("localhost,127.0.0.1,::1", "NO_PROXY", "no_proxy")
		add("1", "NODE_USE_ENV_PROXY")
	case Off, Loopback:
		drop = slices.Concat(proxies, yarnProxies, []string{"NO_PROXY", "no_proxy"})
		add("true", "npm_config_offline", "CARGO_NET_OFFLINE")
		add("1", "UV_OFFLINE", "PIP_NO_INDEX")
		add("off", "GOPROXY")
		add("false", "YARN_ENABLE_NETWORK")
	case Host:
	}
	if p.Cache != "" {
		add(p.Cache, "XDG_CACHE_HOME")
		for name, folder := range map[string]string{
			"npm_config_cache": "npm", "PNPM_HOME": "pnpm", "YARN_CACHE_FOLDER": "yarn", "YARN_GLOBAL_FOLDER": "yarn-global", "BUN_INSTALL_CACHE_DIR": "bun", "DENO_DIR": "deno", "COREPACK_HOME": "corepack",
			"UV_CACHE_DIR": "uv", "PIP_CACHE_DIR": "pip", "GOCACHE": "go-build", "GRADLE_USER_HOME": "gradle", "GEM_HOME": "gem", "BUNDLE_USER_CACHE": "bundle",
		} {
			add(filepath.Join(p.Cache, folder), name)
		}
	}
	if tmp != "" {
		add(tmp, "TMPDIR", "TMP", "TEMP")
	} else if !p.HostWrites {
		add("/tmp", "TMPDIR", "TMP", "TEMP")
	}
	for _, v := range more {
		vars = slices.DeleteFunc(vars, func(have [2]string) bool { return have[0] == v[0] })
	}
	vars = append(vars, more...)
	own := map[string]bool{}
	for _, name := range drop {
		own[name] = true
	}
	for _, v := range vars {
		own[v[0]] = true
	}
	var all []string
	for i, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		again := slices.ContainsFunc(env[i+1:], func(later string) bool { return strings.HasPrefix(later, name+"=") })
		if !own[name] && !again { // the last one counts, as in os/exec
			all = append(all, kv)
		}
	}
	for _, v := range vars {
		all = append(all, v[0]+"="+v[1])
	}
	return all
}

// tmp is the folder that TMPDIR names, "" for /tmp. Only mounts have another folder there.
func (r *Run) tmp(bare bool) string {
	if bare && r.policy.Tmp != "" {
		return real(r.policy.Tmp)
	}
	return r.system.tmp
}
