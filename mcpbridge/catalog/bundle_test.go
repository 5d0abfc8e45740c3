package catalog

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const manifestText = `{"manifest_version":"0.3","name":"notes","version":"1.0.0","server":{"type":"node","entry_point":"server/index.js","mcp_config":{"command":"node",
"args":["${__dirname}/server/index.js","--dirs","${user_config.dirs}","--level=${user_config.level}"],"env":{"KEY":"${user_config.key}"}}},
"user_config":{"dirs":{"type":"directory","multiple":true,"required":true},"key":{"type":"string","sensitive":true,"required":true},"level":{"type":"number","default":3}}}`

// zipped returns a zip; a name that begins with "->" is a link.
func zipped(t *testing.T, files map[string]string) []byte {
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

// bundleEntry is an entry whose bundle is at an address.
func bundleEntry(t *testing.T, address, sum string) Entry {
	return entryOf(t, fmt.Sprintf(`{"name":"sky/notes","version":"1.0.0","packages":[{"registryType":"mcpb","identifier":%q,"version":"1.0.0","fileSha256":%q,"transport":{"type":"stdio"}}]}`, address, sum))
}

// served is a catalog with a registry that also has the file.
func served(t *testing.T, raw []byte) (*Catalog, Entry) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) }))
	t.Cleanup(srv.Close)
	c, _ := newCatalog(t, dataFolder(t), Registry{"official", srv.URL})
	sum := sha256.Sum256(raw)
	return c, bundleEntry(t, srv.URL+"/notes.mcpb", hex.EncodeToString(sum[:]))
}

func TestBundle(t *testing.T) {
	c, e := served(t, zipped(t, map[string]string{"manifest.json": manifestText, "server/index.js": "run()"}))
	folder := filepath.Join(t.TempDir(), "yaya-servers")
	if o := e.Options()[0]; !o.NeedsBundle() || len(o.Inputs) > 0 {
		t.Errorf("before it is fetched: %+v", o)
	}
	if err := c.FetchBundle(t.Context(), &e, "mcpb", folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("it is unpacked before anybody agreed")
	}
	var got []string
	for _, a := range e.Options()[0].Inputs {
		got = append(got, fmt.Sprint(a.Name, " ", a.Format, " ", a.Required, " ", a.Secret, " ", a.Repeated, " ", a.Default))
	}
	if want := []string{"dirs filepath true false true ", "key string true true false ", "level number false false false 3"}; !slices.Equal(got, want) {
		t.Errorf("it asks for %q, want %q", got, want)
	}
	dir := t.TempDir()
	p, err := Make(e, Choice{Name: "notes", Given: map[string][]string{"dirs": {dir, folder}, "key": {"s3cret-of-the-sky"}}}, never)
	if err != nil {
		t.Fatal(err)
	}
	x := parsed(t, p)
	at := p.Bundle.Folder
	if got, want := x.Endpoint(), "node "+at+"/server/index.js --dirs "+dir+" "+folder+" --level=3"; got != want {
		t.Errorf("it runs\n%s, want\n%s", got, want)
	}
	if x.Env["KEY"] != "${secret:notes.key}" || !slices.Contains(x.Sandbox.Read, at) || !slices.Contains(x.Sandbox.Write, dir) {
		t.Errorf("env %v, sandbox %+v", x.Env, x.Sandbox)
	}
	if err := c.Unpack(p.Bundle); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(at, "server/index.js")); err != nil || string(text) != "run()" {
		t.Errorf("unpacked %q, %v", text, err)
	}
	all, err := os.ReadDir(folder)
	if err != nil || len(all) != 1 {
		t.Errorf("beside it: %v, %v", all, err)
	}
	if err := c.Unpack(p.Bundle); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestHostileBundles(t *testing.T) {
	with := func(old, new string) []byte {
		return zipped(t, map[string]string{"manifest.json": strings.ReplaceAll(manifestText, old, new)})
	}
	good := zipped(t, map[string]string{"manifest.json": manifestText})
	sum := sha256.Sum256(good)
	other := hex.EncodeToString(sum[:])
	for name, x := range map[string]struct {
		raw []byte
		sum string
	}{
		"another sum":              {raw: append(slices.Clone(good), 0), sum: other},
		"no zip":                   {raw: []byte("MZ")},
		"no manifest":              {raw: zipped(t, map[string]string{"a": "b"})},
		"a broken manifest":        {raw: zipped(t, map[string]string{"manifest.json": "{"})},
		"a huge manifest":          {raw: zipped(t, map[string]string{"manifest.json": strings.Repeat(" ", maxManifest+1)})},
		"a shell":                  {raw: with(`"command":"node"`, `"command":"sh"`)},
		"a path outside":           {raw: with(`"command":"node"`, `"command":"${__dirname}/../../../bin/sh"`)},
		"an absolute path":         {raw: with(`"command":"node"`, `"command":"/bin/sh"`)},
		"a secret":                 {raw: with("${user_config.level}", "${secret:openai}")},
		"a variable of the loader": {raw: with(`"KEY"`, `"NODE_OPTIONS"`)},
		"an odd word":              {raw: with("--dirs", `--d\u202eirs`)},
	} {
		t.Run(name, func(t *testing.T) {
			c, e := served(t, x.raw)
			if x.sum != "" {
				e.Server.Packages[0].FileSHA256 = x.sum
			}
			err := c.FetchBundle(t.Context(), &e, "mcpb", t.TempDir())
			if err == nil {
				_, err = Make(e, Choice{Name: "notes", Given: map[string][]string{"dirs": {"/tmp"}, "key": {"s3cret-of-the-sky"}}}, never)
			}
			if err == nil {
				t.Error("it was taken")
			}
		})
	}
	for name, files := range map[string]map[string]string{"a name outside": {"../x": "y"}, "a link": {"->x": "/etc/passwd"}, "an absolute name": {"/tmp/x": "y"}} {
		files["manifest.json"] = manifestText
		c, e := served(t, zipped(t, files))
		folder := t.TempDir()
		if err := c.FetchBundle(t.Context(), &e, "mcpb", folder); err != nil {
			continue
		}
		b := &Bundle{SHA256: e.Server.Packages[0].FileSHA256, Folder: filepath.Join(folder, "x")}
		if err := c.Unpack(b); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
		if all, err := os.ReadDir(folder); err != nil || len(all) > 0 {
			t.Errorf("%s: it leaves %v, %v", name, all, err)
		}
	}
}

// A bundle whose list says less than the file has.
func TestLyingBundle(t *testing.T) {
	raw := zipped(t, map[string]string{"manifest.json": manifestText, "big": strings.Repeat("x", 1<<20)})
	at := bytes.LastIndex(raw, []byte("big")) // in the list at the end
	copy(raw[at-46+24:], []byte{1, 0, 0, 0})  // uncompressed size
	c, e := served(t, raw)
	folder := t.TempDir()
	if err := c.FetchBundle(t.Context(), &e, "mcpb", folder); err != nil {
		t.Fatal(err)
	}
	if err := c.Unpack(&Bundle{SHA256: e.Server.Packages[0].FileSHA256, Folder: filepath.Join(folder, "x")}); err == nil {
		t.Error("a file that grows was unpacked")
	}
}

// The address of a bundle is its publisher's, and leads into no private network.
func TestBundleAddresses(t *testing.T) {
	inside := newRegistry(t)
	c, _ := newCatalog(t, nil, Registry{"official", "https://registry.example.com"})
	for _, address := range []string{inside.URL + "/x.mcpb", "http://example.com/x.mcpb", "file:///etc/passwd", strings.Replace(inside.URL, "http:", "https:", 1), "https://[::1]:1/x", "https://169.254.169.254/x"} {
		e := bundleEntry(t, address, strings.Repeat("a", 64))
		if err := c.FetchBundle(t.Context(), &e, "mcpb", t.TempDir()); err == nil {
			t.Errorf("%s was fetched", address)
		}
	}
	if n := inside.asked.Load(); n != 0 {
		t.Errorf("%d requests came into the network", n)
	}
	elsewhere := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusFound))
	defer elsewhere.Close()
	c, _ = newCatalog(t, nil, Registry{"official", elsewhere.URL})
	e := bundleEntry(t, elsewhere.URL+"/x.mcpb", strings.Repeat("a", 64))
	if err := c.FetchBundle(t.Context(), &e, "mcpb", t.TempDir()); err == nil || inside.asked.Load() != 0 {
		t.Errorf("a redirect was followed: %v", err)
	}
}

func TestArchivesAreFew(t *testing.T) {
	c, _ := newCatalog(t, dataFolder(t))
	for i := range maxArchives + 2 {
		sum := fmt.Sprintf("%064d", i)
		if err := c.keepArchive(sum, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(int64(i+1), 0)
		if err := c.data.Chtimes(archives+"/"+sum+".mcpb", at, at); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := fs.ReadDir(c.data.FS(), archives)
	if err != nil || len(dir) != maxArchives || dir[0].Name() != fmt.Sprintf("%064d.mcpb", 2) {
		t.Errorf("kept %v, %v", dir, err)
	}
}
