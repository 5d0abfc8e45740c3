package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
)

// Program is the absolute path of this binary, by which clients start it without the
// user's PATH.
func Program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the path of yaya: %w", err)
	}
	// The name on PATH lasts when what it points to is replaced by an update.
	if onPath, err := exec.LookPath("yaya"); err == nil && filepath.IsAbs(onPath) && sameFile(onPath, self) {
		self = onPath
	}
	return self, nil
}

// Typed is the name by which a person's shell finds this binary: yaya if that is on PATH, otherwise
// its path.
func Typed() string {
	self, err := Program()
	if err != nil {
		return "yaya"
	}
	if onPath, err := exec.LookPath("yaya"); err == nil && sameFile(onPath, self) {
		return "yaya"
	}
	return shellLine(self, nil)
}

// StdioCommand is the command line by which a client runs "yaya mcp serve" for this yaya.
// It names the folders unless they are the usual ones: the client has neither the flags of
// this process nor its variables, and would start another yaya.
func (g *Flags) StdioCommand() (command string, args []string, err error) {
	if command, err = Program(); err != nil {
		return "", nil, err
	}
	p, err := g.Paths()
	if err != nil {
		return "", nil, err
	}
	args = []string{"mcp", "serve"}
	if g.DataDir != "" || p.Data != filepath.Join(p.Home, usualState, "yaya") {
		args = append(args, "--data-dir", p.Data)
	}
	if g.ConfigDir != "" || p.Config != filepath.Join(p.Home, usualConfig, "yaya") {
		args = append(args, "--config-dir", p.Config)
	}
	if g.ConfigFile != "" {
		file, err := filepath.Abs(g.ConfigFile)
		if err != nil {
			return "", nil, err
		}
		args = append(args, "--config", file)
	}
	return command, args, nil
}

// ShownStdio is [Flags.StdioCommand] for snippets, which people read.
func (g *Flags) ShownStdio() (command string, args []string) {
	command, args, err := g.StdioCommand()
	if err != nil {
		return "yaya", []string{"mcp", "serve"}
	}
	return command, args
}

// shellLine is a command line as people paste it into a shell.
func shellLine(command string, args []string) string {
	words := append([]string{command}, args...)
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, func(c rune) bool {
			return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("-_./:@%+,=", c)
		}) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a) //nolint:gosec // it is only compared
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
