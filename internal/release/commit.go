//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// commit identifies the sources of a release.
type commit struct {
	described string // by git describe
	digest    string
	at        time.Time // of the commit, in UTC: of all files, too
	version   string    // as yaya version prints it
}

// output runs a program and returns what it printed.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // tools of a release, by names in this program
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

func commitHere(ctx context.Context, dir string) (c commit, err error) {
	if c.described, err = output(ctx, dir, "git", "describe", "--tags", "--always", "--dirty"); err != nil {
		return c, err
	}
	head, err := output(ctx, dir, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return c, err
	}
	digest, at, _ := strings.Cut(head, " ")
	c.digest = digest
	c.at, err = time.Parse(time.RFC3339, at)
	c.at = c.at.UTC()
	return c, err
}

// packageVersion is a version as dpkg, rpm and apk order it: one before a release is older than the
// release. A snapshot sorts by the time of its commit.
func packageVersion(version string, at time.Time) (release, pre string) {
	release, pre, _ = strings.Cut(version, "-")
	if pre == "dev" || strings.HasPrefix(pre, "dev-") {
		pre = "pre" + at.Format("20060102150405")
	}
	return release, strings.ReplaceAll(pre, ".", "")
}
