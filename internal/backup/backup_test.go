package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/yaya-ai/yaya/internal/backup"
)

var created = time.Date(2026, 11, 23, 15, 4, 5, 0, time.UTC)

type file struct{ name, content string }

var some = []file{
	{"config/mcp.json", "{}\n"},
	{"data/VERSION", "2\n"},
	{"data/empty", ""},
	{"data/tapes/" + strings.Repeat("long", 60) + ".jsonl", strings.Repeat("a line of a tape\n", 300)},
}

// made is a backup of files.
func made(t *testing.T, files []file, to ...age.Recipient) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, backup.Head{Yaya: "0.2.0", Created: created, DataFormat: 2}, to...)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		m := backup.Member{Name: f.name, Size: int64(len(f.content)), Modified: created.Add(-time.Duration(i) * time.Hour), Executable: i == 2}
		if err := w.Add(m, strings.NewReader(f.content)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read returns the files of a backup, if it is whole.
func read(data []byte, ids ...age.Identity) (out []file, err error) {
	r, err := backup.NewReader(bytes.NewReader(data), ids...)
	if err != nil {
		return nil, err
	}
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return nil, err
		}
		out = append(out, file{m.Name, string(content)})
	}
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// OP-44: added files come back, in the clear and encrypted; without the identity nothing
// does, and no name or content is readable.
func TestRoundTrip(t *testing.T) {
	id, other := identity(t), identity(t)
	for name, c := range map[string]struct {
		to  []age.Recipient
		ids []age.Identity
	}{
		"in the clear":      {},
		"encrypted":         {[]age.Recipient{id.Recipient()}, []age.Identity{id}},
		"to two recipients": {[]age.Recipient{other.Recipient(), id.Recipient()}, []age.Identity{id}},
	} {
		t.Run(name, func(t *testing.T) {
			data := made(t, some, c.to...)
			got, err := read(data, c.ids...)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(some) {
				t.Errorf("read = %v, %v, want what was added", got, err)
			}
			if len(c.to) == 0 {
				return
			}
			if bytes.Contains(data, []byte("mcp.json")) || bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
				t.Error("the encrypted backup is readable")
			}
			if _, err := read(data); !errors.Is(err, backup.ErrSealed) {
				t.Errorf("without an identity: %v, want ErrSealed", err)
			}
			if _, err := read(data, identity(t)); err == nil || !strings.Contains(err.Error(), "decrypt") {
				t.Errorf("with another identity: %v, want an error of decryption", err)
			}
		})
	}
}

// A reader passes over what it does not read, and reports times and modes.
func TestMembers(t *testing.T) {
	r, err := backup.NewReader(bytes.NewReader(made(t, some)))
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Head(); h.Format != backup.Format || h.Yaya != "0.2.0" || !h.Created.Equal(created) || h.DataFormat != 2 {
		t.Errorf("Head = %+v", h)
	}
	for i, f := range some {
		m, err := r.Next()
		want := backup.Member{Name: f.name, Size: int64(len(f.content)), Executable: i == 2, Modified: created.Add(-time.Duration(i) * time.Hour)}
		if err != nil || m.Name != want.Name || m.Size != want.Size || m.Executable != want.Executable || !m.Modified.Equal(want.Modified) {
			t.Errorf("Next = %+v, %v, want %+v", m, err, want)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("Next = %v, want io.EOF", err)
	}
	if end := r.End(); end.Files != int64(len(some)) || end.Bytes != 5105 {
		t.Errorf("End = %+v", end)
	}
}

// OP-45: a backup that is cut anywhere, or has a flipped bit, is refused, or yields exactly
// what was added.
func TestDamage(t *testing.T) {
	id := identity(t)
	for name, data := range map[string][]byte{"in the clear": made(t, some), "encrypted": made(t, some, id.Recipient())} {
		t.Run(name, func(t *testing.T) {
			for n := range data {
				if got, err := read(data[:n], id); err == nil {
					t.Fatalf("cut to %d of %d bytes: %d files, and no error", n, len(data), len(got))
				}
			}
			harmless := 0
			for n := range data {
				bad := bytes.Clone(data)
				bad[n] ^= 1 << (n % 8)
				got, err := read(bad, id)
				if err == nil && fmt.Sprint(got) != fmt.Sprint(some) {
					t.Fatalf("byte %d flipped: other files, and no error", n)
				}
				if err == nil {
					harmless++ // such as the time in gzip's header
				}
			}
			if harmless > len(data)/20 {
				t.Errorf("%d of %d flips went unnoticed", harmless, len(data))
			}
		})
	}
}

// OP-45: bytes behind the end of a backup are refused, and said to be that. In an encrypted file
// age takes them for a part of the last chunk, which they make one that is not authentic.
func TestBytesBehindTheEnd(t *testing.T) {
	var nothing bytes.Buffer
	if err := gzip.NewWriter(&nothing).Close(); err != nil {
		t.Fatal(err)
	}
	id := identity(t)
	for kind, data := range map[string][]byte{"in the clear": made(t, some), "encrypted": made(t, some, id.Recipient())} {
		want := map[string]string{"in the clear": "it has bytes behind its end", "encrypted": "corrupted or tampered with"}[kind]
		for name, more := range map[string][]byte{
			"a byte":                       {'x'},
			"a zero byte":                  {0},
			"the first byte of an archive": {0x1f},
			"zeros":                        make([]byte, 100_000),
			"an archive of nothing":        nothing.Bytes(),
			"a part of the backup":         data[:len(data)/2],
			"the backup again":             data,
		} {
			if got, err := read(append(bytes.Clone(data), more...), id); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %s appended: %d files and the error %v, want %q", kind, name, len(got), err, want)
			}
		}
	}
}

// member is one of a hostile archive.
type member struct {
	header  tar.Header
	content string
}

func archive(t *testing.T, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, m := range members {
		m.header.Size = int64(len(m.content))
		m.header.Mode = 0o600
		if err := w.WriteHeader(&m.header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// OP-45: an archive of somebody else leads nowhere else, and is refused.
func TestForeignArchives(t *testing.T) {
	head := member{tar.Header{Name: "backup.json"}, `{"format":1,"yaya":"0.2.0","data_format":2}`}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":            {nil, "not a backup"},
		"text":               {[]byte("hello, this is a text of some length"), "not a backup"},
		"another archive":    {archive(t, member{tar.Header{Name: "data/x"}, "x"}), "not a backup"},
		"a newer format":     {archive(t, member{tar.Header{Name: "backup.json"}, `{"format":2,"yaya":"0.9.0"}`}), "use the yaya that made it (0.9.0)"},
		"a head that is big": {archive(t, member{tar.Header{Name: "backup.json"}, strings.Repeat(" ", 65<<10)}), "more than"},
		"no end":             {archive(t, head, member{tar.Header{Name: "data/x"}, "x"}), "ends too early"},
		"another sum":        {archive(t, head, member{tar.Header{Name: "end.json"}, `{"files":1,"bytes":0,"sha256":""}`}), "damaged"},
		"a way out":          {archive(t, head, member{tar.Header{Name: "data/../../x"}, "x"}), "does not put into a backup"},
		"an absolute path":   {archive(t, head, member{tar.Header{Name: "/etc/passwd"}, "x"}), "does not put into a backup"},
		"a link":             {archive(t, head, member{tar.Header{Name: "data/x", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, ""}), "does not put into a backup"},
		"a folder":           {archive(t, head, member{tar.Header{Name: "data/x/", Typeflag: tar.TypeDir}, ""}), "does not put into a backup"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := read(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read = %v, %v, want %q", got, err, c.want)
			}
		})
	}
}

// A file that becomes shorter while it is added, and a name that leads elsewhere, are errors.
func TestAddRefuses(t *testing.T) {
	for name, m := range map[string]backup.Member{
		"shorter": {Name: "data/x", Size: 4},
		"dots":    {Name: "data/../x", Size: 3},
		"the end": {Name: "end.json", Size: 3},
	} {
		w, err := backup.NewWriter(io.Discard, backup.Head{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(m, strings.NewReader("abc")); err == nil {
			t.Errorf("%s: Add returned no error", name)
		}
	}
}

// OP-44: recipients and identities come from arguments and files; no error quotes a key.
func TestKeys(t *testing.T) {
	id := identity(t)
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	both, err := backup.Recipients([]string{id.Recipient().String(), put("to", "# a comment\n"+id.Recipient().String()+"\n")})
	if err != nil || len(both) != 2 {
		t.Errorf("Recipients = %v, %v, want two", both, err)
	}
	for _, bad := range []string{"age1nonsense", filepath.Join(dir, "missing"), put("empty", "")} {
		if got, err := backup.Recipients([]string{bad}); err == nil {
			t.Errorf("Recipients(%q) = %v, want an error", bad, got)
		}
	}
	ids, err := backup.Identities(t.Context(), []string{put("key", id.String()+"\n")})
	if err != nil || len(ids) != 1 {
		t.Errorf("Identities = %v, %v, want one", ids, err)
	}
	_, err = backup.Identities(t.Context(), []string{put("bad", "x"+id.String()+"\n")})
	if err == nil || strings.Contains(err.Error(), id.String()[20:]) || !strings.Contains(err.Error(), filepath.Join(dir, "bad")) {
		t.Errorf("Identities of a damaged file: %v, want an error with its name and without the key", err)
	}
}
