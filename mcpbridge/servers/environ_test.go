package servers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// FID-10, R20: a process gets what it needs to reach the network, and no secret that
// it needs for nothing.
func TestEnviron(t *testing.T) {
	own := map[string]string{
		"PATH": "/bin", "HOME": "/home/u",
		"HTTPS_PROXY": "http://u:p@proxy:3128", "no_proxy": "localhost", "ALL_PROXY": "socks5://p", "SSL_CERT_FILE": "/ca.pem", "NODE_EXTRA_CA_CERTS": "/ca.pem", "REQUESTS_CA_BUNDLE": "/ca.pem",
		"npm_config_cache": "/cache/npm", "UV_CACHE_DIR": "/cache/uv", "PIP_INDEX_URL": "https://pypi.example/simple", "UV_DEFAULT_INDEX": "https://u:secret@pypi.example/simple", "npm_config_registry": "https://npm.example/@scope",
		"npm_config__authToken": "secret", "UV_INDEX_CORP_PASSWORD": "secret", "AWS_SECRET_ACCESS_KEY": "secret", "YAYA_PROVIDERS__X__API_KEY": "secret", "LD_PRELOAD": "/evil.so", "DOCKER_HOST": "unix:///x", "NAMED": "n",
	}
	lookup := func(k string) (string, bool) { v, ok := own[k]; return v, ok }
	always := "HOME PATH HTTPS_PROXY no_proxy ALL_PROXY SSL_CERT_FILE NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE npm_config_cache UV_CACHE_DIR PIP_INDEX_URL"
	for _, tc := range []struct {
		name   string
		server servers.Server
		also   []string
		want   string // names
	}{
		{"a program that is there", servers.Server{Command: "node"}, nil, always},
		{"one that is fetched gets the registry with its password", servers.Server{Command: "uvx"}, nil, always + " UV_DEFAULT_INDEX npm_config_registry"},
		{"for all", servers.Server{Command: "node"}, []string{"DOCKER_HOST"}, always + " DOCKER_HOST"},
		{"for all, with a password", servers.Server{Command: "node"}, []string{"UV_DEFAULT_INDEX"}, always + " UV_DEFAULT_INDEX"},
		{"by the entry", servers.Server{Command: "node", PassEnv: []string{"NAMED", "UV_DEFAULT_INDEX"}}, nil, always + " NAMED UV_DEFAULT_INDEX"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.server.Transport = servers.Stdio
			var got []string
			for _, kv := range tc.server.Environ(lookup, tc.also...) {
				name, value, _ := strings.Cut(kv, "=")
				if value != own[name] {
					t.Errorf("%s is %q, want %q", name, value, own[name])
				}
				got = append(got, name)
			}
			want := strings.Fields(tc.want)
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	}
	s := servers.Server{Transport: servers.Stdio, Command: "node", Env: map[string]string{"HTTPS_PROXY": ""}, PassEnv: []string{"HTTPS_PROXY"}}
	if env := s.Environ(lookup, "HTTPS_PROXY"); !slices.Contains(env, "HTTPS_PROXY=") {
		t.Errorf("the entry's own value does not win: %v", env)
	}
}
