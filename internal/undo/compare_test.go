package undo

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

func openDir(t *testing.T) *workspace.Workspace {
	t.Helper()
	w, err := (*workspace.Guard)(nil).Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// AGT-4: a file or folder that changes only how its name is spelled, on a file system that finds it under both
// names, is not a new one: undo would remove the only one. It is named, and its content is as before.
func TestOtherSpellings(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	at, err := New(root, func([]byte) bool { return false }).folder("s")
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	w := openDir(t)
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(w.Dir(), "readme"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	if err := os.Mkdir(filepath.Join(w.Dir(), "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	// respelled is a picture in which the entries have other names than those by which they are found here.
	respelled := func() picture {
		now, err := at.look(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		now.files["README"], now.at["README"], now.dirs["DIR"] = now.files["readme"], now.at["readme"], now.dirs["dir"]
		delete(now.files, "readme")
		delete(now.dirs, "dir")
		for id, p := range now.ids {
			now.ids[id] = strings.ToUpper(p)
		}
		return now
	}
	first, err := at.look(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for text, changed := range map[string][]file{"one": nil, "two": {{"readme", first.files["readme"], &content{SHA: sum([]byte("two")), Mode: 0o600}}}} {
		write(text)
		var st step
		g := &group{whole: true, first: first, before: first.files, noted: map[string]bool{}}
		now := respelled()
		g.compare(at, w, now, &st)
		g.compareFolders(w, now, &st)
		if !reflect.DeepEqual(st.Files, changed) || len(st.Folders) > 0 || !slices.Equal(st.Without, []string{"README", "DIR/"}) {
			t.Errorf("%s: the step has %+v, %+v, without %q; want %+v, and that both names are told", text, st.Files, st.Folders, st.Without, changed)
		}
	}
	var st step
	g := &group{whole: true, first: first, before: map[string]*content{"readme": first.files["readme"], "Readme": nil}, noted: map[string]bool{}}
	write("one")
	now := respelled()
	for id, p := range now.ids { // an edit has named the file by another name
		if p == "README" {
			now.files["readme"], now.ids[id] = now.files["README"], "readme"
			delete(now.files, "README")
		}
	}
	if err := os.Rename(filepath.Join(w.Dir(), "readme"), filepath.Join(w.Dir(), "Readme")); err != nil {
		t.Fatal(err)
	}
	if g.compare(at, w, now, &st); len(st.Files) > 0 || !slices.Equal(st.Without, []string{"Readme"}) {
		t.Errorf("the step has %+v, without %q; want the file named", st.Files, st.Without)
	}
}

// AGT-4: a file of another file system is not taken for a covered one with the same number.
func TestMovedFromAnotherFileSystem(t *testing.T) {
	w := openDir(t)
	if err := os.WriteFile(filepath.Join(w.Dir(), "p"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := w.Root().Lstat("p")
	if err != nil {
		t.Fatal(err)
	}
	id, ok := hostfile.Described(info)
	if !ok {
		t.Skip("a description does not have the number of a file")
	}
	g := &group{whole: true, first: newPicture(), began: info.ModTime().Add(time.Hour)}
	g.first.ids[hostfile.ID{Dev: id.Dev + 1, Ino: id.Ino}] = "covered"
	if !g.moved(w, "p") {
		t.Error("the file counts as made by the step, want that it was there before")
	}
	g.first.ids[id] = "p"
	if g.moved(w, "p") {
		t.Error("the covered file counts as one that was not covered")
	}
}

// AGT-4: where the times of files are whole seconds, or two, a file of this second may change again without
// another time, and one that the step has made may look older than it.
func TestCoarseTimes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for name, tc := range map[string]struct {
		at             time.Time
		settled, older bool
	}{
		"this second":                {now.Truncate(time.Second), false, false},
		"two seconds":                {now.Truncate(2 * time.Second), false, false},
		"whole seconds, long ago":    {now.Truncate(time.Minute), true, true},
		"just now":                   {now.Add(-time.Millisecond), false, true},
		"fine times, of this second": {now.Add(-100 * time.Millisecond), true, true},
		"to come":                    {now.Add(time.Hour), false, false},
	} {
		if got := settled(tc.at, now); got != tc.settled {
			t.Errorf("%s: settled = %v, want %v", name, got, tc.settled)
		}
		if got := (&group{began: now}).older(tc.at); got != tc.older {
			t.Errorf("%s: older = %v, want %v", name, got, tc.older)
		}
	}
}

// AGT-4: of a workspace with more entries than are visited, a path before the last one is new if the picture
// does not have it.
func TestEndOfPicture(t *testing.T) {
	p := newPicture()
	p.end = "m/x"
	for at, want := range map[string]bool{"a": false, "a/z": false, "m": false, "m/w/z": false, "m/x": false, "m/x/y": true, "m/y": true, "m.txt": true, "n": true} {
		if got := p.there(at); got != want {
			t.Errorf("%s may have been there: %v, want %v", at, got, want)
		}
	}
}
