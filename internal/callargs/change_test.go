package callargs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// of returns the arguments of an edit.
func of(t *testing.T, before, after string) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"new_text": after, "old_text": before, "path": "a.go"})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// texts returns the lines of a text of several lines.
func texts(lines []Line) (out []string) {
	for _, l := range lines {
		if l.Inner {
			out = append(out, l.Text)
		}
	}
	return out
}

// USE-4: an edit is shown as a diff of its two texts, which hides nothing that differs.
func TestEditIsADiff(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"a line between others", "a\nb\nc\n", "a\nB\nc\n", " a|-b|+B| c"},
		{"two places", "a\nb\nc\nd\n", "A\nb\nc\nD\n", "-a|+A| b| c|-d|+D"},
		{"a new line", "a\nc", "a\nb\nc", " a|+b| c"},
		{"nothing new", "a\nb\n", "", "-a|-b"},
		{"within a line", "a", "b", "-a|+b"},
		{"far apart", "a\n1\n2\n3\n4\n5\n6\n7\n8\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\n8\nB\n", "-a|+A| 1| 2| 3|…| 6| 7| 8|-b|+B"},
		{"an end of line", "a", "a\n", `-a|\ No newline at end of file|+a`},
		{"another end of line", "a\r\n", "a\n", "-a\r|+a"},
		{"a line that looks like a sign", "-x\n", "+x\n", "--x|++x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := texts(Lines("edit", of(t, c.before, c.after)))
			if s := strings.Join(got, "|"); s != c.want {
				t.Errorf("the diff is %s, want %s", s, c.want)
			}
			for _, l := range Lines("server__edit", of(t, c.before, c.after)) {
				if l.Sign != 0 {
					t.Errorf("a server's tool has the diff line %+v", l)
				}
			}
		})
	}
	// Arguments without both texts are shown as they are.
	for _, raw := range []string{`{"old_text":1,"new_text":"a"}`, `{"new_text":"a"}`} {
		if got := Lines("edit", json.RawMessage(raw)); slices.ContainsFunc(got, func(l Line) bool { return l.Head == "change:" }) {
			t.Errorf("%s is shown as %+v", raw, got)
		}
	}
}

// The change that is shown of a call has its first lines.
func TestChange(t *testing.T) {
	edit := of(t, "a\nb\nc\n", "A\nb\nc\n")
	got, more := Change("edit", edit, 16)
	if s := strings.Join(texts(got), "|"); s != "-a|+A| b| c" || more {
		t.Errorf("the change is %s, more: %v", s, more)
	}
	if got, more = Change("edit", edit, 3); len(got) != 3 || !more {
		t.Errorf("of the change, %d lines are shown, more: %v; want 3 and more", len(got), more)
	}
	patch, err := json.Marshal(map[string]string{"patch": "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\n"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ = Change("apply_patch", patch, 16); len(got) != 6 {
		t.Errorf("of a patch of 6 lines, %d are shown", len(got))
	}
	if got, _ = Change("shell", json.RawMessage(`{"command":"a\nb"}`), 16); len(got) != 0 {
		t.Errorf("a command is shown as the change %+v", got)
	}
}
