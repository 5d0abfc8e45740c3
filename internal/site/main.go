// Command site makes the documentation site: a folder of HTML files from the Markdown of docs
// and of the root. The site needs no server, no network and no script; with a script it can be
// searched. It is not made if a link inside the repository leads nowhere.
//
//	go run ./internal/site -out .cache/site
//
// The parser of Markdown is goldmark, which follows CommonMark and GitHub's tables as the
// readers of the repository see them. No package of yaya imports it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
)

func main() {
	root := flag.String("root", ".", "the repository")
	out := flag.String("out", ".cache/site", "the `folder` of the site")
	outside := flag.Bool("outside", false, "print the links that lead out of the repository, and make nothing")
	flag.Parse()
	if err := run(*root, *out, *outside); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out string, outside bool) error {
	repo := os.DirFS(root)
	docs, err := load(repo)
	if err != nil {
		return err
	}
	if outside {
		for _, l := range leaving(docs) {
			fmt.Println(l)
		}
		return nil
	}
	problems := broken(repo, docs)
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d links lead nowhere: correct them, and run make site again", len(problems))
	}
	files, err := render(repo, docs)
	if err != nil {
		return err
	}
	if err := write(out, files); err != nil {
		return err
	}
	pages := 0
	for _, d := range docs {
		if d.section != "" { // others are only checked
			pages++
		}
	}
	fmt.Printf("%d pages in %s: open %s\n", pages, out, path.Join(out, "index.html"))
	return nil
}

// write replaces the files of a site. Files that a former site had and this one has not are
// removed, so that no search engine or reader finds them.
func write(out string, files map[string][]byte) error {
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:forbidigo,gosec // the folder that the caller names, for anybody to read
		return err
	}
	dir, err := os.OpenRoot(out)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := tidy(dir, files); err != nil {
		return err
	}
	for _, name := range sortedKeys(files) {
		if folder := path.Dir(name); folder != "." {
			if err := dir.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := dir.WriteFile(name, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// listing is the file that names the files of a site, so that the next one removes no others.
const listing = "files.txt"

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
