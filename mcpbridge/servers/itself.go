package servers

import (
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// OwnName is the name of yaya's own entry in the files of its clients.
const OwnName = "yaya"

var inShell = regexp.MustCompile("(^|[\\s/\"'])yaya mcp serve($|[\\s\"';&|])")

// isYaya reports whether connecting to the server would lead back to yaya: it runs
// "yaya mcp serve", or is yaya's own entry with an address of this machine.
func (s Server) isYaya() bool {
	if s.Transport == Stdio {
		words := append([]string{s.Command}, s.Args...)
		if inShell.MatchString(strings.Join(words, " ")) { // in a shell's command, too
			return true
		}
		i := slices.IndexFunc(words, func(w string) bool { return strings.TrimSuffix(filepath.Base(w), ".exe") == "yaya" })
		if i < 0 {
			return false
		}
		m := slices.Index(words[i:], "mcp")
		return m >= 0 && slices.Contains(words[i+m:], "serve")
	}
	return s.Name == OwnName && Loopback(s.URL)
}

// Loopback reports whether a URL is of this machine.
func Loopback(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}
