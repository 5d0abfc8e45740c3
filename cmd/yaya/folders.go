package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
)

// Bounds of the files of a folder that a server's command line names: how many words it
// may have, and how many bytes each file.
const (
	maxServerFiles = 512
	maxServerFile  = 64 << 20
)

// folders returns the store of trusted folders: what trusting a folder lets run is
// looked up here, for every surface.
func folders(data *os.Root, settings *config.Store, guard *workspace.Guard) *folder.Store {
	return folder.NewStore(data, func(dir string) ([]folder.Item, error) {
		w, err := guard.Open(dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = w.Close() }()
		var out []folder.Item
		if _, err := w.Text("AGENTS.md"); err == nil {
			out = append(out, folder.Item{Kind: folder.Instructions, Name: "AGENTS.md"})
		}
		checks := tool_shell.Checks(w)
		if raw, _, ok := settings.Get("plugin.tool_shell.verify"); ok {
			checks = nil
			if err := json.Unmarshal(raw, &checks); err != nil {
				return nil, fmt.Errorf("plugin.tool_shell.verify: %w", err)
			}
		}
		for _, c := range checks {
			out = append(out, folder.Item{Kind: folder.Check, Runs: c})
		}
		cfg, err := projectServers(w)
		if err != nil {
			return out, nil //nolint:nilerr // a file that cannot be read starts nothing; serve says why
		}
		for _, s := range cfg.Servers {
			item, err := brought(w, s)
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	})
}

// folders returns the store of trusted folders for a command that runs no agents.
func (p paths) folders(data *os.Root, settings *config.Store) (*folder.Store, error) {
	guard, err := workspace.NewGuard(p.own()...)
	if err != nil {
		return nil, err
	}
	return folders(data, settings, guard), nil
}

// projectServers reads the servers that the .mcp.json of a folder configures. It follows
// no link out of the folder and waits for no pipe.
func projectServers(w *workspace.Workspace) (servers.Config, error) {
	data, _, err := w.Read(projectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return servers.Config{}, nil
	}
	file := filepath.Join(w.Dir(), projectFile)
	if err == nil && len(data) > servers.MaxFile {
		err = workspace.ErrTooLarge
	}
	if err != nil {
		return servers.Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return servers.Parse(file, data, servers.FormatClaudeCode)
}

// brought is a server as the question about its folder shows it: the command line, the
// values that the folder's author has written for environment and headers, and the
// beginning of the digest over its whole configuration and the files of the folder that
// its command line names.
func brought(w *workspace.Workspace, s servers.Server) (folder.Item, error) {
	digest, err := serverDigest(w, s)
	if err != nil {
		return folder.Item{}, err
	}
	runs := s.Runs()
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			runs += fmt.Sprintf(", %s=%s", name, strconv.QuoteToASCII(values[name]))
		}
	}
	return folder.Item{Kind: folder.Server, Name: s.Name, Runs: fmt.Sprintf("%s (%.12s)", runs, digest), Digest: digest}, nil
}

// packageRunners are commands that a file of the folder tells what to run.
var packageRunners = map[string]string{"npm": "package.json", "npx": "package.json", "pnpm": "package.json", "yarn": "package.json", "bun": "package.json", "bunx": "package.json", "uv": "pyproject.toml", "uvx": "pyproject.toml", "make": "Makefile", "deno": "deno.json", "docker": "Dockerfile"}

// serverDigest covers everything that defines a server: its whole configuration, and
// the files of the folder that its command line names.
func serverDigest(w *workspace.Workspace, s servers.Server) (string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(raw)
	named := map[string]bool{}
	for _, word := range append([]string{s.Command}, s.Args...) {
		_, value, _ := strings.Cut(word, "=") // --require=./file
		for _, name := range append(strings.FieldsFunc(word, unicode.IsSpace), word, value, packageRunners[filepath.Base(word)]) {
			if name = strings.Trim(name, `"';&|()<>`); name != "" {
				named[filepath.Join(s.Dir, name)] = true
			}
		}
	}
	if len(named) > maxServerFiles {
		return "", fmt.Errorf("%w: the command line of %q has more than %d words", folder.ErrTooMuch, s.Name, maxServerFiles)
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if err := addFile(h, w, name); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// addFile adds a file of the folder to a digest.
func addFile(h hash.Hash, w *workspace.Workspace, name string) error {
	name, err := w.Clean(name)
	if err != nil {
		return nil //nolint:nilerr // it lies elsewhere
	}
	f, err := w.Root().OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil //nolint:nilerr // it is no file of the folder
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return err
	}
	if st.Size() > maxServerFile {
		return fmt.Errorf("%w: it has more than %d bytes", folder.ErrTooMuch, maxServerFile)
	}
	fmt.Fprintf(h, "\x00%s\x00%d\x00", name, st.Size())
	_, err = io.Copy(h, io.LimitReader(f, maxServerFile))
	return err
}

// explain writes what trusting a folder means, made safe for a terminal.
func explain(q folder.Question) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Trust the folder %s?\n", whole(q.Folder))
	switch {
	case len(q.Added)+len(q.Removed) > 0:
		b.WriteString("It was trusted before, and brings something else now:\n")
		for _, i := range q.Removed {
			fmt.Fprintf(&b, "  - %s\n", whole(i.String()))
		}
		for _, i := range q.Added {
			fmt.Fprintf(&b, "  + %s\n", whole(i.String()))
		}
		b.WriteString("Together it would bring:\n")
	case len(q.Items) == 0:
		b.WriteString("Nothing in it runs by itself.\n")
	default:
		b.WriteString("With your rights, and without another question, it would bring:\n")
	}
	for _, i := range q.Items {
		fmt.Fprintf(&b, "    %s\n", whole(i.String()))
	}
	b.WriteString("The agent could then change files and run commands there, each after a question.\nUntil then the agent can read and search the folder, and nothing else.\n")
	return b.String()
}

// whole writes text so that a terminal shows all of it, on one line, and nothing else.
// The texts of a question about a folder are short.
func whole(s string) string { return escaped(s, math.MaxInt) }

// mayStart returns why a server that a folder brings is not started: every start looks
// again whether the folder is trusted with it.
func (a *app) mayStart(s servers.Server) error {
	dir := filepath.Dir(s.File)
	st, err := a.folders.Status(dir)
	if err == nil && !st.Trusted {
		err = errors.New("it is not trusted with what it brings now")
	}
	if err != nil {
		return &untrustedError{dir, err}
	}
	return nil
}

// untrustedError says that a folder's server is not started.
type untrustedError struct {
	dir   string
	cause error
}

func (e *untrustedError) Error() string {
	return fmt.Sprintf("the folder %s brings it: %v: yaya trust %s", e.dir, e.cause, e.dir)
}

func (e *untrustedError) Unwrap() error { return e.cause }

// RetryAfter keeps the server from being started in vain.
func (*untrustedError) RetryAfter() time.Duration { return time.Minute }

// mayUse returns the folder that somebody's session works in when it asks for dir, or why
// it may not: nobody but the user of this machine chooses folders freely, since agents
// read there unasked. Links are resolved once, here: what they lead to later is not asked
// for.
func (a *app) mayUse(who auth.Principal, dir string) (string, error) {
	if who.Kind == auth.Owner {
		return dir, nil
	}
	var roots []string
	if raw, _, ok := a.kernel.Settings.Get("workspace.roots"); ok {
		if err := json.Unmarshal(raw, &roots); err != nil {
			return "", fmt.Errorf("workspace.roots: %w", err)
		}
	}
	at, below, err := a.folders.Below(dir, roots)
	if err == nil && below {
		return at, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn().Err(err).Msg("it cannot be looked up which folders are open to devices")
	}
	// A folder that is not there is refused in the same words: nobody learns which are.
	return "", fmt.Errorf("the folder %s is not open to other devices: on the machine that yaya runs on, trust it (yaya trust %s) or list a folder above it in workspace.roots", dir, dir)
}
