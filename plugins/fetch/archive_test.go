package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tgz returns a .tar.gz; a name that begins with "->" is a link.
func tgz(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for name, text := range files {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if link, ok := strings.CutPrefix(name, "->"); ok {
			h = &tar.Header{Name: link, Linkname: text, Typeflag: tar.TypeSymlink}
			text = ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zipOf returns a zip; a name that begins with "->" is a link.
func zipOf(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o644)
		if link, ok := strings.CutPrefix(name, "->"); ok {
			h.Name = link
			h.SetMode(fs.ModeSymlink | 0o777)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bigTar claims one file of this size, and has only the first bytes of it.
func bigTar(t *testing.T, size int64) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	if err := tar.NewWriter(zipped).WriteHeader(&tar.Header{Name: "big", Size: size, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// lyingZip has a file of a mebibyte that claims another size.
func lyingZip(t *testing.T, claimed uint64) []byte {
	t.Helper()
	content := make([]byte, 1<<20)
	var out, packed bytes.Buffer
	pack, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(&out)
	f, err := w.CreateRaw(&zip.FileHeader{Name: "bomb", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(content), CompressedSize64: uint64(packed.Len()), UncompressedSize64: claimed}) //nolint:gosec // small
	if err == nil {
		_, err = f.Write(packed.Bytes())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// listZip has a list of so many files, and claims others.
func listZip(files int, claimed uint16, size, offset uint32) []byte {
	header := make([]byte, 46)
	copy(header, "PK\x01\x02")
	end := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	binary.LittleEndian.PutUint16(end[8:], claimed)
	binary.LittleEndian.PutUint16(end[10:], claimed)
	binary.LittleEndian.PutUint32(end[12:], size)
	binary.LittleEndian.PutUint32(end[16:], offset)
	return append(bytes.Repeat(header, files), end...)
}

// Archives write inside their folder, no links, and no more than they say and may.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range MaxEntries + 1 {
		many[fmt.Sprintf("f%d", i)] = ""
	}
	wide := map[string]string{} // few files, in folders that no entry names
	for i := range MaxEntries/50 + 1 {
		wide[fmt.Sprint(i)+strings.Repeat("/d", 50)+"/f"] = ""
	}
	deep := map[string]string{strings.Repeat("d/", 200) + "f": ""}
	for _, c := range []struct {
		name    string
		archive []byte
		zipped  bool
		want    string
	}{
		{"a tar that leads outside", tgz(t, map[string]string{"../evil": "x"}), false, "outside"},
		{"a tar with an absolute path", tgz(t, map[string]string{"/tmp/evil": "x"}), false, "outside"},
		{"a tar with a link", tgz(t, map[string]string{"->evil": "/etc"}), false, "no links"},
		{"a tar with too many files", tgz(t, many), false, "entries"},
		{"a tar with too many folders", tgz(t, wide), false, "entries"},
		{"a tar with deep folders", tgz(t, deep), false, "folders inside one another"},
		{"a zip with too many folders", zipOf(t, wide), true, "entries"},
		{"a zip with deep folders", zipOf(t, deep), true, "folders inside one another"},
		{"a tar with a file that is too large", bigTar(t, MaxBytes+1), false, "MiB"},
		{"a zip that leads outside", zipOf(t, map[string]string{"../evil": "x"}), true, "outside"},
		{"a zip with an absolute path", zipOf(t, map[string]string{"/tmp/evil": "x"}), true, "outside"},
		{"a zip with a link", zipOf(t, map[string]string{"->evil": "/etc"}), true, "no links"},
		{"a zip with too many files", zipOf(t, many), true, "entries"},
		{"a zip with a file that is larger than it says", lyingZip(t, 10), true, "zip"},
		{"a zip with a file that is too large", lyingZip(t, MaxBytes+1), true, "MiB"},
		{"a zip with a file of the size of the world", lyingZip(t, 1<<63), true, "MiB"},
		{"a zip whose file is there twice", append([]byte(nil), twice(t)...), true, "exist"},
		{"a zip with more files than it claims", listZip(4<<16, 0, 0, 0), true, "list of its files"},
		{"a zip that claims more files", listZip(1, MaxEntries+1, 46, 0), true, "more than 20000 entries"},
		{"a zip with as many files as there may be", listZip(MaxEntries, MaxEntries, MaxEntries*46, 0), true, "zip:"},
		{"a zip of more than 65535 files", listZip(1, 0xffff, 46, 0), true, "more than 20000 entries"},
		{"a zip that claims a large list", listZip(1, 1, 9<<20, 0), true, "list of its files"},
		{"a zip that claims to be large", listZip(1, 1, 46, 0xffffffff), true, "more than 512 MiB"},
		{"the end of a zip, cut off", listZip(0, 0, 0, 0)[:20], true, "not a valid zip"},
		{"not an archive", []byte("hello"), false, ""},
		{"not a zip", []byte("hello"), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			above := t.TempDir()
			dir := filepath.Join(above, "files")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			if c.zipped {
				err = Unzip(root, bytes.NewReader(c.archive), int64(len(c.archive)))
			} else {
				err = Untar(root, bytes.NewReader(c.archive))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if entries, err := os.ReadDir(above); err != nil || len(entries) != 1 {
				t.Errorf("%v lie beside the folder (%v), want nothing", entries, err)
			}
		})
	}
}

func twice(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for range 2 {
		if _, err := w.Create("same"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
