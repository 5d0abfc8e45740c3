package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

var commitID = lazyregexp.New(`^[0-9a-f]{40}$`)

// gitClient reaches the repository as the user would: with credential helpers and rewritten
// addresses of the user's settings, and without a question. Only these protocols are used,
// whatever the settings say: others run a program that the address names.
func (j *job) gitClient() program {
	env := []string{
		"GIT_DIR=" + filepath.Join(j.got, "repository"), "GIT_ALLOW_PROTOCOL=https:ssh:file", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "GCM_INTERACTIVE=never",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
	}
	if !slices.ContainsFunc(j.c.Env, func(kv string) bool { return strings.HasPrefix(kv, "GIT_SSH_COMMAND=") }) {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	return program{name: "git", remedy: "install Git (https://git-scm.com), or install the plugin from a folder", env: env}
}

// gitReader reads what was fetched. No setting is in force, so that no attribute of a file in the
// repository finds a filter or a driver to run.
func (j *job) gitReader() program {
	p := j.gitClient()
	p.env = append(p.env, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_ATTR_NOSYSTEM=1")
	return p
}

// gitSettings outweigh the user's.
var gitSettings = []string{
	"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "fetch.fsckObjects=true", "-c", "fetch.recurseSubmodules=false", "-c", "submodule.recurse=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "transfer.bundleURI=false", "-c", "credential.interactive=false", "-c", "init.templateDir=", "-c", "protocol.version=2",
}

func gitArgs(args ...string) []string { return slices.Concat(gitSettings, args) }

// git fetches one commit without its history, and writes its files as they are stored, without
// a work tree: a checkout would run hooks, filters and line-end conversions.
func (j *job) git(ctx context.Context) error {
	client := j.gitClient()
	if _, err := j.output(ctx, client, gitArgs("init", "--quiet", "--bare", "--template=", filepath.Join(j.got, "repository"))...); err != nil {
		return err
	}
	commit, ref := j.f.Source.Version, ""
	if !commitID().MatchString(commit) {
		var err error
		if commit, ref, err = j.resolve(ctx, client); err != nil {
			return err
		}
	}
	const kept = "refs/yaya/plugin"
	fetch := func(what string) error {
		_, err := j.output(ctx, client, gitArgs("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--end-of-options", j.f.Source.Name, "+"+what+":"+kept)...)
		return err
	}
	err := fetch(commit)
	if err != nil && ref != "" && ctx.Err() == nil { // the server gives out what a name refers to, and nothing else
		err = fetch(ref)
	}
	if err != nil {
		return err
	}
	got, err := j.output(ctx, j.gitReader(), gitArgs("rev-parse", "--verify", "--quiet", kept+"^{commit}")...)
	if err != nil {
		return err
	}
	if string(bytes.TrimSpace(got)) != commit {
		return fmt.Errorf("the repository changes while it is read: %s is another commit than %s", j.f.Source.Version, commit)
	}
	j.f.Resolved = "commit " + commit
	if err := j.gitFiles(ctx, commit); err != nil {
		return err
	}
	return j.unpacked(nil)
}

// resolve returns the commit of a tag or branch, or of the newest version, and the name under
// which the repository has it.
func (j *job) resolve(ctx context.Context, client program) (commit, ref string, err error) {
	out, err := j.output(ctx, client, gitArgs("ls-remote", "--quiet", "--end-of-options", j.f.Source.Name)...)
	if err != nil {
		return "", "", err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if ok && commitID().MatchString(id) {
			refs[name] = id
		}
	}
	wanted := j.f.Source.Version
	names := []string{"refs/tags/" + wanted, "refs/heads/" + wanted}
	if wanted == "" {
		var tags []string
		for name := range refs {
			if tag, ok := strings.CutPrefix(name, "refs/tags/"); ok && gitRef().MatchString(tag) {
				tags = append(tags, tag)
			}
		}
		names = []string{"HEAD"}
		if newest := Newest(tags); newest != "" {
			names, j.f.Source.Version = []string{"refs/tags/" + newest}, newest
		}
	}
	for _, name := range names {
		id := refs[name]
		if peeled := refs[name+"^{}"]; peeled != "" { // what an annotated tag points to
			id = peeled
		}
		if id != "" {
			return id, name, nil
		}
	}
	if wanted == "" {
		return "", "", errors.New("the repository is empty")
	}
	return "", "", fmt.Errorf("the repository has no tag or branch %q; a commit is named with all of its 40 digits", wanted)
}

// gitFile is an entry of a commit.
type gitFile struct {
	name       string
	id         string
	executable bool
	size       int64
}

func (j *job) gitFiles(ctx context.Context, commit string) error {
	out, err := j.output(ctx, j.gitReader(), gitArgs("ls-tree", "-r", "-z", "-l", "--full-tree", commit)...)
	if err != nil {
		return err
	}
	files, err := gitList(out)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(j.files)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var ids strings.Builder
	for _, f := range files {
		ids.WriteString(f.id + "\n")
	}
	reader := j.gitReader()
	reader.stdin = strings.NewReader(ids.String())
	return j.run(ctx, reader, gitArgs("cat-file", "--batch", "--buffer"), func(in io.Reader) error {
		from := bufio.NewReader(in)
		for _, f := range files {
			if err := gitPut(root, from, f); err != nil {
				return fmt.Errorf("%.200q: %w", f.name, err)
			}
		}
		return nil
	})
}

// gitList reads the output of ls-tree: "<mode> <type> <id> <size>\t<name>\0".
func gitList(out []byte) ([]gitFile, error) {
	var files []gitFile
	var b budget
	for entry := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		about, name, ok := strings.Cut(string(entry), "\t")
		part := strings.Fields(about)
		if !ok || len(part) != 4 {
			return nil, errors.New("git lists files in a way that yaya does not know")
		}
		switch part[0] {
		case "100644", "100664", "100755":
		case "120000":
			return nil, linked(name)
		case "160000":
			return nil, fmt.Errorf("%.200q is a submodule: yaya fetches none, put its files into the repository", name)
		default:
			return nil, fmt.Errorf("%.200q has the mode %.20s, which no file of a plugin has", name, part[0])
		}
		size, err := strconv.ParseInt(part[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.200q: %w", name, err)
		}
		if _, err := b.admit(name, size); err != nil {
			return nil, err
		}
		files = append(files, gitFile{name, part[2], part[0] == "100755", size})
	}
	return files, nil
}

// gitPut writes the next object that cat-file prints: "<id> blob <size>\n<content>\n".
func gitPut(root *os.Root, from *bufio.Reader, f gitFile) error {
	head, err := from.ReadSlice('\n')
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("%s blob %d\n", f.id, f.size); string(head) != want {
		return fmt.Errorf("git prints %.100q where %q was listed", head, strings.TrimSpace(want))
	}
	if err := Put(root, f.name, io.LimitReader(from, f.size), f.executable, f.size); err != nil {
		return err
	}
	end, err := from.ReadByte()
	if err == nil && end != '\n' {
		err = errors.New("the object is longer than it was listed")
	}
	return err
}
