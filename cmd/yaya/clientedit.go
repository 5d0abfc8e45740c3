package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/mcpbridge/clients"
)

// changeClients shows what edit would change in the files, asks, and does it.
func changeClients(c *cobra.Command, files []clientFile, yes bool, done string, edit func(clientFile) (clients.Edit, error)) error {
	w := c.OutOrStdout()
	var failed []error
	var changes []clients.Edit
	var todo []clientFile
	for _, f := range files {
		e, err := edit(f)
		switch {
		case err != nil:
			failed = append(failed, err)
		case e.Was == e.Now:
			state := "yaya is in already"
			if e.Now == "" {
				state = "yaya is not in"
			}
			fmt.Fprintf(w, "%s: %s (%s)\n", f.Name, state, f.path)
		default:
			showEdit(w, f, e)
			todo, changes = append(todo, f), append(changes, e)
		}
	}
	if len(todo) == 0 {
		return errors.Join(failed...)
	}
	if !yes && !confirm(c.Context(), c.InOrStdin(), w, "Change "+count(len(todo), "file")+"?") {
		fmt.Fprintln(w, "Nothing was changed; --yes changes it.")
		return errors.Join(failed...)
	}
	for i, f := range todo {
		backup, err := changeFile(c.Context(), f, changes[i])
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		if changes[i].Gone {
			fmt.Fprintf(w, "removed %s, which yaya had made", f.path)
		} else {
			fmt.Fprintf(w, "%s %s", done, f.path)
		}
		if backup != "" {
			fmt.Fprintf(w, " (as it was: %s)", filepath.Base(backup))
		}
		fmt.Fprintf(w, "; restart %s, which reads it at its start\n", f.Name)
	}
	return errors.Join(failed...)
}

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// credential is what a header brings that nobody else may read.
var credential = regexp.MustCompile(`(?i)(Bearer )[^"'\s]+`)

// showEdit shows a change of yaya's entry, and nothing of what is beside it.
func showEdit(w io.Writer, f clientFile, e clients.Edit) {
	which := f.path
	if !f.found {
		which += ", a new file"
	}
	if e.Gone {
		which += ", which has nothing else in it and is removed"
	}
	fmt.Fprintf(w, "%s (%s)\n", f.Name, which)
	for _, side := range []struct{ sign, text string }{{"-", e.Was}, {"+", e.Now}} {
		if side.text == "" {
			continue
		}
		for _, line := range outdented(credential.ReplaceAllString(side.text, "${1}****")) {
			fmt.Fprintf(w, "  %s %s\n", side.sign, printable(line, 300))
		}
	}
}

// outdented are the lines of a text that was cut out of a file, without the indentation
// that it had there. In JSON it begins in the middle of a line, and the brace at its end
// tells how deep that was.
func outdented(text string) []string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	depth := func(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
	least, from := depth(lines[0]), 0
	if last := lines[len(lines)-1]; least == 0 && strings.HasPrefix(strings.TrimSpace(last), "}") {
		least, from = depth(last), 1
	}
	for i := from; i < len(lines); i++ {
		lines[i] = lines[i][min(least, depth(lines[i])):]
	}
	return lines
}

// changeFile backs a client's file up and replaces it, unless it has been changed since
// it was read. A file that has nothing but yaya in it is removed.
func changeFile(ctx context.Context, f clientFile, e clients.Edit) (backup string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	now, found, err := readFile(f.path)
	switch {
	case err != nil:
		return "", err
	case found != f.found || string(now) != string(f.data):
		return "", fmt.Errorf("%s was changed meanwhile; try again", f.path)
	case !found:
		return "", atomicfile.Replace(f.path, e.Data)
	case e.Gone:
		return "", atomicfile.Remove(f.path)
	}
	if backup, err = backUp(f.path, now); err != nil {
		return "", fmt.Errorf("a backup of %s: %w", f.path, err)
	}
	return backup, atomicfile.Replace(f.path, e.Data)
}

// original is the file of a client as it was before yaya was in it, as far as a backup
// tells; nil if none does.
func original(f clientFile) ([]byte, error) {
	all, err := backups(f.path)
	for _, path := range slices.Backward(all) {
		data, _, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if _, in, err := f.Entry(data); err == nil && !in {
			return data, nil
		}
	}
	return nil, err
}
