package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/invisible"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Bounds of an entry.
const (
	maxEntry    = 64 << 10 // bytes of its JSON
	maxPackages = 32       // packages and remotes
	maxInputs   = 100      // of a package or remote
	maxChoices  = 100
	maxTexts    = 1000 // bytes of a description
	maxValue    = 4096 // bytes of a value
)

// Server is a server.json of the schema 2025-12-11. Its texts are its publisher's.
type Server struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Title       string     `json:"title,omitempty"`
	Version     string     `json:"version"`
	WebsiteURL  string     `json:"websiteUrl,omitempty"`
	Repository  Repository `json:"repository,omitzero"`
	Packages    []Package  `json:"packages,omitempty"`
	Remotes     []Remote   `json:"remotes,omitempty"`
}

// Repository is where the source of a server is.
type Repository struct {
	URL    string `json:"url,omitempty"`
	Source string `json:"source,omitempty"`
}

// Package is a package that has the server's program.
type Package struct {
	RegistryType    string     `json:"registryType"`
	RegistryBaseURL string     `json:"registryBaseUrl,omitempty"`
	Identifier      string     `json:"identifier"`
	Version         string     `json:"version,omitempty"`
	FileSHA256      string     `json:"fileSha256,omitempty"`
	RuntimeHint     string     `json:"runtimeHint,omitempty"`
	Transport       Transport  `json:"transport,omitzero"`
	RuntimeArgs     []Argument `json:"runtimeArguments,omitempty"`
	PackageArgs     []Argument `json:"packageArguments,omitempty"`
	Environment     []KeyInput `json:"environmentVariables,omitempty"`

	manifest *manifest // of a bundle that was fetched
}

// Transport is how a package is spoken to.
type Transport struct {
	Type string `json:"type"`
	URL  string `json:"url,omitempty"`
}

// Remote is a server that somebody else runs.
type Remote struct {
	Type      string           `json:"type"`
	URL       string           `json:"url"`
	Headers   []KeyInput       `json:"headers,omitempty"`
	Variables map[string]Input `json:"variables,omitempty"`
}

// Input is a value that the entry has or asks for.
type Input struct {
	Description string           `json:"description,omitempty"`
	Required    bool             `json:"isRequired,omitempty"`
	Format      string           `json:"format,omitempty"` // string, number, boolean, filepath
	Value       string           `json:"value,omitempty"`  // fixed, with {variables}
	Secret      bool             `json:"isSecret,omitempty"`
	Default     string           `json:"default,omitempty"`
	Placeholder string           `json:"placeholder,omitempty"`
	Choices     []string         `json:"choices,omitempty"`
	Variables   map[string]Input `json:"variables,omitempty"`
}

// KeyInput is an environment variable or a header.
type KeyInput struct {
	Name string `json:"name"`
	Input
}

// Argument is a word of a command line, or a flag with its value.
type Argument struct {
	Type      string `json:"type"` // positional or named
	Name      string `json:"name,omitempty"`
	ValueHint string `json:"valueHint,omitempty"`
	Repeated  bool   `json:"isRepeated,omitempty"`
	Input
}

// The states of an entry at its registry.
const (
	Active     = "active"
	Deprecated = "deprecated"
	Deleted    = "deleted"
)

// Entry is a server as a registry lists it.
type Entry struct {
	Registry string    `json:"registry"` // name of the registry
	Server   Server    `json:"server"`
	Status   string    `json:"status"`
	Message  string    `json:"message,omitempty"` // about the status
	Updated  time.Time `json:"updated,omitzero"`
	Hosts    []string  `json:"hosts,omitempty"` // that it needs, as yaya's own list knows
	// Seen is when the registry said so.
	Seen time.Time `json:"seen"`
}

// Digest is the hash of all that the registry says about a server: who agreed to one with this
// digest has agreed to no other.
func (e Entry) Digest() string {
	e.Seen = time.Time{}
	e.Updated = time.Time{}
	raw, err := json.Marshal(e)
	if err != nil {
		return "" // strings and numbers can always be marshalled
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

var (
	namePattern    = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9.-]*/[a-zA-Z0-9._-]+$`)
	versionPattern = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z.+!_-]*$`)
	threeNumbers   = lazyregexp.New(`^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$`) // of npm and NuGet
)

// CheckName returns an error unless a name can be that of an entry.
func CheckName(name string) error {
	if len(name) > 200 || !namePattern().MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a server in a registry, such as io.github.owner/server", cut.Text(name, 80))
	}
	return nil
}

// ownName reports whether a name is in the namespace of yaya's own list, which no registry has.
func ownName(name string) bool {
	space, _, _ := strings.Cut(name, "/")
	return strings.EqualFold(space, Bundled)
}

// checkVersion refuses ranges, and words that stand for whatever is newest.
func checkVersion(v string) error {
	if len(v) > 128 || !versionPattern().MatchString(v) || strings.EqualFold(v, "latest") {
		return fmt.Errorf("%q is not an exact version", cut.Text(v, 80))
	}
	return nil
}

// Odd reports whether a text has characters that nobody sees, or that would change how what is
// around it is shown. Letters and marks without a glyph are among them, such as U+3164.
func Odd(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, invisible.Is)
}

// check bounds an entry, and refuses one that cannot be told from another.
func (s *Server) check() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	if err := checkVersion(s.Version); err != nil {
		return err
	}
	if len(s.Packages)+len(s.Remotes) > maxPackages {
		return fmt.Errorf("it has %d packages and remotes, %d at most", len(s.Packages)+len(s.Remotes), maxPackages)
	}
	s.Description, s.Title = cut.Text(s.Description, maxTexts), cut.Text(s.Title, 100)
	s.WebsiteURL, s.Repository.URL = webPage(s.WebsiteURL), webPage(s.Repository.URL)
	for _, p := range s.Packages {
		if len(p.RuntimeArgs)+len(p.PackageArgs)+len(p.Environment) > maxInputs {
			return fmt.Errorf("the package %s has more than %d arguments and variables", cut.Text(p.Identifier, 80), maxInputs)
		}
	}
	for _, r := range s.Remotes {
		if len(r.Headers)+len(r.Variables) > maxInputs {
			return fmt.Errorf("a remote has more than %d headers and variables", maxInputs)
		}
	}
	return nil
}

// webPage returns an https address that can be shown as a link, "" for another one.
func webPage(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(raw) > 500 || Odd(raw) {
		return ""
	}
	return raw
}

// listed is an entry as an answer has it.
type listed struct {
	Server json.RawMessage `json:"server"`
	Meta   struct {
		Official struct {
			Status  string    `json:"status"`
			Message string    `json:"statusMessage"`
			Updated time.Time `json:"updatedAt"`
		} `json:"io.modelcontextprotocol.registry/official"`
	} `json:"_meta"`
}

// decode reads an entry of an answer. Members that it does not know are dropped.
func decode(registry string, raw json.RawMessage, now time.Time) (Entry, error) {
	if len(raw) > maxEntry {
		return Entry{}, fmt.Errorf("it is larger than %d KiB", maxEntry>>10)
	}
	var l listed
	if err := json.Unmarshal(raw, &l); err != nil {
		return Entry{}, errors.New("it is not an entry of a registry")
	}
	e := Entry{Registry: registry, Status: l.Meta.Official.Status, Message: cut.Text(l.Meta.Official.Message, 300), Updated: l.Meta.Official.Updated.UTC(), Seen: now.UTC()}
	if err := json.Unmarshal(l.Server, &e.Server); err != nil {
		return Entry{}, errors.New("it is not a server.json")
	}
	if ownName(e.Server.Name) {
		return Entry{}, fmt.Errorf("its name is in the namespace %q, which is that of yaya's own list", Bundled)
	}
	switch e.Status {
	case Deprecated, Deleted:
	case "", Active:
		e.Status = Active
	default:
		return Entry{}, fmt.Errorf("its status %q is not known", cut.Text(e.Status, 40))
	}
	return e, e.Server.check()
}
