package catalog

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// Runner starts packages of one kind. Which program that is stands here, and not in an entry: its
// runtimeHint is only compared.
type Runner struct {
	Command string
	// Needs names the program that brings the command, and install has the line that installs
	// it, by the package manager of the machine; "" is for a machine without one of them.
	Needs   string
	install map[string]string
	base    []string // registryBaseUrl that it fetches from, without a scheme
	harmless
}

// harmless are flags of a runner that an entry may set: with the check of their value, nil for
// one that has none.
type harmless map[string]func(f *form, v string) error

func anything(*form, string) error { return nil }

// runners by registryType.
var runners = map[string]Runner{
	kindNPM: {
		Command: "npx", Needs: "Node.js", base: sandbox.RegistryOf("npx"),
		install:  map[string]string{"brew": "brew install node", "apt-get": "sudo apt-get install nodejs npm", "dnf": "sudo dnf install nodejs npm", "pacman": "sudo pacman -S nodejs npm", "apk": "sudo apk add nodejs npm", "": "install it from https://nodejs.org"},
		harmless: harmless{"-y": nil, "--yes": nil, "-q": nil, "--quiet": nil},
	},
	kindPyPI: {
		Command: "uvx", Needs: "uv", base: []string{"pypi.org", "pypi.org/simple"},
		install:  map[string]string{"brew": "brew install uv", "pipx": "pipx install uv", "pacman": "sudo pacman -S uv", "apk": "sudo apk add uv", "": "install it as https://docs.astral.sh/uv says"},
		harmless: harmless{"--python": pythonVersion, "-p": pythonVersion, "-q": nil, "--quiet": nil},
	},
	kindOCI: {
		Command: "docker", Needs: "Docker", base: imageHosts,
		install: map[string]string{"brew": "brew install --cask docker", "apt-get": "sudo apt-get install docker.io", "dnf": "sudo dnf install moby-engine", "pacman": "sudo pacman -S docker", "apk": "sudo apk add docker", "": "install it as https://docs.docker.com/engine/install says"},
		harmless: harmless{
			"-i": nil, "--interactive": nil, "--rm": nil, "--init": nil, "--read-only": nil,
			"-e": containerEnv, "--env": containerEnv, "-v": volume, "--volume": volume, "--mount": mount,
			"--network": oneOf("none", "bridge"), "--net": oneOf("none", "bridge"), "--pull": oneOf("always", "missing", "never"), "--cap-drop": anything, "--platform": anything,
		},
	},
	kindNuGet: {
		Command: "dnx", Needs: "the .NET 10 SDK", base: []string{"api.nuget.org", "api.nuget.org/v3/index.json"},
		install:  map[string]string{"brew": "brew install dotnet", "apt-get": "sudo apt-get install dotnet-sdk-10.0", "dnf": "sudo dnf install dotnet-sdk-10.0", "": "install it from https://dotnet.microsoft.com"},
		harmless: harmless{"--yes": nil, "-y": nil},
	},
}

// Found reports whether the command is on yaya's PATH, and Install is how to install it on this
// machine otherwise.
func (r *Runner) Found() bool {
	_, err := exec.LookPath(r.Command)
	return err == nil
}

// Install returns the command that installs what the runner needs on this machine, or where to
// get it.
func (r *Runner) Install() string {
	for _, manager := range []string{"brew", "apt-get", "dnf", "pacman", "apk", "pipx"} {
		line, ok := r.install[manager]
		if _, err := exec.LookPath(manager); ok && err == nil {
			return line
		}
	}
	return r.install[""]
}

// spec returns the word that names a package with its exact version.
func (r *Runner) spec(p *Package) (string, error) {
	id := p.Identifier
	bad := func() error { return fmt.Errorf("%q is not a package of %s", cut.Text(id, 80), p.RegistryType) }
	if len(id) > 300 {
		return "", bad()
	}
	base := strings.TrimSuffix(strings.TrimPrefix(p.RegistryBaseURL, "https://"), "/")
	if p.RegistryType == kindOCI && base != "" {
		if err := checkImageHost(base); err != nil {
			return "", err
		}
	} else if base != "" && !slices.Contains(r.base, base) {
		return "", fmt.Errorf("its package is of another registry, %q: yaya starts those of %s", cut.Text(p.RegistryBaseURL, 80), r.base[0])
	}
	if p.RegistryType == kindOCI {
		return imageOf(id, base, p.Version)
	}
	err := checkVersion(p.Version)
	if err == nil && p.RegistryType != kindPyPI && !threeNumbers().MatchString(p.Version) { // x, next and 1.x stand for others
		err = fmt.Errorf("%q is not like 1.2.3", p.Version)
	}
	if err != nil {
		return "", fmt.Errorf("its package %s has no exact version: %w", cut.Text(id, 80), err)
	}
	switch {
	case p.RegistryType == kindNPM && npmName().MatchString(id), p.RegistryType == kindNuGet && nugetName().MatchString(id):
		return id + "@" + p.Version, nil
	case p.RegistryType == kindPyPI && pypiName().MatchString(id):
		return id + "==" + p.Version, nil
	}
	return "", bad()
}

// customerHost is a host of one of [imageDomains].
var customerHost = lazyregexp.New(`^([a-z0-9][a-z0-9-]*\.)+(pkg\.dev|azurecr\.io)$`)

// imageHosts are the registries of images that yaya uses. The official registry accepts images
// of docker.io, ghcr.io, mcr.microsoft.com and [imageDomains].
var imageHosts = []string{"docker.io", "ghcr.io", "quay.io", "mcr.microsoft.com", "gcr.io", "public.ecr.aws", "registry.gitlab.com"}

// imageDomains have a registry for each customer, of Google and of Azure.
const imageDomains = "*.pkg.dev and *.azurecr.io"

// imageHost returns the host that an image is fetched from. As docker has it, the first part of a
// name is one if it has a dot or a port, or is localhost.
func imageHost(id string) string {
	first, _, more := strings.Cut(id, "/")
	if !more || !strings.ContainsAny(first, ".:") && first != "localhost" {
		return "docker.io"
	}
	return strings.TrimSuffix(first, ":443")
}

// checkImageHost refuses images of other registries than the usual ones.
func checkImageHost(host string) error {
	if slices.Contains(imageHosts, host) || customerHost().MatchString(host) {
		return nil
	}
	return fmt.Errorf("its image is of another registry, %q: yaya starts those of %s, %s; if you trust it, add the command yourself with yaya mcp add", cut.Text(host, 80), strings.Join(imageHosts, ", "), imageDomains)
}

// imageOf returns the name of an image with its tag or digest.
func imageOf(id, base, version string) (string, error) {
	if !image().MatchString(id) {
		return "", fmt.Errorf("%q is not the name of an image", cut.Text(id, 80))
	}
	if base != "" && base != "docker.io" && !strings.HasPrefix(id, base+"/") {
		id = base + "/" + id
	}
	if err := checkImageHost(imageHost(id)); err != nil {
		return "", err
	}
	if strings.Contains(id, "@") {
		return id, nil
	}
	last := id[strings.LastIndexByte(id, '/')+1:]
	_, tag, tagged := strings.Cut(last, ":")
	if !tagged {
		id, tag = id+":"+version, version
	}
	if err := checkVersion(tag); err != nil {
		return "", fmt.Errorf("its image %s has no exact version: %w", id, err)
	}
	return id, nil
}

// argv puts a command line together. names are the variables that a container gets from the
// command's environment, so that their values are not in the command line.
func (r *Runner) argv(flags []string, spec string, args, names []string) []string {
	out := []string{r.Command}
	switch r.Command {
	case "docker":
		out = append(out, "run", "-i", "--rm")
		for _, n := range names {
			out = append(out, "-e", n)
		}
		return append(append(append(out, flags...), spec), args...)
	case "dnx":
		out = append(out, spec, "--yes")
		if len(args) > 0 {
			out = append(append(out, "--"), args...)
		}
		return out
	case "npx":
		out = append(out, "-y")
	}
	return append(append(append(out, flags...), spec), args...)
}

// implied are flags that a command line has anyway.
var implied = []string{"-y", "--yes", "-i", "--interactive", "--rm"}

// flags fills in the arguments of the runner itself. It refuses those that are not known to be
// harmless: they decide what is downloaded, and what a container may do.
func (r *Runner) flags(f *form, m *made, list []Argument) (out []string, err error) {
	for _, a := range list {
		if a.Type == "positional" && (a.Value == "run" && r.Command == "docker" || slices.Contains(implied, a.Value)) {
			continue
		}
		if a.Type == "positional" && strings.HasPrefix(a.Value, "-") {
			name, v, has := strings.Cut(a.Value, "=")
			a.Type, a.Name, a.Value = "named", name, ""
			if has {
				a.Value = v
			}
		}
		if a.Type != "named" {
			return nil, fmt.Errorf("it gives %s the argument %q, and yaya passes on only flags that it knows: if you trust it, add the command yourself with yaya mcp add", r.Command, cut.Text(cmpText(a.Value, a.ValueHint), 80))
		}
		check, known := r.harmless[a.Name]
		if !known {
			return nil, fmt.Errorf("it gives %s the flag %q, which yaya does not pass on for an entry of a catalogue: if you trust it, add the command yourself with yaya mcp add", r.Command, cut.Text(a.Name, 80))
		}
		if check == nil {
			if !slices.Contains(implied, a.Name) {
				out = append(out, a.Name)
			}
			continue
		}
		values, err := f.argument(a)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if !f.fill {
				continue
			}
			if err := check(f, v.text); err != nil {
				return nil, fmt.Errorf("it gives %s the flag %s %s: %w", r.Command, a.Name, cut.Text(v.text, 100), err)
			}
			if a.Name == "-e" || a.Name == "--env" { // the value is not for the command line
				name, text, _ := strings.Cut(v.text, "=")
				if err := checkVariable(name); err != nil {
					return nil, err
				}
				m.env[name] = text
				_, v.shown, _ = strings.Cut(v.shown, "=")
				m.sets(name, v)
				continue
			}
			out = append(out, a.Name, v.text)
		}
	}
	return out, nil
}

var (
	python     = lazyregexp.New(`^[0-9]+(\.[0-9]+){0,2}$`)
	volumeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
)

func pythonVersion(_ *form, v string) error {
	if !python().MatchString(v) {
		return errors.New("a version of Python is like 3.12")
	}
	return nil
}

func oneOf(words ...string) func(*form, string) error {
	return func(_ *form, v string) error {
		if !slices.Contains(words, v) {
			return fmt.Errorf("yaya passes on only %s", strings.Join(words, ", "))
		}
		return nil
	}
}

// containerEnv refuses to hand a container variables that were not asked for: docker takes the
// value of a bare name from its own environment.
func containerEnv(_ *form, v string) error {
	name, _, has := strings.Cut(v, "=")
	if !has || !envName().MatchString(name) {
		return errors.New("a variable of a container has a name and a value")
	}
	return nil
}

// volume and mount let a container have a folder of this machine only if the user named it.
func volume(f *form, v string) error {
	source, target, ok := strings.Cut(v, ":")
	if !ok || !strings.HasPrefix(target, "/") {
		return errors.New("a volume is SOURCE:/TARGET")
	}
	return f.mountable(source)
}

func mount(f *form, v string) error {
	source := ""
	for part := range strings.SplitSeq(v, ",") {
		key, val, _ := strings.Cut(part, "=")
		switch key {
		case "src", "source":
			source = val
		case "dst", "destination", "target", "readonly", "ro":
		case "type":
			if val != "bind" && val != "volume" {
				return errors.New("the type of a mount is bind or volume")
			}
		default:
			return fmt.Errorf("the option %q of a mount is not known", cut.Text(key, 40))
		}
	}
	return f.mountable(source)
}

// mountable allows volumes of docker's own, and paths that the user has given.
func (f *form) mountable(source string) error {
	if volumeName().MatchString(source) {
		return nil
	}
	for _, values := range f.given {
		if slices.Contains(values, source) {
			return nil
		}
	}
	return errors.New("it would give the container a folder of this machine that its publisher chose")
}
