package catalog

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/loaderenv"
	"github.com/yaya-ai/yaya/internal/netaddr"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// made holds the parts of a configuration entry.
type made struct {
	argv    []string
	env     map[string]string
	url     string
	kind    string // of a remote: http or sse
	headers map[string]string
	notes   []string
	bundle  *Bundle
}

var (
	npmName   = lazyregexp.New(`^(@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*$`)
	pypiName  = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	nugetName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	image     = lazyregexp.New(`^[a-z0-9][a-z0-9._-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?$`)
	envName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	header    = lazyregexp.New(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}$`)
)

// words fills the form of an option into m: its command line, or its address.
func (o Option) words(f *form, m *made) error {
	m.env, m.headers = map[string]string{}, map[string]string{}
	if o.remote != nil {
		return o.remote.address(f, m)
	}
	p := o.pack
	if o.Kind == kindBundle {
		return p.bundle(f, m)
	}
	switch {
	case o.Runner == nil:
		return fmt.Errorf("yaya starts packages of npm, pypi, oci, nuget and mcpb, not of %q: install it yourself, then yaya mcp add", cut.Text(p.RegistryType, 40))
	case p.Transport.Type != "" && p.Transport.Type != "stdio":
		return fmt.Errorf("its package speaks %q: yaya starts programs that speak over stdio; start it yourself, then yaya mcp add its URL", cut.Text(p.Transport.Type, 40))
	}
	spec, err := o.Runner.spec(p)
	if err != nil {
		return err
	}
	if err := p.variables(f, m); err != nil {
		return err
	}
	before, err := o.Runner.flags(f, m, p.RuntimeArgs)
	if err != nil {
		return err
	}
	after, err := arguments(f, p.PackageArgs)
	if err != nil {
		return err
	}
	m.argv = o.Runner.argv(before, spec, after, slices.Sorted(maps.Keys(m.env)))
	return nil
}

// sets notes a variable or header that the entry gives a value, of which the question shows the
// name alone: the address in GITHUB_HOST gets the user's token.
func (m *made) sets(name string, v value) {
	if v.theirs {
		m.notes = append(m.notes, "its entry sets "+name+"="+servers.Shown(v.shown))
	}
}

// variables fills in the environment.
func (p *Package) variables(f *form, m *made) error {
	for _, v := range p.Environment {
		if err := checkVariable(v.Name); err != nil {
			return err
		}
		values, err := f.input(v.Name, "variable", v.Input, false)
		if err != nil {
			return err
		}
		if len(values) > 0 && values[0].text != "" {
			m.env[v.Name] = values[0].text
			m.sets(v.Name, values[0])
		}
	}
	return nil
}

// checkVariable refuses a variable that an entry may not set.
func checkVariable(name string) error {
	if !envName().MatchString(name) {
		return fmt.Errorf("%q cannot be the name of an environment variable", cut.Text(name, 80))
	}
	if steers(name) {
		return fmt.Errorf("it sets %s, which decides what is loaded or fetched, or who is trusted: if you trust it, add the command yourself with yaya mcp add", name)
	}
	return servers.CheckEnvName(name)
}

// steering are the variables that decide where a runner gets its packages or programs, and whom
// it or the server trusts.
var steering = []string{
	"PATH", "HOME", "SHELL", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "CONTAINER_HOST", "REGISTRY_AUTH_FILE",
	"NODE_TLS_REJECT_UNAUTHORIZED", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME", "AWS_CA_BUNDLE",
	"CARGO_HTTP_CAINFO", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "PYTHONHTTPSVERIFY",
}

// steeringBy are the beginnings of such variables.
var steeringBy = []string{"NPM_CONFIG_", "BUN_CONFIG_", "YARN_", "UV_", "PIP_", "DOCKER_", "CONTAINERS_CONF", "NUGET_", "DOTNET_", "XDG_", "GIT_SSL_", "DENO_", "YAYA_"}

// steers reports whether a variable decides what is loaded or fetched, or who is trusted.
func steers(name string) bool {
	upper := strings.ToUpper(name)
	return loaderenv.Loads(name) || slices.Contains(steering, upper) || slices.ContainsFunc(steeringBy, func(p string) bool { return strings.HasPrefix(upper, p) })
}

// arguments fills in the arguments of the server's own program.
func arguments(f *form, list []Argument) (out []string, err error) {
	for _, a := range list {
		values, err := f.argument(a)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if a.Type == "named" {
				out = append(out, a.Name)
			}
			if v.text != "" {
				out = append(out, v.text)
			}
		}
	}
	return out, nil
}

// argument returns the values of an argument: one that is "" for a flag alone.
func (f *form) argument(a Argument) ([]value, error) {
	name := cmpText(a.ValueHint, "argument")
	switch a.Type {
	case "positional":
	case "named":
		if err := fixed("an argument", a.Name); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(a.Name, "-") || strings.ContainsAny(a.Name, " =") {
			return nil, fmt.Errorf("%q cannot be the name of a flag", cut.Text(a.Name, 80))
		}
		name = strings.TrimLeft(a.Name, "-")
		if a.Value == "" && a.Format == "" && a.Default == "" && !a.Required && a.ValueHint == "" && a.Description == "" && len(a.Choices) == 0 && !a.Secret && a.Placeholder == "" {
			return []value{{}}, nil // a switch
		}
	default:
		return nil, fmt.Errorf("the type %q of an argument is not known", cut.Text(a.Type, 40))
	}
	return f.input(name, "argument", a.Input, a.Repeated)
}

// address fills in the address of a remote.
func (r *Remote) address(f *form, m *made) error {
	switch r.Type {
	case "streamable-http":
		m.kind = string(servers.HTTP)
	case "sse":
		m.kind = string(servers.SSE)
	default:
		return fmt.Errorf("the transport %q of a remote is not known", cut.Text(r.Type, 40))
	}
	out, absent, err := f.template("the address", "address", r.URL, r.Variables)
	if err != nil {
		return err
	}
	if absent {
		return errors.New("a variable of its address has no value")
	}
	if f.fill || !strings.Contains(r.URL, "{") {
		if err := m.checkURL(out.text); err != nil {
			return err
		}
	}
	m.url = out.text
	if (servers.Server{Transport: servers.HTTP, URL: m.url}).RunsExactly() != m.url { // it hides a part, which could be the publisher's
		m.notes = append(m.notes, "its address is "+servers.Shown(out.shown))
	}
	for _, h := range r.Headers {
		if !header().MatchString(h.Name) || slices.Contains([]string{"host", "content-length", "transfer-encoding", "connection"}, strings.ToLower(h.Name)) {
			return fmt.Errorf("%q cannot be a header", cut.Text(h.Name, 80))
		}
		values, err := f.input(h.Name, "header", h.Input, false)
		if err != nil {
			return err
		}
		if len(values) > 0 && values[0].text != "" {
			m.headers[h.Name] = values[0].text
			m.sets(h.Name, values[0])
		}
	}
	return nil
}

// checkURL refuses an address without TLS, and notes one that leads into a private network: who
// publishes an entry does not choose a host of this one unseen.
func (m *made) checkURL(out string) error {
	plain := strings.NewReplacer("${secret:", "", "}", "").Replace(out)
	u, err := url.Parse(plain)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return fmt.Errorf("%q is not the address of a server", cut.Text(out, 200))
	}
	host := u.Hostname()
	ip, literal := netip.Addr{}, false
	if a, err := netip.ParseAddr(host); err == nil {
		ip, literal = a, true
	} else if a, ok := netaddr.Numeric(host); ok {
		ip, literal = a, true
	}
	here := host == "localhost" || literal && ip.IsLoopback()
	switch {
	case u.Scheme != "https" && (u.Scheme != "http" || !here):
		return fmt.Errorf("its address %q is not https", cut.Text(out, 200))
	case here || literal && !netaddr.Public(ip) || !literal && local(host):
		m.notes = append(m.notes, "its address "+u.Host+" is not one of the internet: its publisher chose a host of your own network")
	}
	return nil
}

// localDomains are those that are kept for networks of one's own: RFC 6762 and its appendix G, RFC
// 8375, RFC 6761, and ICANN's internal.
var localDomains = []string{"local", "internal", "localhost", "home.arpa", "test", "intranet", "private", "corp", "home", "lan"}

// local reports whether a name is not one of the internet.
func local(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return !strings.Contains(host, ".") || slices.ContainsFunc(localDomains, func(d string) bool { return strings.HasSuffix(host, "."+d) })
}
