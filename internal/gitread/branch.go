package gitread

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// commit has the needed fields of a commit.
type commit struct {
	tree    id
	parents []id
	date    int64
}

func (r *Repo) commit(ctx context.Context, i id) (commit, error) {
	data, err := r.store.get(ctx, i, kindCommit)
	if err != nil {
		return commit{}, err
	}
	var c commit
	known := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			break
		}
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.tree, known = parseID(value)
		case "parent":
			if p, ok := parseID(value); ok && len(c.parents) < 100 {
				c.parents = append(c.parents, p)
			}
		case "committer":
			if words := strings.Fields(value); len(words) > 1 {
				c.date, _ = strconv.ParseInt(words[len(words)-2], 10, 64) // 0 sorts it last
			}
		}
	}
	if !known {
		return commit{}, damaged("the commit %s", i)
	}
	return c, nil
}

// branchLine returns the first line of git status --branch.
func (r *Repo) branchLine(ctx context.Context, h head) (string, error) {
	name, isBranch := strings.CutPrefix(h.ref, "refs/heads/")
	switch {
	case h.ref == "":
		return "HEAD (no branch)", nil
	case !isBranch:
		name = h.ref
	}
	line := name
	if !h.born {
		line = "No commits yet on " + name
	}
	up := r.upstream(name)
	if up == "" {
		return line, nil
	}
	line += "..." + strings.TrimPrefix(strings.TrimPrefix(up, "refs/remotes/"), "refs/heads/")
	theirs, there, err := r.resolve(up)
	if err != nil {
		return "", err
	}
	if !there {
		return line + " [gone]", nil
	}
	if !h.born || theirs == h.commit {
		return line, nil
	}
	ahead, behind, known, err := r.distance(ctx, h.commit, theirs)
	switch {
	case err != nil:
		return "", err
	case !known:
		return line + " [different]", nil
	case ahead > 0 && behind > 0:
		return fmt.Sprintf("%s [ahead %d, behind %d]", line, ahead, behind), nil
	case ahead > 0:
		return fmt.Sprintf("%s [ahead %d]", line, ahead), nil
	case behind > 0:
		return fmt.Sprintf("%s [behind %d]", line, behind), nil
	}
	return line, nil
}

// upstream is the reference that a branch follows, or "".
func (r *Repo) upstream(branch string) string {
	remote, merge := r.cfg["branch."+branch+".remote"], r.cfg["branch."+branch+".merge"]
	if remote == "" || merge == "" {
		return ""
	}
	if remote == "." {
		return merge
	}
	from, to, ok := strings.Cut(strings.TrimPrefix(r.cfg["remote."+remote+".fetch"], "+"), ":")
	if !ok {
		return ""
	}
	if from == merge {
		return to
	}
	prefix, star := strings.CutSuffix(from, "*")
	name, fits := strings.CutPrefix(merge, prefix)
	if !star || !fits {
		return ""
	}
	return strings.TrimSuffix(to, "*") + name
}

const maxWalked = 5000 // commits

// walk is the commits that are to be looked at, the newest first.
type walk []step

type step struct {
	id   id
	date int64
	c    commit
}

func (w *walk) Len() int           { return len(*w) }
func (w *walk) Less(i, j int) bool { return (*w)[i].date > (*w)[j].date }
func (w *walk) Swap(i, j int)      { (*w)[i], (*w)[j] = (*w)[j], (*w)[i] }
func (w *walk) Push(x any)         { *w = append(*w, x.(step)) }
func (w *walk) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// distance counts the commits that only one of two has; it gives up on long
// histories.
func (r *Repo) distance(ctx context.Context, ours, theirs id) (ahead, behind int, known bool, err error) {
	sides := map[id]byte{}
	var todo walk
	add := func(i id, side byte) error {
		before, seen := sides[i]
		sides[i] = before | side
		if seen {
			if before != 3 && sides[i] == 3 { // its ancestors belong to both, too
				c, err := r.commit(ctx, i)
				if err == nil {
					heap.Push(&todo, step{i, c.date, c})
				}
				return err
			}
			return nil
		}
		c, err := r.commit(ctx, i)
		if err != nil {
			if ctx.Err() == nil {
				return nil // the history was cut off there (a shallow clone)
			}
			return err
		}
		heap.Push(&todo, step{i, c.date, c})
		return nil
	}
	if err := add(ours, 1); err != nil {
		return 0, 0, false, err
	}
	if err := add(theirs, 2); err != nil {
		return 0, 0, false, err
	}
	for n := 0; len(todo) > 0; n++ {
		if !slices.ContainsFunc(todo, func(s step) bool { return sides[s.id] != 3 }) {
			break // the rest is known to both
		}
		if n == maxWalked {
			return 0, 0, false, nil
		}
		s := heap.Pop(&todo).(step)
		for _, p := range s.c.parents {
			if err := add(p, sides[s.id]); err != nil {
				return 0, 0, false, err
			}
		}
	}
	for _, side := range sides {
		switch side {
		case 1:
			ahead++
		case 2:
			behind++
		}
	}
	return ahead, behind, true, nil
}
