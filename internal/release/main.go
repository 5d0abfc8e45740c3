//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/yaya-ai/yaya/internal/echoserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	dist := flags.String("out", "bin/dist", "the `folder` of the release's files")
	nfpm := flags.String("nfpm", "nfpm", "the `program` that writes deb, rpm and apk")
	tags := flags.String("tags", "", "build `tags`")
	ldflags := flags.String("ldflags", "", "`flags` of the linker that do not depend on the commit")
	only := flags.String("only", "", "only these `targets`, such as linux/amd64,darwin/arm64")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.Arg(0) == "echo" { // the MCP server of the journey
		return echoserver.Serve(os.Stdin, os.Stdout)
	}
	if flags.NArg() != 1 || !slices.Contains([]string{"make", "check", "again", "journey"}, flags.Arg(0)) {
		return errors.New("usage: release [flags] make | check | again | journey")
	}
	out, err := filepath.Abs(*dist)
	if err != nil {
		return err
	}
	c, err := commitHere(ctx, ".")
	if err != nil {
		return err
	}
	b := builder{commit: c, source: ".", out: out, nfpm: *nfpm, tags: *tags, ldflags: *ldflags, targets: targets}
	if *only != "" {
		if b.targets, err = chosen(*only); err != nil {
			return err
		}
	}
	switch flags.Arg(0) {
	case "make":
		return b.make(ctx)
	case "again":
		return b.again(ctx)
	case "journey":
		return b.journey(ctx)
	default:
		return b.check(ctx)
	}
}

// target is a system that yaya is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// program is the name of the program's file.
func (t target) program() string {
	if t.os == "windows" {
		return "yaya.exe"
	}
	return "yaya"
}

// archive is the ending of the archive, which each system opens without a further program.
func (t target) archive() string {
	if t.os == "windows" {
		return "zip"
	}
	return "tar.gz"
}

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func chosen(list string) (out []target, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is not a target: %v", name, targets)
		}
		out = append(out, targets[i])
	}
	return out, nil
}
