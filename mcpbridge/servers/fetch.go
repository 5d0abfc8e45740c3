package servers

import (
	"path"
	"slices"
	"strings"
)

// fetchers are the commands that may download a program before they run it, with the
// subcommands that do so. A command without listed subcommands always may.
var fetchers = map[string][]string{
	"npx": nil, "npm": {"exec", "x"}, "pnpm": {"dlx"}, "pnpx": nil, "yarn": {"dlx"}, "bunx": nil, "bun": {"x"},
	"uvx": nil, "uv": {"run", "tool"}, "pipx": {"run"},
	"docker": {"run"}, "podman": {"run"}, "nerdctl": {"run"},
	"deno": nil, "dotnet": nil, "dnx": nil, "go": {"run"}, "cargo": {"run"},
}

// shells are the commands that run the command line given with one of their flags.
var shells = map[string][]string{
	"sh": {"-c"}, "bash": {"-c"}, "dash": {"-c"}, "zsh": {"-c"}, "ash": {"-c"}, "ksh": {"-c"}, "fish": {"-c"},
	"cmd": {"/c", "/k"}, "powershell": {"-c", "-command"}, "pwsh": {"-c", "-command"},
}

// wrappers are the words that run the command that follows them, and their flags
// that take a value.
var wrappers = map[string][]string{
	"env": {"-u", "--unset", "-C", "--chdir"}, "exec": {"-a"}, "command": nil, "nohup": nil, "time": nil, "nice": {"-n"}, "corepack": nil,
}

// maxNested bounds how many nested shells and wrappers are unwrapped.
const maxNested = 8

// Fetches reports whether the server's command may first download its program, as npx, uvx and
// docker run do: then its first answer can take minutes.
func (s Server) Fetches() bool {
	return s.Transport == Stdio && fetches(append([]string{s.Command}, s.Args...), maxNested)
}

func fetches(argv []string, depth int) bool {
	if depth == 0 || len(argv) == 0 {
		return false
	}
	name, args := commandName(argv[0]), argv[1:]
	if flags, ok := wrappers[name]; ok {
		return fetches(wrapped(args, flags), depth-1)
	}
	if flags, ok := shells[name]; ok {
		return slices.ContainsFunc(scripts(args, flags), func(words []string) bool { return fetches(words, depth-1) })
	}
	subs, ok := fetchers[name]
	switch {
	case !ok:
		return false
	case name == "dotnet":
		return len(args) > 0 && !strings.HasSuffix(strings.ToLower(args[0]), ".dll") // it exists already
	case subs == nil:
		return true
	}
	return subcommand(args, subs)
}

// commandName returns a command without its folder and its Windows extension.
func commandName(command string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// subcommand reports whether the first word that is neither a flag nor can be the
// value of one is among subs: uv --directory DIR run.
func subcommand(args, subs []string) bool {
	for i, a := range args {
		if slices.Contains(subs, a) {
			return true
		}
		afterFlag := i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=")
		if !strings.HasPrefix(a, "-") && !afterFlag {
			return false
		}
	}
	return false
}

// wrapped returns the command after the flags and variables of a wrapper.
func wrapped(args, withValue []string) []string {
	for len(args) > 0 {
		switch a := args[0]; {
		case a == "--":
			return args[1:]
		case a == "-S" || a == "--split-string": // variables of env
			return strings.Fields(strings.Join(args[1:], " "))
		case slices.Contains(withValue, a):
			args = args[min(2, len(args)):]
		case strings.HasPrefix(a, "-") || assigns(a):
			args = args[1:]
		default:
			return args
		}
	}
	return nil
}

// assigns reports whether a word of a command line sets a variable.
func assigns(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && name != "" && !strings.ContainsAny(name, `/\ `)
}

// scripts returns the commands in a shell's command line, each as a list of words. It
// understands just enough quoting to find the first word of a command.
func scripts(args, flags []string) [][]string {
	for i, a := range args {
		a = strings.ToLower(a)
		short := len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "c") && slices.Contains(flags, "-c") // -lc
		if !short && !slices.Contains(flags, a) {
			continue
		}
		line := strings.Join(args[i+1:], " ")
		if strings.HasPrefix(flags[0], "-c") && len(args) > i+1 {
			line = args[i+1] // the following words are its $0, $1 …
		}
		var out [][]string
		for _, one := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";&|\n(){}", r) }) {
			words := strings.Fields(one)
			for j := range words {
				words[j] = strings.Trim(words[j], `"'`)
			}
			for len(words) > 0 && assigns(words[0]) {
				words = words[1:]
			}
			out = append(out, words)
		}
		return out
	}
	return nil
}
