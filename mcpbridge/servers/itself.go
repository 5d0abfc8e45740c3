package servers

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/netaddr"
)

// OwnName is the name of yaya's own entry in the files of its clients.
const OwnName = "yaya"

var inShell = lazyregexp.New("(^|[\\s/\"'])yaya mcp serve($|[\\s\"';&|])")

// isYaya reports whether the server leads back to yaya: it runs "yaya mcp serve", or is yaya's
// own entry with an address of this machine.
func (s Server) isYaya() bool {
	if s.Transport == Stdio {
		return s.runsYaya()
	}
	return s.Name == OwnName && Loopback(s.URL)
}

// runsYaya reports whether a command runs "yaya mcp serve", under any program name.
func (s Server) runsYaya() bool {
	words := append([]string{s.Command}, s.Args...)
	if inShell().MatchString(strings.Join(words, " ")) { // in a shell's command, too
		return true
	}
	i := slices.IndexFunc(words, func(w string) bool { return strings.TrimSuffix(filepath.Base(w), ".exe") == "yaya" })
	m := slices.Index(words, "mcp")
	if m < 0 || !slices.Contains(words[m:], "serve") {
		return false
	}
	return (i >= 0 && slices.Contains(words[i:], "mcp")) || thisProgram(s.Command)
}

// thisProgram reports whether a command is the file that this process runs.
func thisProgram(command string) bool {
	own, err := os.Executable()
	if err != nil {
		return false
	}
	found, err := exec.LookPath(command)
	if err != nil {
		return false
	}
	a, err1 := os.Stat(own)
	b, err2 := os.Stat(found)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// Self identifies this yaya, to detect servers that lead back to it.
type Self struct {
	Data string // its data directory
	Addr string // the address that it listens on, host:port; "" when it does not
}

var (
	errItself  = errors.New(`it is yaya itself: yaya would be its own client and offer each tool twice (remove it; a yaya with other data needs --data-dir before "mcp serve")`)
	errAddress = errors.New("its address is that of yaya itself: yaya would be its own client and offer each tool twice (remove it)")
)

// CheckItself returns an error for a server, with its variables expanded, that leads back to
// the connecting yaya. A yaya on another machine, or with separate data or servers, is a server
// like any other.
func (s Server) CheckItself(self Self) error {
	switch {
	case s.Transport != Stdio:
		if self.at(s.URL) {
			return errAddress
		}
	case s.runsYaya() && !s.otherYaya(self):
		return errItself
	}
	return nil
}

// otherYaya reports whether a command line names another data directory, or files of servers,
// so that it does not connect to this yaya.
func (s Server) otherYaya(self Self) bool {
	for i, w := range s.Args {
		flag, value, joined := strings.Cut(w, "=")
		if !joined && i+1 < len(s.Args) {
			value = s.Args[i+1]
		}
		switch {
		case flag == "--mcp-config":
			return true
		case flag != "--data-dir":
		case filepath.IsAbs(value):
			return filepath.Clean(value) != filepath.Clean(self.Data)
		default:
			return filepath.Join(s.Dir, value) != filepath.Clean(self.Data)
		}
	}
	return false
}

// at reports whether a URL is an MCP endpoint of this yaya, under any name of this machine.
func (y Self) at(raw string) bool {
	_, port, err := net.SplitHostPort(y.Addr)
	u, uerr := url.Parse(raw)
	if err != nil || uerr != nil {
		return false
	}
	at := u.Port()
	switch {
	case at != "":
	case u.Scheme == "https":
		at = "443"
	default:
		at = "80"
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip, err := netip.ParseAddr(host)
	if spelled, ok := netaddr.Numeric(host); ok { // http://0:8787 is this machine for some resolvers
		ip, err = spelled, nil
	}
	ip = ip.Unmap()
	here := host == "localhost" || strings.HasSuffix(host, ".localhost") || (err == nil && (ip.IsLoopback() || ip.IsUnspecified()))
	if !here || at != port {
		return false
	}
	p := path.Clean("/" + u.Path)
	return p == "/mcp" || path.Dir(p) == "/mcp"
}

// Loopback reports whether a URL refers to this machine.
func Loopback(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && netaddr.Loopback(u.Hostname())
}
