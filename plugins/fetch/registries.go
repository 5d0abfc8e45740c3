package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/worded"
)

// maxMeta bounds a file that describes a package, in bytes.
const maxMeta = 1 << 20

// npmOnly holds npm to packages that a registry serves. The dist.tarball of a registry can name a
// Git repository or a folder instead: npm clones that repository, and installs what it depends on
// with the settings in it, which name the programs that npm runs. Versions of npm before 11.10
// know no --allow-git; they find no git. An npm that npm starts gets the environment only, which
// outweighs the settings in a folder.
var (
	npmOnly    = []string{"--allow-git=none", "--allow-directory=none", "--allow-file=none", "--git=" + noProgram, "--ignore-scripts"}
	npmOnlyEnv = []string{"npm_config_allow_git=none", "npm_config_allow_directory=none", "npm_config_allow_file=none", "npm_config_git=" + noProgram, "npm_config_ignore_scripts=true", noGit}
)

const (
	noProgram = "/nonexistent/git"
	noGit     = "GIT_ALLOW_PROTOCOL=" // an empty list: git reaches no repository
)

// npm has npm download the packed package, whose digest it checks against the registry's. The
// package.json in npm's folder ends its search for settings of a project.
func (j *job) npm(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(j.dir, "package.json"), []byte(`{"name":"yaya","version":"1.0.0","private":true}`), 0o600); err != nil { //nolint:forbidigo // in a folder that was made here
		return err
	}
	client := program{name: "npm", remedy: "install Node.js (https://nodejs.org), or install the plugin from a folder", env: npmOnlyEnv}
	args := slices.Concat(npmOnly, []string{"--json", "--workspaces=false", "--cache=" + filepath.Join(j.f.work, "cache"), "--logs-max=0", "--audit=false", "--fund=false", "--update-notifier=false", "--loglevel=error", "--fetch-retries=1", "--fetch-timeout=30000"})
	want := j.f.Source.Name + "@" + cmp.Or(j.f.Source.Version, "latest")
	out, err := j.output(ctx, client, slices.Concat([]string{"view", want, "name", "version", "dist"}, args)...)
	if err != nil {
		return err
	}
	version, err := npmVersion(out, j.f.Source.Name)
	if err != nil {
		return err
	}
	if j.f.Source, err = j.f.Source.At(version); err != nil {
		return err
	}
	out, err = j.output(ctx, client, slices.Concat([]string{"pack", j.f.Source.Name + "@" + version, "--pack-destination=" + j.got}, args)...)
	if err != nil {
		return err
	}
	var told []struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		Integrity string `json:"integrity"`
	}
	if err := json.Unmarshal(out, &told); err != nil || len(told) != 1 || told[0].Name != j.f.Source.Name || told[0].Version != version {
		return errors.Join(fmt.Errorf("npm answered in a way that yaya does not know: %.200q", out), err)
	}
	j.f.Resolved = told[0].Integrity
	if err := j.unpack(".tgz", func(to *os.Root, in *os.File, _ int64) error { return Untar(to, in) }); err != nil {
		return err
	}
	if err := j.unpacked(nil); err != nil {
		return err
	}
	return alone(j.f.Folder)
}

// npmVersion reads what npm view tells about one version, and returns that version. It refuses a
// package whose files are not downloaded by HTTP.
func npmVersion(out []byte, name string) (string, error) {
	var told struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Dist    struct {
			Tarball string `json:"tarball"`
		} `json:"dist"`
	}
	if err := json.Unmarshal(out, &told); err != nil || told.Name != name || told.Version == "" {
		return "", errors.Join(fmt.Errorf("npm answered in a way that yaya does not know: %.200q", out), err)
	}
	at, err := url.Parse(told.Dist.Tarball)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.User != nil || at.Fragment != "" {
		return "", fmt.Errorf("the registry serves no package %s %s: it names %.200q, which is not the address of a file (https://…)", name, told.Version, told.Dist.Tarball)
	}
	return told.Version, nil
}

// alone refuses a package of npm that does not bring what it depends on: yaya installs nothing
// beside the package.
func alone(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	raw, err := meta(root, "package.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var p struct {
		Dependencies map[string]any `json:"dependencies"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("package.json: %w", err)
	}
	var missing []string
	for name := range p.Dependencies {
		at := filepath.Join("node_modules", filepath.FromSlash(name))
		if !filepath.IsLocal(at) {
			missing = append(missing, name)
		} else if _, err := root.Lstat(at); err != nil {
			missing = append(missing, name)
		}
	}
	return needs(missing, "its author can put them into the package (bundleDependencies)")
}

func needs(missing []string, remedy string) error {
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("it needs %s that it does not bring (%.300s), and yaya installs none: %s", worded.Count(len(missing), "package", "packages"), strings.Join(missing, ", "), remedy)
}

func meta(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxMeta {
		return nil, fmt.Errorf("%s is not a file of at most %d MiB", name, maxMeta>>20)
	}
	return root.ReadFile(name)
}

// unpack unpacks the one file that was downloaded.
func (j *job) unpack(ext string, with func(to *os.Root, in *os.File, size int64) error) error {
	got, err := os.OpenRoot(j.got)
	if err != nil {
		return err
	}
	defer func() { _ = got.Close() }()
	name, err := j.only(ext)
	if err != nil {
		return err
	}
	in, err := got.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	to, err := os.OpenRoot(j.files)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	return with(to, in, info.Size())
}

// only returns the name of the one file that was downloaded.
func (j *job) only(ext string) (string, error) {
	entries, err := os.ReadDir(j.got)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 || !entries[0].Type().IsRegular() || !strings.HasSuffix(entries[0].Name(), ext) {
		return "", fmt.Errorf("not one file %s was downloaded", ext)
	}
	return entries[0].Name(), nil
}

// pypi has pip download a wheel. For a source distribution pip would run its setup.py or its build
// backend to learn its name, so there has to be a wheel.
func (j *job) pypi(ctx context.Context) error {
	client := program{name: "python3", remedy: "install Python with pip (https://pip.pypa.io), or install the plugin from a folder", env: []string{noGit}}
	want := j.f.Source.Name
	if j.f.Source.Version != "" {
		want += "==" + j.f.Source.Version
	}
	_, err := j.output(ctx, client, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--quiet", "--retries=1", "--timeout=30", "--dest="+j.got, "--", want)
	switch {
	case says(err, "No module named pip"):
		return fmt.Errorf("pip is missing: %s", client.remedy)
	case says(err, "No matching distribution"):
		return fmt.Errorf("%w (yaya takes wheels only: a source distribution would run code of the package to unpack it)", err)
	}
	if err != nil {
		return err
	}
	name, err := j.only(".whl")
	if err != nil {
		return err
	}
	part := strings.Split(name, "-") // name, version, [build,] python, abi, platform
	if len(part) < 5 {
		return fmt.Errorf("%.200q is not the name of a wheel", name)
	}
	if j.f.Source, err = j.f.Source.At(part[1]); err != nil {
		return err
	}
	sum := sha256.New()
	if err := j.unpack(".whl", func(to *os.Root, in *os.File, size int64) error {
		if _, err := io.Copy(sum, in); err != nil {
			return err
		}
		return Unzip(to, in, size)
	}); err != nil {
		return err
	}
	j.f.Resolved = "wheel sha256:" + hex.EncodeToString(sum.Sum(nil))
	if err := j.wheelAlone(); err != nil {
		return err
	}
	return j.unpacked(func(name string) bool { return strings.HasSuffix(name, ".dist-info") })
}

// wheelAlone refuses a wheel that depends on other packages.
func (j *job) wheelAlone() error {
	root, err := os.OpenRoot(j.files)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	infos, err := fs.Glob(root.FS(), "*.dist-info/METADATA")
	if err != nil || len(infos) != 1 {
		return errors.Join(errors.New("the wheel does not have one METADATA"), err)
	}
	raw, err := meta(root, infos[0])
	if err != nil {
		return err
	}
	var missing []string
	head, _, _ := bytes.Cut(raw, []byte("\n\n")) // what follows is the description
	for line := range strings.Lines(string(head)) {
		need, ok := strings.CutPrefix(strings.TrimSpace(line), "Requires-Dist:")
		if ok && !strings.Contains(need, "extra ==") && !strings.Contains(need, "extra==") {
			missing = append(missing, strings.TrimSpace(need))
		}
	}
	return needs(missing, "its author can put them into the folder of the plugin")
}

// module has the go command download a module, whose digest it checks with the checksum
// database. Its folder has a go.mod, so that the go command looks for none above.
func (j *job) module(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(j.dir, "go.mod"), []byte("module yaya\n"), 0o600); err != nil { //nolint:forbidigo // in a folder that was made here
		return err
	}
	out, err := j.output(ctx, goClient(j.f.work), "mod", "download", "-json", j.f.Source.Name+"@"+cmp.Or(j.f.Source.Version, "latest"))
	var told struct {
		Version string `json:"Version"`
		Dir     string `json:"Dir"`
		Sum     string `json:"Sum"`
		Error   string `json:"Error"`
	}
	if json.Unmarshal(out, &told) == nil && told.Error != "" {
		return errors.New(told.Error)
	}
	if err != nil {
		return err
	}
	if told.Dir == "" || told.Version == "" {
		return fmt.Errorf("go answered in a way that yaya does not know: %.200q", out)
	}
	if j.f.Source, err = j.f.Source.At(told.Version); err != nil {
		return err
	}
	j.f.Resolved, j.f.Folder = told.Sum, told.Dir
	return nil
}

// goClient keeps what it downloads in a folder of its own, and fetches no other toolchain.
func goClient(work string) program {
	return program{name: "go", remedy: "install Go (https://go.dev/dl), or install the plugin from a folder", env: []string{
		"GOFLAGS=-mod=mod -modcacherw", "GOMODCACHE=" + filepath.Join(work, "modules"), "GOPATH=" + filepath.Join(work, "gopath"), "GOCACHE=" + filepath.Join(work, "cache"),
		"GOWORK=off", "GOTOOLCHAIN=local", "GO111MODULE=on", "GIT_ALLOW_PROTOCOL=https:ssh", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true",
	}}
}

// Modules downloads what a module requires, as its go.sum says, into the folder modules below
// work. It reads the module's go.mod and go.sum, and does not change them.
func (c *Client) Modules(ctx context.Context, folder, work string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultTime, fmt.Errorf("it took more than %v", DefaultTime))
	defer cancel()
	from, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	if err := errors.Join(to.Mkdir("requires", 0o700), to.Mkdir("tmp", 0o700)); err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		raw, err := meta(from, name)
		if errors.Is(err, fs.ErrNotExist) && name == "go.sum" {
			continue
		}
		if err != nil {
			return err
		}
		if err := to.WriteFile(filepath.Join("requires", name), raw, 0o600); err != nil {
			return err
		}
	}
	err = c.run(ctx, goClient(work), []string{"mod", "download"}, filepath.Join(work, "requires"), work, func(in io.Reader) error {
		_, err := io.Copy(io.Discard, in)
		return closed(err)
	})
	if err != nil {
		return fmt.Errorf("download what %s requires: %w", folder, err)
	}
	return nil
}
