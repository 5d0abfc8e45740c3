//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// again makes the files of its targets a second time, from a copy of the sources in another folder
// and with an empty cache of go, and compares the digests.
func (b *builder) again(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "yaya-again-")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil { //nolint:forbidigo // the folder made above
			err = e
		}
	}()
	second := *b
	second.source, second.out, second.cache = filepath.Join(dir, "another", "source"), filepath.Join(dir, "out"), filepath.Join(dir, "cache")
	if err := copySources(ctx, b.source, second.source); err != nil {
		return err
	}
	if err := second.make(ctx); err != nil {
		return err
	}
	same, err := compare(b.out, second.out)
	if err != nil {
		return err
	}
	fmt.Printf("Built twice, with the same bytes: %s\n", strings.Join(same, ", "))
	return nil
}

// compare returns the names of the files that the second folder lists with the digest that the
// first one lists. Others are an error.
func compare(first, second string) (same []string, err error) {
	want, err := readSums(first)
	if err != nil {
		return nil, err
	}
	got, err := readSums(second)
	if err != nil {
		return nil, err
	}
	for _, line := range got.order {
		if want.of[line] != got.of[line] {
			return nil, fmt.Errorf("%s was built twice: got the digests %q and %q, want the same", line, want.of[line], got.of[line])
		}
		same = append(same, line)
	}
	if len(same) == 0 {
		return nil, fmt.Errorf("%s lists no file", filepath.Join(second, sumsFile))
	}
	return same, nil
}

type sumList struct {
	order []string
	of    map[string]string
}

func readSums(dir string) (sumList, error) {
	s := sumList{of: map[string]string{}}
	data, err := os.ReadFile(filepath.Join(dir, sumsFile)) //nolint:forbidigo,gosec // made here
	if err != nil {
		return s, fmt.Errorf("%w (make release-snapshot writes it)", err)
	}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			return s, fmt.Errorf("%s: the line %q is not a digest and a name", filepath.Join(dir, sumsFile), line)
		}
		s.order = append(s.order, name)
		s.of[name] = sum
	}
	return s, nil
}

// copySources copies the files that Git knows, as they are.
func copySources(ctx context.Context, from, to string) error {
	list, err := output(ctx, from, "git", "ls-files", "-z")
	if err != nil {
		return err
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:forbidigo,gosec // a temporary folder
		return err
	}
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	for name := range strings.SplitSeq(strings.TrimRight(list, "\x00"), "\x00") {
		data, err := src.ReadFile(name)
		if err != nil {
			return err
		}
		if err := dst.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := dst.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
