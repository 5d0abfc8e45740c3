// Package dashboard is the page that people open: files that are embedded, and a
// handler that serves them and nothing else.
//
// The files hold no data and no secrets; whoever reaches the listener may have them.
// The page asks for its data over the APIs and the wire protocol, with the rights of
// whoever has opened it: the user that runs yaya on this machine, or a device that the
// browser is enrolled as. People write the files in page: ES modules, and
// preact, htm and marked as their makers ship them (page/vendor, with their licences). They are
// served as what make page makes of them, which is in bundle: fewer files, without comments and
// spaces. Beside the page, and not served: types has its types, of which those of the APIs are
// generated (make types).
//
// The Content-Security-Policy lets no script run but these, no markup be made of
// text (Trusted Types), and nothing be loaded from elsewhere.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/language"

	"github.com/yaya-ai/yaya/internal/accept"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

//go:embed bundle
var files embed.FS

// policy is the Content-Security-Policy of the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are those of the files, by extension; a file of another one is an error of
// the build, not a guess of a browser.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8", ".json": "application/json", ".webmanifest": "application/manifest+json",
}

// file is one that is served.
type file struct {
	kind  string
	plain []byte
	// forever says that its name changes with it.
	forever bool
	// packed compresses it, once, when it is asked for first.
	packed func() []byte
	etag   func() string
}

// Handler serves the page at / and its files below /ui/.
type Handler struct{ files map[string]*file }

// ofContent is the name of a file with a hash of what it is.
var ofContent = lazyregexp.New(`-[A-Z2-7]{8}\.js$`)

// New returns the handler.
func New() (*Handler, error) {
	h := &Handler{files: map[string]*file{}}
	err := fs.WalkDir(files, "bundle", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		kind, ok := types[path.Ext(name)]
		if !ok {
			return fmt.Errorf("dashboard: %s has no type", name)
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		h.files[strings.TrimPrefix(name, "bundle/")] = &file{
			kind: kind, plain: data, forever: ofContent().MatchString(name),
			packed: sync.OnceValue(func() []byte { return pack(data) }),
			etag: sync.OnceValue(func() string {
				sum := sha256.Sum256(data)
				return `"` + hex.EncodeToString(sum[:12]) + `"`
			}),
		}
		return nil
	})
	return h, err
}

func pack(data []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil { // cannot be: it is a level
		return data
	}
	_, _ = w.Write(data) // into memory
	_ = w.Close()
	return b.Bytes()
}

// ServeHTTP implements [http.Handler]. Names are looked up among the embedded files,
// so that none leads elsewhere.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	name := "index.html"
	if r.URL.Path != "/" {
		name = strings.TrimPrefix(r.URL.Path, "/ui/")
	}
	f := h.files[name]
	if f == nil || (name == "index.html" && r.URL.Path != "/") {
		http.Error(w, "file not found", http.StatusNotFound)
		return
	}
	if name == "index.html" && r.URL.RawQuery != "" {
		// The query may hold a secret: the browser goes on to an address without the
		// query, which replaces this one in its history.
		head.Set("Cache-Control", "no-store")
		head.Set("Location", "/")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	head.Set("Content-Type", f.kind)
	head.Set("Cache-Control", "no-cache") // kept, and asked about: a new yaya has a new page
	if f.forever {
		head.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if name == "index.html" {
		head.Set("Vary", "Accept-Language")
		if table := texts(r.Header.Get("Accept-Language")); table != "" { // asked for beside the first script, which needs it
			head.Set("Link", "</ui/"+table+">; rel=preload; as=fetch; crossorigin=anonymous")
		}
	}
	zipped := accept.Gzip(r.Header["Accept-Encoding"])
	etag := f.etag()
	if zipped {
		etag = strings.TrimSuffix(etag, `"`) + `-gzip"` // of other bytes, RFC 9110 section 8.8.3
	}
	head.Set("ETag", etag)
	head.Add("Vary", "Accept-Encoding")
	if had := r.Header.Get("If-None-Match"); had == "*" || strings.Contains(had, etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if zipped {
		body = f.packed()
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that went away gets nothing
	}
}

// translated are the languages of the page but English, which needs no texts. words.js has the same ones.
var translated = []string{"zh"}

// texts is the file with the texts of the page in the language that a browser wants, "" for none. A choice in
// Settings stays in the browser: it costs a load of texts that are not needed, or needed later.
func texts(languages string) string {
	wanted, _, err := language.ParseAcceptLanguage(languages)
	if err != nil {
		return ""
	}
	for _, tag := range wanted {
		switch base, _ := tag.Base(); {
		case base.String() == "en":
			return ""
		case slices.Contains(translated, base.String()):
			return base.String() + ".json"
		}
	}
	return ""
}
