package manage

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Bounds of what a folder brings: the number of servers, the words of a server's command line,
// the total size of the files that command lines name, and what the commands of hooks name.
const (
	maxBrought      = 64
	maxBroughtWords = 256
	maxBroughtBytes = 256 << 20
	maxNamed        = 8192 // by the commands of all hooks
	maxDigests      = 1024 // remembered digests
	settlesAfter    = 2 * time.Second
)

// projectServers reads the servers in the .mcp.json of a folder. It does not follow links out
// of the folder, and does not wait for pipes.
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
	return servers.ParseProject(file, data)
}

// Digests caches the digests of files, keyed by all properties that change with their content.
// It is safe for concurrent use.
type Digests struct {
	mu   sync.Mutex
	seen map[hostfile.Version]string
}

// learn replaces what is remembered by what was read since: a store through a mapping of
// a file changes its content and nothing else.
func (d *Digests) learn(fresh *Digests) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, sum := range fresh.seen {
		d.remember(key, sum)
	}
}

// remember stores the digest of a file; the caller holds mu.
func (d *Digests) remember(key hostfile.Version, sum string) {
	if d.seen == nil || len(d.seen) >= maxDigests {
		d.seen = map[hostfile.Version]string{}
	}
	d.seen[key] = sum
}

// inFolder resolves the variables of servers that a folder brings, but for secrets, of
// which nothing is shown.
func inFolder(dir string) servers.Scope {
	return servers.Scope{Env: os.LookupEnv, Home: os.Getenv("HOME"), Workspace: dir, Secret: func(name string) (string, error) {
		return "${secret:" + name + "}", nil
	}}
}

// PlacesOf are the paths that a server that a folder brings reads and writes, resolved now.
func PlacesOf(s servers.Server) servers.Places { return s.Places(inFolder(filepath.Dir(s.File))) }

// Brings describes what a server that a folder brings would run, in the words of the question
// about the folder.
func Brings(s servers.Server, boxes *sandbox.Sandboxes) string {
	return s.Brings(PlacesOf(s), mcpbridge.Here(boxes, s, os.LookupEnv))
}

// Items returns the servers of a folder as the question about it shows them: the command
// line, the values that the folder's author has written for environment and headers, where
// the paths lead that it may read and write, and the beginning of the digest over the whole
// configuration and the files of the folder that the command line names.
// A file that cannot be read starts nothing, and has none; [Loaded.Project] says why.
func (d *Digests) Items(w *workspace.Workspace, boxes *sandbox.Sandboxes) ([]folder.Item, error) {
	cfg, err := projectServers(w)
	if err != nil {
		return nil, nil //nolint:nilerr // as it says
	}
	all := cfg.Servers
	if len(all) > maxBrought {
		return nil, fmt.Errorf("%w: %s configures %d servers, %d at most", folder.ErrTooMuch, projectFile, len(all), maxBrought)
	}
	left := int64(maxBroughtBytes)
	var out []folder.Item
	for _, s := range all {
		item, err := d.item(w, s, s.Places(inFolder(w.Dir())), mcpbridge.Here(boxes, s, os.LookupEnv), &left)
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", s.Name, err)
		}
		out = append(out, item)
	}
	return out, nil
}

// item is a server of a folder, with what it reads and writes, and what of that is enforced
// here.
func (d *Digests) item(w *workspace.Workspace, s servers.Server, at servers.Places, here servers.Here, left *int64) (folder.Item, error) {
	digest, err := d.server(w, s, left)
	if err != nil {
		return folder.Item{}, err
	}
	also := ""
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			also += fmt.Sprintf(", %s=%s", servers.Shown(name), strconv.QuoteToASCII(values[name]))
		}
	}
	for _, name := range s.SecretNames() {
		also += ", uses your secret " + strconv.QuoteToASCII(name)
	}
	if s.Prefix != nil {
		also += fmt.Sprintf(", its tools named %s…", strconv.QuoteToASCII(*s.Prefix))
	}
	also += fmt.Sprintf(" (sha256 %.12s)", digest)
	return folder.Item{
		Kind: folder.Server, Name: servers.Shown(s.Name), Runs: s.Brings(at, servers.Here{}) + also, Digest: digest,
		Lacks: here.Lacks.String(), Weaker: here.Weaker, Shown: s.Brings(at, here) + also,
	}, nil
}

// runners are commands that a file of the folder tells what to run.
var runners = map[string][]string{
	"npm": {"package.json"}, "npx": {"package.json"}, "pnpm": {"package.json"}, "yarn": {"package.json"}, "bun": {"package.json"}, "bunx": {"package.json"},
	"uv": {"pyproject.toml"}, "uvx": {"pyproject.toml"}, "deno": {"deno.json", "deno.jsonc"}, "docker": {"Dockerfile", "compose.yaml", "docker-compose.yml"},
	"make": {"GNUmakefile", "makefile", "Makefile"}, "just": {"justfile"}, "cargo": {"Cargo.toml", "build.rs"}, "go": {"go.mod"},
}

// server covers everything that defines a server: its whole configuration, and the files
// of the folder that its command line, its folder, its file of variables and its PATH name.
func (d *Digests) server(w *workspace.Workspace, s servers.Server, left *int64) (string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(raw)
	for _, name := range s.SecretNames() { // entries agreed to before yaya had secrets name none: their digest stays
		fmt.Fprintf(h, "\x00secret\x00%s", name)
	}
	x, _, err := s.Expand(inFolder(w.Dir())) // files are not named by secrets
	if err != nil {
		x = s // it cannot be started either
	}
	words := append([]string{x.Command}, x.Args...)
	if len(words) > maxBroughtWords {
		return "", fmt.Errorf("%w: its command line has %d words, %d at most", folder.ErrTooMuch, len(words), maxBroughtWords)
	}
	dir := x.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(w.Dir(), dir)
	}
	named := names{}
	named.words(dir, words)
	named.add(dir, x.EnvFile)
	for _, p := range filepath.SplitList(x.Env["PATH"]) {
		named.add(p, x.Command)
	}
	if err := d.files(h, w, named, left); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Commands returns the digests of commands for sh that a folder brings, over each with the files
// of the folder that it names. They run in the folder.
func (d *Digests) Commands(w *workspace.Workspace, commands []string) ([]string, error) {
	left, seen := int64(maxBroughtBytes), 0
	out := make([]string, 0, len(commands))
	for _, command := range commands {
		h := sha256.New()
		h.Write([]byte(command))
		named := names{}
		named.words(w.Dir(), spelled(command))
		if seen += len(named); seen > maxNamed {
			return nil, fmt.Errorf("%w: the commands of its hooks have more than %d words", folder.ErrTooMuch, maxNamed)
		}
		if err := d.files(h, w, named, &left); err != nil {
			return nil, err
		}
		out = append(out, hex.EncodeToString(h.Sum(nil)))
	}
	return out, nil
}

// inPlace replaces what stands for the folder in commands.
var inPlace = strings.NewReplacer("${CLAUDE_PROJECT_DIR}", ".", "$CLAUDE_PROJECT_DIR", ".")

// spelled are the words of a command for sh, without quotes and, for names with spaces, what is
// in quotes.
func spelled(command string) []string {
	command = inPlace.Replace(command)
	quote := func(r rune) bool { return r == '\'' || r == '"' }
	parts := strings.FieldsFunc(command, quote)
	return append(strings.FieldsFunc(strings.Join(parts, ""), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`;&|()<>", r) }), parts...)
}

// names are the paths that words name.
type names map[string]bool

// add adds what a word names, relative to a folder.
func (n names) add(base, word string) {
	if word = strings.Trim(word, `"'`+"`"+`;&|()<>{}$`); word == "" {
		return
	}
	if !filepath.IsAbs(word) {
		word = filepath.Join(base, word)
	}
	n[word] = true
}

// words adds what words name, their parts, and the files that tell their programs what to run.
func (n names) words(base string, words []string) {
	for _, word := range words {
		_, value, _ := strings.Cut(word, "=") // --require=./file
		parts := append(strings.FieldsFunc(word, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(";&|()<>", r) }), word, value)
		for _, p := range parts {
			n.add(base, p)
			for _, f := range runners[filepath.Base(p)] {
				n.add(base, f)
			}
		}
	}
}

// files adds files to a digest.
func (d *Digests) files(h io.Writer, w *workspace.Workspace, named names, left *int64) error {
	for _, file := range slices.Sorted(maps.Keys(named)) {
		sum, err := d.file(w, file, left)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if sum != "" {
			if _, err := fmt.Fprintf(h, "\x00%s\x00%s", file, sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// file returns the digest of a file in the folder; "" if it lies elsewhere or does not exist. For a link
// out of the folder, it returns the link's target.
func (d *Digests) file(w *workspace.Workspace, name string, left *int64) (string, error) {
	name, err := w.Clean(name)
	if err != nil {
		return "", nil //nolint:nilerr // it lies elsewhere
	}
	f, err := w.Root().OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		at := filepath.Join(w.Dir(), name)
		if to := sandbox.Real(at); to != at { // by whichever part of it
			return "link to " + to, nil
		}
		return "", nil //nolint:nilerr // it is not there, or another word than a file
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", nil
	}
	if *left -= st.Size(); *left < 0 {
		return "", fmt.Errorf("%w: the files that its command lines name have more than %d MiB", folder.ErrTooMuch, maxBroughtBytes>>20)
	}
	key, err := hostfile.VersionOf(f)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	sum, known := d.seen[key]
	d.mu.Unlock()
	if known {
		return sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, st.Size())); err != nil {
		return "", err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	if time.Since(key.Changed()) < settlesAfter {
		return sum, nil // it could change once more in the same tick of the clock
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remember(key, sum)
	return sum, nil
}
