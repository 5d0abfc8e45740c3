package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// table parses lines that are given without what no test is about.
func table(t *testing.T, lines ...string) *Table {
	t.Helper()
	got, err := Parse(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestParseLine(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want mount
	}{
		"plain":              {`36 35 98:0 / /mnt rw - ext4 /dev/sda rw`, mount{id: 36, parent: 35, fs: "98:0", root: "/", at: "/mnt"}},
		"optional fields":    {`36 35 98:0 /a /mnt rw,noatime shared:1 master:2 propagate_from:3 - ext4 /dev/sda rw`, mount{id: 36, parent: 35, fs: "98:0", root: "/a", at: "/mnt"}},
		"unbindable":         {`36 35 98:0 /a /mnt rw unbindable - ext4 /dev/sda rw`, mount{id: 36, parent: 35, fs: "98:0", root: "/a", at: "/mnt"}},
		"escapes":            {`36 35 98:0 /a\040b\011c\012d\134e /m\043n\134040 rw - ext4 a\040b rw`, mount{id: 36, parent: 35, fs: "98:0", root: "/a b\tc\nd\\e", at: `/m#n\040`}},
		"an escape cut off":  {`36 35 98:0 /a\04 /m\0 rw - ext4 x rw`, mount{id: 36, parent: 35, fs: "98:0", root: `/a\04`, at: `/m\0`}},
		"not an octal":       {`36 35 98:0 /a\999 /m\777 rw - ext4 x rw`, mount{id: 36, parent: 35, fs: "98:0", root: `/a\999`, at: `/m\777`}},
		"a hyphen in a name": {`36 35 98:0 /- /- rw - ext4 - rw`, mount{id: 36, parent: 35, fs: "98:0", root: "/-", at: "/-"}},
		"replaced since":     {`36 35 98:0 /a/mcp.json//deleted /m rw - ext4 x rw`, mount{id: 36, parent: 35, fs: "98:0", root: "/a/mcp.json", at: "/m"}},
		"of a namespace":     {`36 35 0:4 net:[4026532177] /run/netns/a rw - nsfs nsfs rw`, mount{id: 36, parent: 35, fs: "0:4", root: "net:[4026532177]", at: "/run/netns/a"}},
		"NFS":                {`36 35 0:50 /u /home/u rw - nfs4 Server:/export/home rw,vers=4.2`, mount{id: 36, parent: 35, fs: "network server", root: "/export/home/u", at: "/home/u"}},
		"CIFS":               {`36 35 0:50 / /home/u rw - cifs //Server/home rw`, mount{id: 36, parent: 35, fs: "network server", root: "/home", at: "/home/u"}},
		"an overlay":         {`36 35 0:51 / /m rw - overlay overlay rw,lowerdir=/a:/b\:c:rel,upperdir=/u\054v,workdir=/w`, mount{id: 36, parent: 35, fs: "0:51", root: "/", at: "/m", layers: []string{"/a", "/b:c", "/u,v"}}},
		"layers by one each": {`36 35 0:51 / /m rw - overlay o rw,lowerdir+=/a,datadir+=/b`, mount{id: 36, parent: 35, fs: "0:51", root: "/", at: "/m", layers: []string{"/a", "/b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseLine(c.line)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.layers, c.want.layers) {
				t.Errorf("layers = %q, want %q", got.layers, c.want.layers)
			}
			got.layers, c.want.layers = nil, nil
			if g, w := *got, c.want; g.id != w.id || g.parent != w.parent || g.fs != w.fs || g.root != w.root || g.at != w.at {
				t.Errorf("got %+v, want %+v", g, w)
			}
		})
	}
}

// A table is refused as a whole: a mount that is left out would be a path that nobody knows.
func TestParseRefuses(t *testing.T) {
	const root = "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"", "root folder"},
		"no root":            {"2 1 8:1 / /mnt rw - ext4 x rw\n", "root folder"},
		"a line cut off":     {root + "2 1 8:1 / /mn", "not a line"},
		"cut in the options": {root + "2 1 8:1 / /mnt rw - ext4 x", "not a line"},
		"no hyphen":          {root + "2 1 8:1 / /mnt rw ext4 x rw\n", "not a line"},
		"an early hyphen":    {root + "2 - 8:1 / /mnt rw ext4 x rw\n", "not a line"},
		"a word as id":       {root + "x 1 8:1 / /mnt rw - ext4 x rw\n", "id is not"},
		"a word as parent":   {root + "2 x 8:1 / /mnt rw - ext4 x rw\n", "parent is not"},
		"a relative path":    {root + "2 1 8:1 / mnt rw - ext4 x rw\n", "not absolute"},
		"an empty line":      {root + "\n", "not a line"},
		"a line too long":    {root + strings.Repeat("x", maxLine+1), "too long"},
		"too many mounts":    {strings.Repeat(root, maxMounts+1), "more than"},
		"too many bytes":     {strings.Repeat("1 0 8:1 / / rw - ext4 "+strings.Repeat("y", maxLine/2)+" rw\n", 2*maxBytes/maxLine+1), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Parse = %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := Parse(failing{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Parse of what cannot be read = %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// A path leads into the mount that is on top of each folder on the way.
func TestHolds(t *testing.T) {
	tab := table(t,
		"1 0 8:1 / / rw - ext4 x rw",
		"2 1 8:2 / /a rw - ext4 x rw",
		"3 2 8:3 / /a/b rw - ext4 x rw",
		"4 2 8:4 / /a rw - ext4 x rw",   // over 2, and so over 3
		"5 1 8:5 / /c rw - ext4 x rw",   // below 6
		"6 5 8:6 / /c rw - ext4 x rw",   // over 5
		"7 6 8:7 / /c/d rw - ext4 x rw", // in it
		"8 1 8:8 / / rw - ext4 x rw",    // over the root, where no path begins
		"9 8 8:9 / /e rw - ext4 x rw",
		"10 11 8:10 / /f rw - ext4 x rw", // each says that it is on the other
		"11 10 8:11 / /f rw - ext4 x rw",
	)
	for name, want := range map[string]string{"/": "8:1", "/a": "8:4", "/a/b": "8:4", "/a/b/c": "8:4", "/ab": "8:1", "/c": "8:6", "/c/d": "8:7", "/c/dd": "8:6", "/c/d/x/y": "8:7", "/e": "8:1", "/f/x": "8:1"} {
		if got := tab.holds(name); got.fs != want {
			t.Errorf("%s leads into %s, want %s", name, got.fs, want)
		}
	}
}

func TestOthers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Links stand for what a kernel would show at several paths.
	for name, of := range map[string]string{"h/own/key": "", "x/u/own/key": "h/own/key", "sub/key": "h/own/key", "k": "h/own/key", "over/u/own/key": "", "deep/part": "", "big/in": "", "h/own/in/f": "", "low/u/own/key": "", "low/y": ""} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if of == "" {
			err = os.WriteFile(at, nil, 0o600)
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, of)), 0o700), os.WriteFile(filepath.Join(dir, of), nil, 0o600), os.Link(filepath.Join(dir, of), at))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const root = "1 0 8:1 / / rw - ext4 x rw"
	at := func(line string) string { return strings.ReplaceAll(line, "DIR", dir) }
	for name, c := range map[string]struct {
		lines []string
		of    string
		depth Depth
		want  []string
	}{
		"one path":                    {[]string{root}, "h/own/key", Content, nil},
		"a folder above":              {[]string{root, "2 1 8:1 DIR/h DIR/x/u rw - ext4 x rw"}, "h/own/key", Itself, []string{"x/u/own/key"}},
		"another file is there":       {[]string{root, "2 1 8:1 DIR/h DIR/over/u rw - ext4 x rw"}, "h/own/key", Itself, nil},
		"another file system":         {[]string{root, "2 1 8:2 DIR/h DIR/x/u rw - ext4 x rw"}, "h/own/key", Itself, nil},
		"mounted over":                {[]string{root, "2 1 8:1 DIR/h DIR/x/u rw - ext4 x rw", "3 2 8:2 / DIR/x/u/own rw - ext4 x rw"}, "h/own/key", Itself, nil},
		"the file itself":             {[]string{root, "2 1 8:1 DIR/h/own/key DIR/k rw - ext4 x rw"}, "h/own/key", Itself, []string{"k"}},
		"a part of it":                {[]string{root, "2 1 8:1 DIR/h/own/in DIR/deep/part rw - ext4 x rw"}, "h/own", Content, []string{"deep/part"}},
		"a part, not asked for":       {[]string{root, "2 1 8:1 DIR/h/own/in DIR/deep/part rw - ext4 x rw"}, "h/own", Itself, nil},
		"not a part, the same prefix": {[]string{root, "2 1 8:1 DIR/h/owner DIR/deep/part rw - ext4 x rw"}, "h/own", Content, nil},
		"mounted in it":               {[]string{root, "2 1 8:2 /in DIR/h/own/in rw - ext4 x rw", "3 1 8:2 / DIR/big rw - ext4 x rw"}, "h/own", Content, []string{"big/in"}},
		"the root mounted in it":      {[]string{root, "2 1 8:1 / DIR/h/own/in rw - ext4 x rw"}, "h/own", Content, nil},
		"the layer of an overlay":     {[]string{root, "2 1 0:9 / DIR/h rw - overlay o rw,lowerdir=DIR/low/u:DIR/none"}, "h/own/key", Itself, []string{"low/u/own/key"}},
		"an overlay of it":            {[]string{root, "2 1 0:9 / DIR/over rw - overlay o rw,lowerdir=DIR/low"}, "low/u/own/key", Itself, []string{"over/u/own/key"}},
		"an overlay of what it holds": {[]string{root, "2 1 0:9 / DIR/over rw - overlay o rw,lowerdir=DIR/low/u"}, "low", Content, []string{"over"}},
		"an export with other options": {[]string{root, "2 1 0:50 / DIR/h rw - nfs4 s:/e/h rw", "3 1 0:51 / DIR/x rw - nfs s:/e rw", "4 3 0:52 /h DIR/x/u rw - nfs s:/e ro"}, "h/own/key", Itself,
			[]string{"x/u/own/key"}},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.lines {
				c.lines[i] = at(c.lines[i])
			}
			got := table(t, c.lines...).Others(filepath.Join(dir, c.of), c.depth)
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], dir+"/")
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("Others = %q, want %q", got, c.want)
			}
		})
	}
	if got := (*Table)(nil).Others("/", Content); got != nil {
		t.Errorf("Others of no table = %q, want none", got)
	}
}

// A folder that its owner has shut can be opened again by a program of that owner.
func TestShut(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o700), os.Chmod(filepath.Join(dir, "a"), 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "a"), 0o700) })
	for name, c := range map[string]struct {
		err  error
		want string
	}{"shut": {os.ErrPermission, filepath.Join(dir, "a")}, "not there": {os.ErrNotExist, ""}} {
		if got := shut(filepath.Join(dir, "a/b"), c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "1 0 8:1 / / rw - ext4 x rw\n", "1 1 8:1 / / rw - ext4 x rw\n2 1 8:1 /a\\040 /b rw shared:1 - ext4 x rw\n",
		"1 0 0:1 / / rw - overlay o rw,lowerdir=/a:/b\\:c,upperdir=/u\n", "1 0 0:1 net:[1] / rw - nfs s:/e rw\n2 1 0:1 a//deleted /// rw - nfs :/ rw\n",
		"1 2 8:1 / / rw - x x x\n2 1 8:1 / / rw - x x x\n",
	} {
		f.Add(text, "/a/b")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		tab, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, m := range tab.below {
			if !strings.HasPrefix(m.at, "/") || m.at != filepath.Clean(m.at) {
				t.Errorf("a mount at %q, want an absolute path", m.at)
			}
		}
		for _, at := range tab.Others(name, Content) {
			if at == name || !strings.HasPrefix(at, "/") {
				t.Errorf("Others(%q) has %q, want other absolute paths", name, at)
			}
		}
	})
}

// many is the table of a machine on which a folder is mounted often.
func many(n int) string {
	var b strings.Builder
	b.WriteString("1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n")
	for i := range n {
		b.WriteString(strconv.Itoa(i+2) + " 1 0:" + strconv.Itoa(i/2+100) + " /var/lib/x /mnt/m" + strconv.Itoa(i) + " rw,nosuid,nodev,relatime shared:" + strconv.Itoa(i) + " - tmpfs tmpfs rw,size=1024k,mode=755\n")
	}
	return b.String()
}

func BenchmarkOthers(b *testing.B) {
	for _, n := range []int{50, 5000} {
		text := many(n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				tab, err := Parse(strings.NewReader(text))
				if err != nil {
					b.Fatal(err)
				}
				for range 40 { // about as many as a plan hides
					tab.Others("/home/u/.local/state/yaya", Content)
				}
			}
		})
	}
}
