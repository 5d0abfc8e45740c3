package masked

import (
	"path"
	"strings"
)

// argKind is the meaning of an argument for the next one.
type argKind byte

const (
	argPlain  argKind = iota
	argSecret         // --token
	argShort          // -p: a password, or a port, a package, a folder
	argUser           // -u: a name and a password
	argHeader         // Authorization, at the beginning of a pair
)

// kindOfArg returns the meaning of an argument for the next one.
func kindOfArg(arg string) argKind {
	if len(arg) < 2 || arg[0] != '-' || len(arg) > 128 {
		return argPlain
	}
	switch arg {
	case "-p":
		return argShort
	case "-u", "--user", "--userpwd":
		return argUser
	}
	name := strings.TrimLeft(arg, "-")
	for i := range len(name) {
		if !nameByte(name[i]) {
			return argPlain
		}
	}
	if SecretName(name) || name == "pass" || name == "pwd" {
		return argSecret
	}
	return argPlain
}

// follows reports whether arg is a secret after an argument of that kind.
func (k argKind) follows(arg string) bool {
	switch k {
	case argSecret:
		return !strings.HasPrefix(arg, "--") && (len(arg) != 2 || arg[0] != '-')
	case argShort:
		return !innocuous(arg)
	case argHeader:
		return !headerName(arg)
	case argPlain, argUser: // with a user and a password, one alone is not a secret
	}
	return false
}

// innocuous reports whether what follows a -p is a port, a path, a package or a sentence,
// and not a password.
func innocuous(arg string) bool {
	if arg == "" || strings.ContainsAny(arg[:1], "-/.~@$<[") || strings.ContainsAny(arg, " \n") || strings.Contains(arg, "://") {
		return true
	}
	digits := strings.TrimSuffix(strings.TrimSuffix(arg, "/tcp"), "/udp")
	return strings.Trim(digits, "0123456789.:,-") == ""
}

// bareCommands are those whose -p takes no password.
var bareCommands = map[string]bool{
	"npx": true, "npm": true, "pnpm": true, "yarn": true, "bunx": true, "bun": true, "node": true, "deno": true, "uvx": true, "uv": true, "pipx": true, "pip": true, "python": true, "python3": true, "pytest": true,
	"docker": true, "podman": true, "ssh": true, "mkdir": true, "cp": true, "git": true, "make": true, "cargo": true, "go": true, "tsc": true, "claude": true, "codex": true, "gemini": true, "qwen": true, "read": true,
	"ps": true, "lsof": true, "nc": true, "tar": true, "rsync": true, "patch": true, "perl": true, "psql": true, "pg_dump": true, "dotnet": true, "gradle": true, "terraform": true, "kubectl": true, "helm": true,
}

// shortCommands are those whose -p takes a password, and attached ones those that it
// may be attached to.
var (
	shortCommands    = map[string]bool{"sshpass": true, "mongo": true, "mongosh": true, "mongodump": true, "mongorestore": true, "redis-cli": true, "mosquitto_pub": true, "mosquitto_sub": true}
	attachedCommands = map[string]bool{"mysql": true, "mysqldump": true, "mysqladmin": true, "mariadb": true, "mariadb-dump": true, "sshpass": true, "7z": true, "7za": true}
	userCommands     = map[string]bool{"curl": true, "wget": true, "http": true, "https": true, "xh": true}
)

func bareShort(command string) bool {
	command, _, _ = strings.Cut(command, " ")
	return bareCommands[strings.TrimSuffix(path.Base(strings.ReplaceAll(command, `\`, "/")), ".exe")]
}

func headerName(s string) bool {
	for i := range len(s) {
		if !alphanumeric(s[i]) && s[i] != '-' || s[i] >= '0' && s[i] <= '9' {
			return false
		}
	}
	return s != "" && (strings.Contains(s, "-") || s[0] >= 'A' && s[0] <= 'Z')
}

// argument reports whether a string of an array is a secret by those before it.
func (f *frame) argument(text []byte) (secret bool) {
	if len(text) > 512 {
		secret = f.next == argSecret
		f.next = argPlain
		f.count++
		return secret
	}
	arg := string(text)
	secret = f.next.follows(arg) && (f.next != argShort || !f.bare)
	f.next = kindOfArg(arg)
	if f.count == 0 && SecretName(arg) && (strings.Contains(arg, "-") && arg[0] != '-' || strings.EqualFold(arg, "authorization") || strings.EqualFold(arg, "cookie")) {
		f.next = argHeader
	}
	f.count++
	return secret
}

// Args returns the arguments of a command with the secrets in them hidden: values of
// flags that are named like secrets, variables, headers and URLs with secrets, and
// tokens recognized by their form. The others stay unchanged, and the number of
// arguments stays the same. A person who has to approve the command can rely on the
// result: Args hides nothing that a shell would act on (see [Word]), and in code, which
// follows -c, -e or --eval, only tokens.
func Args(command string, args []string) []string { return shownArgs(command, args, true) }

// Word is [Text] for a word of a command line: it hides a value up to the first
// character that a shell acts on, and reads the rest separately.
func Word(s string) string {
	out := make([]byte, 0, len(s))
	for range maxWords {
		var next string
		out, next = appendWord(out, s)
		if next == "" {
			return string(out)
		}
		s = next
	}
	return string(append(out, s...))
}

// maxWords bounds how often a word is read again after a character that a shell
// acts on.
const maxWords = 32

// syntax are the characters that a shell acts on.
const syntax = "$();|&<>`\n\r"

// acted returns the first place where a shell acts on a value, -1 if there is none. A
// variable with a plain default is a plain value.
func acted(value string) int {
	if in, ok := strings.CutPrefix(value, "${"); ok {
		if in, ok = strings.CutSuffix(in, "}"); ok && !strings.ContainsAny(in, syntax) {
			return -1
		}
	}
	return strings.IndexAny(value, syntax)
}

// appendWord appends the displayed form of s, up to a character that would be hidden but
// that a shell acts on, and returns the rest.
func appendWord(dst []byte, s string) (out []byte, rest string) {
	spans := text.spans([]byte(s))
	last := 0
	for _, x := range spans {
		if x.from < last { // in the one before
			continue
		}
		dst = append(dst, s[last:x.from]...)
		if n := reference(s[x.from:]); n > 0 {
			dst, n = append(dst, s[x.from:x.from+n]...), x.from+n
			if x.to > n {
				dst, n = append(dst, Mask...), x.to
			}
			return dst, s[n:]
		}
		if n := acted(s[x.from:x.to]); n >= 0 {
			if n > 0 {
				dst = append(dst, Mask...)
			}
			return append(dst, s[x.from+n]), s[x.from+n+1:]
		}
		dst = append(dst, x.mask()...)
		last = x.to
	}
	return append(dst, s[last:]...), ""
}

// reference returns the length of the reference to a secret that s begins with, ${secret:NAME};
// 0 without one.
func reference(s string) int {
	const head = "${secret:"
	if end := strings.IndexByte(s, '}'); strings.HasPrefix(s, head) && end > len(head) && Reference(s[:end+1]) {
		return end + 1
	}
	return 0
}

// value hides a value that is a word, but nothing that a shell would act on.
func value(s string) string {
	n := acted(s)
	switch {
	case n < 0:
		return Mask
	case n == 0:
		return Word(s)
	}
	return Mask + s[n:n+1] + Word(s[n+1:])
}

// code hides only the tokens in code: any other value may be part of the program.
func code(s string) string {
	var out []byte
	last := 0
	for i := range len(s) {
		if kind := signs[s[i]]; i >= last && (kind == signDash || kind == signToken) {
			if from, to := token([]byte(s), i); to > i && from >= last {
				out = append(append(out, s[last:from]...), Mask...)
				last = to
			}
		}
	}
	return string(append(out, s[last:]...))
}

// isCode reports whether what follows a flag is code: that of a shell or an interpreter.
// A lone assignment does nothing as code, and is a variable for all that take those by
// -e, as docker does.
func isCode(flag, arg string) bool {
	switch {
	case flag == "--eval", flag == "--command", flag == "--print", flag == "-S", flag == "--split-string", strings.EqualFold(flag, "/c"), strings.EqualFold(flag, "-command"):
	case len(flag) < 2 || len(flag) > 6 || flag[0] != '-' || flag[1] == '-':
		return false
	case flag[len(flag)-1] != 'c' && flag[len(flag)-1] != 'e': // as in -lc
		return false
	}
	name, value, ok := strings.Cut(arg, "=")
	if !ok || name == "" || strings.ContainsAny(value, syntax+" \t\"'\\,{}[]") {
		return true
	}
	for i := range len(name) {
		if !alphanumeric(name[i]) && name[i] != '_' {
			return true
		}
	}
	return false
}

// attachedCode reports whether an argument is a flag and code, as --eval=code.
func attachedCode(arg string) bool {
	flag, value, ok := strings.Cut(arg, "=")
	return ok && strings.HasPrefix(flag, "--") && isCode(flag, value)
}

// shownArgs is [Args]; if nobody has to rely on the result, it hides a value
// whatever it contains.
func shownArgs(command string, args []string, truly bool) []string {
	if args == nil {
		return nil
	}
	word, whole := Text, func(string) string { return Mask }
	if truly {
		word, whole = Word, value
	}
	out := make([]string, len(args))
	next, bare := argPlain, bareShort(command)
	for i, a := range args {
		out[i] = word(a)
		switch {
		case shown([]byte(a)) || a == "":
			out[i] = a
		case truly && (i > 0 && isCode(args[i-1], a) || attachedCode(a)):
			out[i] = code(a)
		case next.follows(a) && (next != argShort || !bare):
			out[i] = whole(a)
		case next == argUser:
			if user, password, ok := strings.Cut(a, ":"); ok && userPassword(password) {
				out[i] = user + ":" + whole(password)
			}
		case strings.HasPrefix(a, "-p") && len(a) > 2 && attachedCommands[path.Base(command)]:
			out[i] = "-p" + whole(a[2:])
		}
		next = kindOfArg(a)
	}
	return out
}

// ArgSecrets returns the arguments that are secrets as a whole, or after a flag and an
// equals sign, with everything in them.
func ArgSecrets(command string, args []string) []string {
	var out []string
	for i, shown := range shownArgs(command, args, false) {
		if shown == args[i] {
			continue
		}
		before, after, _ := strings.Cut(shown, Mask)
		if strings.Contains(after, Mask) {
			continue // several in one
		}
		rest, ok1 := strings.CutPrefix(args[i], before)
		rest, ok2 := strings.CutSuffix(rest, after)
		if ok1 && ok2 {
			out = append(out, rest)
		}
	}
	return out
}

var text Secrets

// Text returns text with every value hidden that is named or formed like a secret.
func Text(s string) string { return text.String(s) }

func userPassword(s string) bool {
	return s != "" && !shown([]byte(s)) && !strings.HasPrefix(s, "//") && strings.Trim(s, "0123456789") != ""
}

// flag finds the value after the flag that begins at text[i].
func flag(text []byte, i int) (from, to int) {
	if i > 0 && strings.IndexByte(" \t\n\"'`(", text[i-1]) < 0 {
		return 0, 0
	}
	end := i
	for end < len(text) && text[end] == '-' && end-i < 2 {
		end++
	}
	for end < len(text) && end-i < 128 && nameByte(text[end]) {
		end++
	}
	if end == i+1 {
		return 0, 0
	}
	name := string(text[i:end])
	if strings.HasPrefix(name, "-p") && len(name) > 2 && attachedCommands[commandOf(text, i)] {
		if to = word(text, i, false); !shown(text[i+2 : to]) {
			return i + 2, to
		}
		return 0, 0
	}
	if end == len(text) || text[end] != ' ' && text[end] != '\t' {
		return 0, 0
	}
	kind := kindOfArg(name)
	if kind == argPlain {
		return 0, 0
	}
	for from = end; from < len(text) && (text[from] == ' ' || text[from] == '\t') && from-end < 8; from++ {
	}
	if from == len(text) {
		return 0, 0
	}
	open := from
	for open < len(text) && text[open] == '\\' {
		open++
	}
	quoted := false
	if open < len(text) && (text[open] == '"' || text[open] == '\'') {
		quoted = true
		from, to = open+1, closing(text, open, open-from)
	} else {
		to = word(text, from, false)
	}
	if to <= from || shown(text[from:to]) {
		return 0, 0
	}
	value := string(text[from:to])
	switch kind {
	case argShort:
		c := commandOf(text, i)
		if takes := shortCommands[c] || bareCommands[c] && loginOf(text[:i]); !takes || innocuous(value) {
			return 0, 0
		}
	case argUser:
		user, password, ok := strings.Cut(value, ":")
		if !ok || !userPassword(password) || !userCommands[commandOf(text, i)] {
			return 0, 0
		}
		from += len(user) + 1
	case argPlain, argSecret, argHeader:
		if !quoted && (placeholder(value) || !kind.follows(value)) {
			return 0, 0
		}
	}
	return from, to
}

// placeholder reports whether a word is one of a help text or a sentence.
func placeholder(s string) bool {
	if strings.ContainsAny(s[:1], "<[{(|-") || plain[strings.ToLower(strings.TrimRight(s, ".,;:"))] {
		return true
	}
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && c != '_' {
			return false
		}
	}
	return true
}

// commandOf returns the name of the command that text[i] is an argument of.
func commandOf(text []byte, i int) string {
	head := string(text[i-min(i, 512) : i])
	if n := strings.LastIndexAny(head, "\n;|&(`"); n >= 0 {
		head = head[n+1:]
	}
	for _, w := range strings.Fields(head) {
		w = strings.TrimLeft(w, `"'$`)
		if w == "sudo" || w == "env" || w == "exec" || strings.Contains(w, "=") {
			continue
		}
		return path.Base(w)
	}
	return ""
}

// loginOf reports whether a command line is that of a login, as docker login.
func loginOf(head []byte) bool {
	return strings.Contains(string(head[len(head)-min(len(head), 256):]), " login ")
}
