// Package agentfile reads files that describe sub-agents: Markdown with front matter (name,
// description, tools, model) and instructions below it.
//
// The content is hostile: everything is bounded in number and size, no read follows a link out of
// the folder or waits for a pipe. A file that breaks a rule is reported as a [Broken] with the
// reason, and leaves the others as they are. The package starts no goroutine.
package agentfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/agentskill"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/members"
)

// ProjectFolder is the folder of such files in a project.
const ProjectFolder = ".yaya/agents"

// Bounds of the files.
const (
	MaxFiles       = 50       // of one folder
	MaxFile        = 32 << 10 // bytes
	MaxDescription = 1024     // characters
	MaxTools       = 100
	MaxModel       = 200 // bytes

	maxNames = 10_000 // entries of a folder that are listed
)

// File describes a sub-agent.
type File struct {
	Name        string
	Description string
	// Tools are the names of the tools that it gets at most; nil means all.
	Tools []string
	// Model is the one that it uses, "" for that of its session.
	Model string
	// Prompt are its instructions.
	Prompt  string
	Path    string // absolute
	Digest  string // of the content, SHA-256
	Project bool   // of the folder that somebody works in
}

// Broken is a file, or a folder of files, that is not read, or not as a whole.
type Broken struct {
	Name    string // of the sub-agent, "" for a folder
	Path    string
	Project bool
	Reason  string
}

// Set holds the result of a look, in the order of names: of two files of one name, that of the
// project alone.
type Set struct {
	Files  []File
	Broken []Broken
}

// Find returns a file by its name. The error says what there is.
func (s Set) Find(name string) (File, error) {
	names := make([]string, 0, len(s.Files))
	for _, f := range s.Files {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	for _, b := range s.Broken {
		if b.Name == name {
			return File{}, fmt.Errorf("the sub-agent %q cannot be used: %s: %s", name, b.Path, b.Reason)
		}
	}
	if len(names) == 0 {
		return File{}, fmt.Errorf("no sub-agent %.70q: no file describes one", name)
	}
	return File{}, fmt.Errorf("no sub-agent %.70q: there are %s", name, strings.Join(names, ", "))
}

// Look reads the files of a project, if in is set, and those of the folder user; with "" only those.
func Look(in *agentskill.Folder, user string) Set {
	var s Set
	if in != nil {
		look(&s, filepath.Join(in.Dir, filepath.FromSlash(ProjectFolder)), true, in.Check, func() (*os.Root, error) { return in.Root.OpenRoot(ProjectFolder + "/.") })
	}
	if user != "" {
		look(&s, user, false, nil, func() (*os.Root, error) { return os.OpenRoot(user + "/.") })
	}
	slices.SortStableFunc(s.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	s.Files = slices.CompactFunc(s.Files, func(a, b File) bool { return a.Name == b.Name }) // the project's come first
	return s
}

// look adds the files of a folder; one that is not there has no files.
func look(s *Set, dir string, project bool, check func(*os.File, fs.FileInfo) error, open func() (*os.Root, error)) {
	root, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.Broken = append(s.Broken, Broken{"", dir, project, reason(err)})
		return
	}
	defer func() { _ = root.Close() }()
	names, err := list(root)
	if err != nil {
		s.Broken = append(s.Broken, Broken{"", dir, project, reason(err)})
		return
	}
	if len(names) > MaxFiles {
		s.Broken = append(s.Broken, Broken{"", dir, project, fmt.Sprintf("it has %d files: only the first %d in the order of their names are read", len(names), MaxFiles)})
		names = names[:MaxFiles]
	}
	for _, name := range names {
		f, err := read(root, name, check)
		f.Path, f.Project = filepath.Join(dir, name), project
		if err != nil {
			s.Broken = append(s.Broken, Broken{strings.TrimSuffix(name, ".md"), f.Path, project, reason(err)})
			continue
		}
		s.Files = append(s.Files, f)
	}
}

// list returns the names of the Markdown files of a folder, in order.
func list(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > maxNames {
		return nil, fmt.Errorf("it has more than %d entries, and no file of it is read", maxNames)
	}
	var out []string
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && strings.HasSuffix(name, ".md") && !strings.HasPrefix(name, ".") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func read(root *os.Root, name string, check func(*os.File, fs.FileInfo) error) (File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return File{}, err
	case !info.Mode().IsRegular():
		return File{}, errors.New("not a regular file")
	case check != nil:
		if err := check(f, info); err != nil {
			return File{}, err
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1)) //nolint:forbidigo // bounded
	if err != nil {
		return File{}, err
	}
	if len(data) > MaxFile {
		return File{}, fmt.Errorf("more than %d bytes", MaxFile)
	}
	return Parse(data, strings.TrimSuffix(name, ".md"))
}

// toolName matches the name of a tool.
var toolName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// keys are those of the front matter.
var keys = []string{"name", "description", "tools", "model"}

// checkKeys refuses other keys: without the list of a misspelt tools, a sub-agent would have all tools.
func checkKeys(fields map[string][]string) error {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(keys, k) {
			continue
		}
		return fmt.Errorf("unknown key %.70q%s", k, members.Among(k, keys))
	}
	return nil
}

// Parse reads the content of a file. name is the name of the file without its extension.
func Parse(data []byte, name string) (File, error) {
	fields, body, err := agentskill.Fields(data)
	if err != nil {
		return File{}, err
	}
	if err := checkKeys(fields); err != nil {
		return File{}, err
	}
	sum := sha256.Sum256(data)
	f := File{Name: name, Prompt: body, Digest: hex.EncodeToString(sum[:])}
	one := func(key string) string { return strings.TrimSpace(strings.Join(fields[key], " ")) }
	if got := one("name"); got != "" && got != name {
		return File{}, fmt.Errorf("name is %.70q, and the name of the file %.70q: both have to be the same", got, name)
	}
	if err := agentskill.CheckName(name); err != nil {
		return File{}, err
	}
	f.Description = strings.Join(strings.Fields(one("description")), " ")
	switch n := utf8.RuneCountInString(f.Description); {
	case n == 0:
		return File{}, errors.New("description is missing or empty")
	case n > MaxDescription:
		return File{}, fmt.Errorf("description has %d characters, %d at most", n, MaxDescription)
	case body == "":
		return File{}, errors.New("no instructions: the file ends with its front matter")
	}
	if f.Model = one("model"); len(f.Model) > MaxModel {
		return File{}, fmt.Errorf("model has %d bytes, %d at most", len(f.Model), MaxModel)
	}
	if listed, ok := fields["tools"]; ok {
		if f.Tools, err = tools(listed); err != nil {
			return File{}, err
		}
	}
	return f, nil
}

// tools reads a list of tools: a sequence, or one text with commas or spaces. An empty one is a list
// of none.
func tools(listed []string) ([]string, error) {
	out := []string{}
	for _, v := range listed {
		for _, name := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
			if !toolName().MatchString(name) {
				return nil, fmt.Errorf("tools has %.70q, which is not the name of a tool", name)
			}
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	if len(out) > MaxTools {
		return nil, fmt.Errorf("tools has %d names, %d at most", len(out), MaxTools)
	}
	return out, nil
}

// reason is an error in words that name no path twice.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		if strings.Contains(p.Err.Error(), "escapes") {
			return "a link that leads out of the folder"
		}
		return p.Err.Error()
	}
	return err.Error()
}
