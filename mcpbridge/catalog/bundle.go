package catalog

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/netaddr"
	"github.com/yaya-ai/yaya/plugins/fetch"
)

// Bounds of a bundle (MCPB).
const (
	maxBundle     = 64 << 20  // bytes, packed
	maxManifest   = 256 << 10 // bytes
	maxArchives   = 4         // that are kept packed
	bundleTimeout = 5 * time.Minute
	manifestName  = "manifest.json"
)

// Bundle is an MCPB package: a zip with a program, bound by its hash.
type Bundle struct {
	SHA256 string
	Folder string // in which it is unpacked before it runs
}

var sha256Hex = lazyregexp.New(`^[a-f0-9]{64}$`)

// manifest is the part of a bundle's manifest.json that says what runs.
type manifest struct {
	Server struct {
		Type string `json:"type"`
		MCP  struct {
			mcpConfig
			Platforms map[string]mcpConfig `json:"platform_overrides"`
		} `json:"mcp_config"`
	} `json:"server"`
	UserConfig map[string]struct {
		Type        string          `json:"type"`
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Required    bool            `json:"required"`
		Sensitive   bool            `json:"sensitive"`
		Multiple    bool            `json:"multiple"`
		Default     json.RawMessage `json:"default"`
	} `json:"user_config"`
	folder string // in which it is unpacked
}

type mcpConfig struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// interpreters are the commands that a bundle may name; another one has to be a file of it.
var interpreters = []string{"node", "python", "python3", "uv"}

// NeedsBundle reports whether an option has to be fetched ([Catalog.FetchBundle]) before it says
// what it asks for.
func (o Option) NeedsBundle() bool { return o.Kind == kindBundle && o.Refused == "" }

// FetchBundle downloads the bundle of an option, unless it is kept, checks its hash, and reads its
// manifest. Nothing of it is unpacked or run. folder is that of unpacked bundles.
func (c *Catalog) FetchBundle(ctx context.Context, e *Entry, option, folder string) error {
	all := e.Options()
	i := slices.IndexFunc(all, func(o Option) bool { return o.ID == option })
	if i < 0 || !all[i].NeedsBundle() {
		return nil
	}
	p := all[i].pack
	select {
	case c.fetching <- struct{}{}:
		defer func() { <-c.fetching }()
	case <-ctx.Done():
		return ctx.Err()
	}
	raw, err := c.archive(ctx, *e, p)
	if err != nil {
		return fmt.Errorf("the bundle of %s: %w", e.Server.Name, err)
	}
	if p.manifest, err = readManifest(raw); err != nil {
		return fmt.Errorf("the bundle of %s: %w", e.Server.Name, err)
	}
	p.manifest.folder = filepath.Join(folder, p.FileSHA256)
	return nil
}

// archive returns a bundle, whose hash is right.
func (c *Catalog) archive(ctx context.Context, e Entry, p *Package) ([]byte, error) {
	if raw, err := c.kept(p.FileSHA256); err == nil {
		return raw, nil
	}
	raw, err := c.download(ctx, e, p.Identifier)
	if err != nil {
		return nil, err
	}
	if err := checkSum(raw, p.FileSHA256); err != nil {
		return nil, err
	}
	return raw, c.keepArchive(p.FileSHA256, raw)
}

func checkSum(raw []byte, want string) error {
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != want {
		return fmt.Errorf("its SHA-256 is %s, and its entry says %s: somebody has changed it", hex.EncodeToString(sum[:]), want)
	}
	return nil
}

// archives is the folder of packed bundles.
const archives = Folder + "/bundles"

func (c *Catalog) kept(sum string) (raw []byte, err error) {
	if c.data == nil {
		return nil, fs.ErrNotExist
	}
	f, err := c.data.Open(archives + "/" + sum + ".mcpb")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if raw, err = io.ReadAll(io.LimitReader(f, maxBundle+1)); err != nil { //nolint:forbidigo // bounded by the reader
		return nil, err
	}
	return raw, checkSum(raw, sum)
}

func (c *Catalog) keepArchive(sum string, raw []byte) (err error) {
	if c.data == nil {
		return nil
	}
	if err := c.data.MkdirAll(archives, 0o700); err != nil {
		return err
	}
	dir, err := c.data.OpenRoot(archives)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if _, err := atomicfile.Write(dir, sum+".mcpb", raw); err != nil {
		return err
	}
	all, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	at := map[string]time.Time{}
	for _, d := range all {
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			at[d.Name()] = info.ModTime()
		}
	}
	left := map[string]time.Time{}
	for n, t := range at {
		left[n] = t
	}
	oldest(left, maxArchives, func(t time.Time) time.Time { return t })
	for n := range at {
		if _, ok := left[n]; !ok {
			err = errors.Join(err, dir.Remove(n))
		}
	}
	return err
}

// download gets a bundle from where its entry says. The address is its publisher's: it is https,
// and every address that it leads to is one of the internet, unless it is at the registry itself,
// which the user has named. Proxies of the environment would look names up themselves, and are
// not used.
func (c *Catalog) download(ctx context.Context, e Entry, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("its address cannot be read")
	}
	home := ""
	for _, r := range c.registries() {
		if ru, err := url.Parse(r.URL); err == nil && r.Name == e.Registry {
			home = ru.Scheme + "://" + ru.Host
		}
	}
	atHome := func(u *url.URL) bool { return home != "" && u.Scheme+"://"+u.Host == home }
	if u.Scheme != "https" && !atHome(u) {
		return nil, fmt.Errorf("its address %q is not https", cut.Text(address, 200))
	}
	dial := &net.Dialer{Timeout: requestTimeout / 2, ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(to)
		if err != nil {
			return err
		}
		if !netaddr.Public(ap.Addr()) && !atHome(u) {
			return fmt.Errorf("refused: %s is not an address of the internet", ap.Addr())
		}
		return nil
	}}
	rt := &http.Transport{DialContext: dial.DialContext, TLSHandshakeTimeout: requestTimeout / 2, ResponseHeaderTimeout: requestTimeout, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true}
	get := &http.Client{Transport: rt, Timeout: bundleTimeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 5 || req.URL.Scheme != "https" || atHome(u) { // releases of GitHub are elsewhere
			return fmt.Errorf("its address redirects to %s, which is not followed", cut.Text(req.URL.Scheme+"://"+req.URL.Host, 200))
		}
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "yaya")
	resp, err := get.Do(req)
	if err != nil {
		if x, ok := errors.AsType[*url.Error](err); ok {
			err = x.Err
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its address answers with status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxBundle+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return nil, err
	}
	if len(raw) > maxBundle {
		return nil, fmt.Errorf("it is larger than %d MiB", maxBundle>>20)
	}
	return raw, nil
}

// readManifest reads manifest.json of a bundle.
func readManifest(raw []byte) (*manifest, error) {
	files, err := fetch.ZipFiles(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(files, func(f *zip.File) bool { return f.Name == manifestName })
	if i < 0 {
		return nil, fmt.Errorf("it has no %s", manifestName)
	}
	in, err := files[i].Open()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1)) //nolint:forbidigo // bounded by the reader
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, err
	}
	var m manifest
	if len(text) > maxManifest {
		return nil, fmt.Errorf("its %s is larger than %d KiB", manifestName, maxManifest>>10)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("its %s cannot be read", manifestName)
	}
	if len(m.UserConfig) > maxInputs || len(m.Server.MCP.Args) > maxInputs || len(m.Server.MCP.Env) > maxInputs {
		return nil, fmt.Errorf("it has more than %d settings, arguments or variables", maxInputs)
	}
	return &m, nil
}

// bundle fills in the command of a bundle.
func (p *Package) bundle(f *form, m *made) error {
	if !sha256Hex().MatchString(p.FileSHA256) {
		return errors.New("its bundle has no SHA-256, by which its download could be checked")
	}
	if p.manifest == nil {
		return nil // it is not fetched yet
	}
	run := p.manifest.Server.MCP.mcpConfig
	if o, ok := p.manifest.Server.MCP.Platforms[map[string]string{"darwin": "darwin"}[runtime.GOOS]]; ok {
		run = o
	} else if o, ok := p.manifest.Server.MCP.Platforms[runtime.GOOS]; ok {
		run = o
	}
	given, err := p.manifest.ask(f)
	if err != nil {
		return err
	}
	command := path.Clean(strings.TrimPrefix(strings.ReplaceAll(run.Command, "${/}", "/"), "${__dirname}/"))
	switch {
	case slices.Contains(interpreters, run.Command):
		command = run.Command
	case strings.HasPrefix(run.Command, "${__dirname}") && filepath.IsLocal(command) && fixed("command", command) == nil:
		command = filepath.Join(p.manifest.folder, command)
	default:
		return fmt.Errorf("its command %q is neither one of %s nor a file of the bundle", cut.Text(run.Command, 80), strings.Join(interpreters, ", "))
	}
	m.argv = []string{command}
	for _, a := range run.Args {
		words, err := p.manifest.expand(a, given, true)
		if err != nil {
			return err
		}
		for _, w := range words {
			m.argv = append(m.argv, w.text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(run.Env)) {
		if err := checkVariable(name); err != nil {
			return err
		}
		words, err := p.manifest.expand(run.Env[name], given, false)
		if err != nil {
			return err
		}
		if len(words) == 1 && words[0].text != "" {
			m.env[name] = words[0].text
			m.sets(name, words[0])
		}
	}
	if err := p.variables(f, m); err != nil {
		return err
	}
	m.bundle = &Bundle{SHA256: p.FileSHA256, Folder: p.manifest.folder}
	return nil
}

// ask asks for the settings of a bundle, by name.
func (b *manifest) ask(f *form) (map[string][]piece, error) {
	out := map[string][]piece{}
	names := make([]string, 0, len(b.UserConfig))
	for n := range b.UserConfig {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		u := b.UserConfig[n]
		format := u.Type
		if format == "directory" || format == "file" {
			format = "filepath"
		}
		var text string
		if json.Unmarshal(u.Default, &text) != nil {
			text = strings.Trim(string(u.Default), `"`)
		}
		if strings.ContainsAny(text, "$[{") || text == "null" { // a folder of its own machine, or several
			text = ""
		}
		values, err := f.ask(n, "argument", Input{Description: cmpText(u.Description, u.Title), Required: u.Required, Secret: u.Sensitive, Format: format, Default: text}, u.Multiple)
		if err != nil {
			return nil, err
		}
		out[n] = values
	}
	return out, nil
}

var bundleVar = lazyregexp.New(`\$\{([^}]*)\}`)

// expand replaces the variables of a bundle's argument. One that is a setting alone can become
// several words, or none.
func (b *manifest) expand(text string, given map[string][]piece, words bool) ([]value, error) {
	if key, ok := strings.CutPrefix(strings.TrimSuffix(text, "}"), "${user_config."); ok && words && strings.Count(text, "$") == 1 {
		if values, known := given[key]; known {
			return joined(key, values)
		}
	}
	if err := fixed("an argument", bundleVar().ReplaceAllString(text, "")); err != nil {
		return nil, err
	}
	var pieces []piece
	last := 0
	for _, at := range bundleVar().FindAllStringIndex(text, -1) {
		ref := text[at[0]:at[1]]
		put, err := b.variable(ref[2:len(ref)-1], given)
		if err != nil {
			return nil, err
		}
		pieces = append(append(pieces, piece{text: text[last:at[0]]}), put...)
		last = at[1]
	}
	v, err := join("an argument", append(pieces, piece{text: text[last:]}))
	return []value{v}, err
}

// variable returns what a variable of a bundle stands for.
func (b *manifest) variable(name string, given map[string][]piece) (out []piece, err error) {
	home, _ := os.UserHomeDir()
	switch name {
	case "__dirname":
		return []piece{{text: b.folder}}, nil
	case "HOME":
		return []piece{{text: home}}, nil
	case "DESKTOP", "DOCUMENTS", "DOWNLOADS":
		return []piece{{text: filepath.Join(home, name[:1]+strings.ToLower(name[1:]))}}, nil
	case "/", "pathSeparator":
		return []piece{{text: "/"}}, nil
	}
	key, ok := strings.CutPrefix(name, "user_config.")
	values, known := given[key]
	if !ok || !known {
		return nil, fmt.Errorf("its reference %q is not known", cut.Text("${"+name+"}", 80))
	}
	for i, v := range values {
		if i > 0 {
			out = append(out, piece{text: ","})
		}
		out = append(out, v)
	}
	return out, nil
}

// Unpack writes the files of a bundle that was fetched into its folder, unless they are there.
func (c *Catalog) Unpack(b *Bundle) (err error) {
	if _, err := os.Stat(filepath.Join(b.Folder, manifestName)); err == nil { //nolint:forbidigo // a folder of the user's, made by yaya
		return nil
	}
	raw, err := c.kept(b.SHA256)
	if err != nil {
		return fmt.Errorf("the bundle is no longer kept: begin again: %w", err)
	}
	parent := filepath.Dir(b.Folder)
	if err := os.MkdirAll(parent, 0o700); err != nil { //nolint:forbidigo // a folder of the user's, made by yaya
		return err
	}
	tmp, err := os.MkdirTemp(parent, ".unpacking-") //nolint:forbidigo // likewise
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }() //nolint:forbidigo // made here
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	err = fetch.Unzip(root, bytes.NewReader(raw), int64(len(raw)))
	if err = errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("the bundle cannot be unpacked: %w", err)
	}
	return os.Rename(tmp, b.Folder) //nolint:forbidigo // beside it
}
