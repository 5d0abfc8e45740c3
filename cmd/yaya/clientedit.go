package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/mcpbridge/clients"
)

// changeClients shows the changes that edit would make in the files, asks, and makes them.
func changeClients(c *cobra.Command, files []clients.File, yes bool, done string, edit func(clients.File) (clients.Edit, error)) error {
	w := c.OutOrStdout()
	var failed []error
	var changes []clients.Edit
	var todo []clients.File
	for _, f := range files {
		e, err := edit(f)
		switch {
		case err != nil:
			failed = append(failed, err)
		case e.Was == e.Now:
			state := "yaya is configured already"
			if e.Now == "" {
				state = "yaya is not configured"
			}
			fmt.Fprintf(w, "%s: %s (%s)\n", f.Name, state, f.Path)
		default:
			showEdit(w, f, e)
			todo, changes = append(todo, f), append(changes, e)
		}
	}
	if len(todo) == 0 {
		return errors.Join(failed...)
	}
	if !yes && !confirm(c.Context(), c.InOrStdin(), w, "Change "+worded.Count(len(todo), "file", "files")+"?") {
		return errors.Join(append(failed, notDone(c.Context(), c.InOrStdin(), "changed", "give --yes to change files without a question"))...)
	}
	for i, f := range todo {
		backup, err := f.Change(c.Context(), changes[i])
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		if changes[i].Gone {
			fmt.Fprintf(w, "removed %s, which yaya had created", f.Path)
		} else {
			fmt.Fprintf(w, "%s %s", done, f.Path)
		}
		if backup != "" {
			fmt.Fprintf(w, " (backup: %s)", filepath.Base(backup))
		}
		fmt.Fprintf(w, "; restart %s to apply it\n", f.Name)
	}
	return errors.Join(failed...)
}

// showEdit shows a change of yaya's entry, and no other part of the file.
func showEdit(w io.Writer, f clients.File, e clients.Edit) {
	which := f.Path
	if !f.Found {
		which += ", a new file"
	}
	if e.Gone {
		which += ", which contains nothing else and is removed"
	}
	fmt.Fprintf(w, "%s (%s)\n", f.Name, which)
	for _, side := range []struct{ sign, text string }{{"-", e.Was}, {"+", e.Now}} {
		if side.text == "" {
			continue
		}
		for _, line := range outdented(daemon.HideCredentials(side.text)) {
			fmt.Fprintf(w, "  %s %s\n", side.sign, daemon.Printable(line, 300))
		}
	}
}

// outdented returns the lines of a text from a file without their indentation. In JSON, the
// text begins in the middle of a line, and the brace at its end shows the indentation.
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
