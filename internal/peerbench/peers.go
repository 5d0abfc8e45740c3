//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Kinds of upstream.
const (
	overStdio = "stdio"
	overHTTP  = "HTTP"
)

// peer is a gateway to measure.
type peer struct {
	name, version string
	source        string // the registry and the name of the package there
	setting       string // the settings that differ from the defaults, and why
	upstreams     []string
	install       func(ctx context.Context, in *installer, p *peer) error
	launch        func(p place) (launch, error)
	why           string // not measured, for this reason
}

// place is where and before what a peer runs.
type place struct {
	bin  string // the folder of its installation
	node string
	dir  string // its home
	port int
	kind string // of the upstream
	url  string // of the upstream over HTTP
	self string // the program of the upstream over stdio
}

func (p place) file(name, content string) (string, error) {
	path := filepath.Join(p.dir, name)
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// servers is the upstream as an mcpServers file, with more members of its entry.
func (p place) servers(more map[string]any) (string, error) {
	entry := map[string]any{"type": "http", "url": p.url}
	if p.kind == overStdio {
		entry = map[string]any{"command": p.self, "args": []string{"-upstream", "stdio"}}
	}
	for k, v := range more {
		entry[k] = v
	}
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"up": entry}})
	if err != nil {
		return "", err
	}
	return p.file("mcp.json", string(data))
}

// launch is how a peer is run.
type launch struct {
	argv, env []string
	to        endpoint // but for its base
	// setup, if set, is called until it succeeds, before the first session.
	setup func(ctx context.Context, base string) error
}

// bindLoopback is loaded into programs of Node that have no option for the
// address they listen on.
const bindLoopback = `const net = require("net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  if (typeof args[0] === "object" && args[0] !== null && "port" in args[0]) args[0] = { ...args[0], host: "127.0.0.1" };
  else if (typeof args[0] === "number" || /^[0-9]+$/.test(args[0])) {
    const rest = args.slice(1).filter((a) => typeof a !== "string");
    args = [args[0], "127.0.0.1", ...rest];
  }
  return listen.apply(this, args);
};
`

func yaya(bin, version string) *peer {
	return &peer{
		name: "yaya", version: version, source: "this repository", upstreams: []string{overStdio, overHTTP},
		setting: "`trust: always`, because a check changes the tools",
		launch: func(p place) (launch, error) {
			config, err := p.servers(map[string]any{"trust": "always"})
			return launch{
				argv: []string{bin, "serve", "--listen", fmt.Sprintf("127.0.0.1:%d", p.port), "--data-dir", filepath.Join(p.dir, "data"), "--mcp-config", config},
				to:   endpoint{path: "/mcp"},
			}, err
		},
	}
}

// peers are the gateways to measure, and those that cannot be.
func peers() []*peer {
	return []*peer{
		fastMCP("FastMCP proxy", "apart", "`create_proxy` of a transport with `mode=\"auto\"`; no access log"),
		fastMCP("FastMCP proxy, shared", "shared", "`create_proxy` of a connected client, which all its clients share; no access log"),
		contextForge(), mcpHub(), pipProxy(), npmProxy(), supergateway(), oneMCP(), goProxy(), metaMCP(),
	}
}

// fastMCPScript proxies as FastMCP's documentation says: a transport, or for one
// session that all clients share a client that is connected. The mode "auto" is
// for upstreams that speak one era alone.
const fastMCPScript = `import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.server import create_proxy

port, shared, target = int(sys.argv[1]), sys.argv[2] == "shared", sys.argv[3:]
transport = StreamableHttpTransport(target[0]) if target[0].startswith("http") else StdioTransport(target[0], target[1:])
options = dict(transport="http", host="127.0.0.1", port=port, path="/mcp", show_banner=False, log_level="error", uvicorn_config={"access_log": False})

async def run():
    if not shared:
        return await create_proxy(transport, name="proxy", mode="auto").run_async(**options)
    async with Client(transport) as client:
        await create_proxy(client, name="proxy").run_async(**options)

asyncio.run(run())
`

// fastMCP is the proxy of FastMCP, with a session for each request or with one
// for all.
func fastMCP(name, sessions, setting string) *peer {
	return &peer{
		name: name, version: "4.2.3", source: "PyPI: fastmcp", upstreams: []string{overStdio, overHTTP}, install: pip("fastmcp"),
		setting: setting,
		launch: func(p place) (launch, error) {
			script, err := p.file("proxy.py", fastMCPScript)
			argv := []string{filepath.Join(p.bin, "bin", "python"), script, fmt.Sprint(p.port), sessions}
			if p.kind == overStdio {
				argv = append(argv, p.self, "-upstream", "stdio")
			} else {
				argv = append(argv, p.url)
			}
			return launch{argv: argv, env: []string{"FASTMCP_CHECK_FOR_UPDATES=off"}, to: endpoint{path: "/mcp"}}, err
		},
	}
}

func pipProxy() *peer {
	return &peer{
		name: "mcp-proxy (Python)", version: "0.13.0", source: "PyPI: mcp-proxy", upstreams: []string{overStdio}, install: pip("mcp-proxy"),
		setting: "log level ERROR",
		launch: func(p place) (launch, error) {
			return launch{
				argv: []string{filepath.Join(p.bin, "bin", "mcp-proxy"), "--host", "127.0.0.1", "--port", fmt.Sprint(p.port), "--log-level", "ERROR", "--", p.self, "-upstream", "stdio"},
				to:   endpoint{path: "/mcp"},
			}, nil
		},
	}
}

func npmProxy() *peer {
	return &peer{
		name: "mcp-proxy (Node)", version: "6.7.19", source: "npm: mcp-proxy", upstreams: []string{overStdio}, install: npm("mcp-proxy"),
		setting: "`--no-eventStore`, which its help names for deployments without replay",
		launch: func(p place) (launch, error) {
			return launch{
				argv: []string{p.node, filepath.Join(p.bin, "node_modules", ".bin", "mcp-proxy"), "--host", "127.0.0.1", "--port", fmt.Sprint(p.port), "--no-eventStore", "--server", "stream", "--", p.self, "-upstream", "stdio"},
				to:   endpoint{path: "/mcp"},
			}, nil
		},
	}
}

func supergateway() *peer {
	return &peer{
		name: "supergateway", version: "4.0.0", source: "npm: supergateway", upstreams: []string{overStdio}, install: npm("supergateway"),
		setting: "`--stateful`, `--logLevel none`; a preloaded module binds it to loopback, for which it has no option",
		launch: func(p place) (launch, error) {
			preload, err := p.file("loopback.cjs", bindLoopback)
			return launch{
				argv: []string{p.node, "--require", preload, filepath.Join(p.bin, "node_modules", ".bin", "supergateway"), "--stdio", p.self + " -upstream stdio", "--outputTransport", "streamableHttp", "--stateful", "--protocolVersion", legacy, "--logLevel", "none", "--port", fmt.Sprint(p.port)},
				to:   endpoint{path: "/mcp"},
			}, err
		},
	}
}

func mcpHub() *peer {
	return &peer{
		name: "mcp-hub", version: "4.2.1", source: "npm: mcp-hub", upstreams: []string{overStdio, overHTTP}, install: npm("mcp-hub"),
		setting: "clients use HTTP+SSE, its only transport for them; a preloaded module binds it to loopback, for which it has no option",
		launch: func(p place) (launch, error) {
			preload, err := p.file("loopback.cjs", bindLoopback)
			if err != nil {
				return launch{}, err
			}
			config, err := p.servers(nil)
			return launch{
				argv: []string{p.node, "--require", preload, filepath.Join(p.bin, "node_modules", ".bin", "mcp-hub"), "--port", fmt.Sprint(p.port), "--config", config},
				to:   endpoint{path: "/mcp", sse: true},
			}, err
		},
	}
}

// token is a JSON Web Token for ContextForge, as its own command makes them.
func token(key string) (string, error) {
	const user = "admin@example.com"
	claims, err := json.Marshal(map[string]any{
		"username": user, "sub": user, "iss": "mcpgateway", "aud": "mcpgateway-api", "jti": rand.Text(), "teams": nil,
		"iat": time.Now().Unix() - 5, "exp": time.Now().Add(time.Hour).Unix(),
		"user": map[string]any{"email": user, "full_name": "Bench", "is_admin": true, "auth_provider": "cli"},
	})
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

func contextForge() *peer {
	return &peer{
		name: "ContextForge", version: "1.0.7.post20260921", source: "PyPI: mcp-contextforge-gateway", upstreams: []string{overHTTP}, install: pip("mcp-contextforge-gateway"),
		setting: "SQLite, cache in memory, stateful sessions, a bearer token; no rate limit, no access log, no user interface",
		launch: func(p place) (launch, error) {
			key := rand.Text() + rand.Text()
			bearer, err := token(key)
			auth := "Bearer " + bearer
			return launch{
				argv: []string{filepath.Join(p.bin, "bin", "mcpgateway"), "--host", "127.0.0.1", "--port", fmt.Sprint(p.port), "--no-access-log"},
				env: []string{
					"DATABASE_URL=sqlite:///" + filepath.Join(p.dir, "mcp.db"), "CACHE_TYPE=memory", "USE_STATEFUL_SESSIONS=true", "RATE_LIMITING_ENABLED=false",
					"JWT_SECRET_KEY=" + key, "AUTH_ENCRYPTION_SECRET=" + rand.Text() + rand.Text(), "PLATFORM_ADMIN_EMAIL=admin@example.com",
					"PLATFORM_ADMIN_PASSWORD=Aa1-" + rand.Text(), "BASIC_AUTH_PASSWORD=Aa1-" + rand.Text(),
					"SSRF_ALLOW_LOCALHOST=true", "LOG_LEVEL=ERROR", "MCPGATEWAY_UI_ENABLED=false", "MCPGATEWAY_ADMIN_API_ENABLED=false",
				},
				to:    endpoint{path: "/mcp/", auth: auth},
				setup: func(ctx context.Context, base string) error { return register(ctx, base, auth, p.url) },
			}, err
		},
	}
}

// register makes the upstream known to ContextForge.
func register(ctx context.Context, base, auth, upstream string) error {
	body, err := json.Marshal(map[string]any{"name": "up", "url": upstream, "transport": "STREAMABLEHTTP"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/gateways", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", auth)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode != http.StatusConflict { // it is registered already
		err = fmt.Errorf("POST /gateways: %s: %.200s", resp.Status, said)
	}
	return err
}

func oneMCP() *peer {
	return &peer{
		name: "1mcp", version: "0.26.0", source: "npm: @1mcp/agent", upstreams: []string{overStdio, overHTTP}, install: npm("@1mcp/agent"),
		launch: func(p place) (launch, error) {
			config, err := p.servers(nil)
			return launch{
				argv: []string{p.node, filepath.Join(p.bin, "node_modules", ".bin", "1mcp"), "--host", "127.0.0.1", "--port", fmt.Sprint(p.port), "--config", config},
				to:   endpoint{path: "/mcp"},
			}, err
		},
	}
}

func goProxy() *peer {
	return &peer{
		name: "mcp-proxy (Go)", version: "latest", source: "Go: github.com/TBXark/mcp-proxy", upstreams: []string{overStdio, overHTTP}, install: golang("github.com/TBXark/mcp-proxy"),
		launch: func(p place) (launch, error) {
			entry := map[string]any{"url": p.url, "transportType": "streamable-http"}
			if p.kind == overStdio {
				entry = map[string]any{"command": p.self, "args": []string{"-upstream", "stdio"}}
			}
			data, err := json.Marshal(map[string]any{
				"mcpProxy":   map[string]any{"baseURL": fmt.Sprintf("http://127.0.0.1:%d", p.port), "addr": fmt.Sprintf("127.0.0.1:%d", p.port), "name": "proxy", "version": "1", "type": "streamable-http"},
				"mcpServers": map[string]any{"up": entry},
			})
			if err != nil {
				return launch{}, err
			}
			config, err := p.file("config.json", string(data))
			return launch{argv: []string{filepath.Join(p.bin, "bin", "mcp-proxy"), "--config", config}, to: endpoint{path: "/up/mcp"}}, err
		},
	}
}

func metaMCP() *peer {
	return &peer{name: "MetaMCP", source: "container image", why: "it is published as a container image and needs a PostgreSQL server: it does not start alone"}
}

// given is a peer of the flag -peer: name=command line, in which {port}, {url},
// {command} and {config} stand for the port to listen on, the upstream over HTTP,
// the command of the upstream over stdio and an mcpServers file.
func given(flag string) (*peer, error) {
	name, line, ok := strings.Cut(flag, "=")
	argv := strings.Fields(line)
	if !ok || name == "" || len(argv) == 0 {
		return nil, fmt.Errorf("-peer %q: want name=command", flag)
	}
	name, path, _ := strings.Cut(name, ":")
	if path == "" {
		path = "/mcp"
	}
	kinds := []string{overStdio, overHTTP}
	switch {
	case strings.Contains(line, "{config}"):
	case strings.Contains(line, "{url}"):
		kinds = []string{overHTTP}
	default:
		kinds = []string{overStdio}
	}
	return &peer{
		name: name, version: "as given", source: argv[0], upstreams: kinds, setting: "`" + line + "`",
		launch: func(p place) (launch, error) {
			config, err := p.servers(nil)
			var out []string
			for _, a := range argv {
				out = append(out, strings.NewReplacer("{port}", fmt.Sprint(p.port), "{url}", p.url, "{command}", p.self+" -upstream stdio", "{config}", config).Replace(a))
			}
			return launch{argv: out, to: endpoint{path: path}}, err
		},
	}, nil
}
