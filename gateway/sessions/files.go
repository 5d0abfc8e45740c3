package sessions

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Limits of attachments.
const (
	maxAttachment    = 25 << 20
	maxAttachments   = 256 << 20 // bytes of all of a session
	maxUpload        = 32 << 20  // bytes of a multipart body
	maxEncoded       = maxAttachment/3*4 + 64<<10
	uploadTime       = 5 * time.Minute
	attachmentFolder = "attachments"
)

var refPattern = lazyregexp.New(`^attachments/([A-Za-z0-9_-]{1,80}(\.[a-z0-9]{1,8})?)$`)

// Uploaded is an attachment as messages refer to it.
type Uploaded struct {
	Ref      string `json:"ref"`
	MimeType string `json:"mime_type" doc:"what it is, whatever it was said to be"`
	Name     string `json:"name,omitempty"`
	Size     int64  `json:"size"`
}

// kinds are the types that are told by their content, with their extensions. Any
// other content is application/octet-stream.
var kinds = map[string]string{
	"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp",
	"audio/wave": "wav", "audio/mpeg": "mp3", "audio/aiff": "aiff", "audio/basic": "au", "application/ogg": "ogg",
	"application/pdf": "pdf", "application/zip": "zip", "application/x-gzip": "gz", "text/plain": "txt", "text/html": "html", "text/xml": "xml",
}

// sniff tells what content is from its beginning (WHATWG MIME Sniffing).
func sniff(head []byte) (mimeType, ext string) {
	mimeType, _, _ = strings.Cut(http.DetectContentType(head), ";")
	ext, known := kinds[mimeType]
	if !known {
		return "application/octet-stream", "bin"
	}
	return mimeType, ext
}

// partType is the type of the part that an attachment makes.
func partType(mimeType string) string {
	switch kind, _, _ := strings.Cut(mimeType, "/"); kind {
	case "image", "audio":
		return kind
	}
	if mimeType == "application/ogg" {
		return "audio"
	}
	return "file"
}

// kindOf returns what an attachment of a session is.
func (s *Service) kindOf(id, ref string) (string, error) {
	if !refPattern().MatchString(ref) {
		return "", fs.ErrInvalid
	}
	f, err := s.cfg.Root.Open(path.Join(event.Folder(id), ref))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	mimeType, _ := sniff(head[:n])
	return mimeType, nil
}

// attach is POST /v1/sessions/{id}/attachments: a multipart form with
// one file, which is streamed to the disk, or JSON with base64.
func (s *Service) attach(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("session_id")
	if _, _, err := s.steer(r.Context(), id); err != nil {
		s.Refuse(w, r, err)
		return
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var up Uploaded
	switch {
	case err == nil && kind == "multipart/form-data" && r.Header.Get("Content-Encoding") == "":
		up, err = s.form(w, r, id, params["boundary"])
	case err == nil && kind == "application/json":
		up, err = s.encoded(r, id)
	default:
		err = api.Fail(http.StatusUnsupportedMediaType, "an attachment comes as multipart/form-data with a file, or as JSON {name?, data} with base64")
	}
	if err != nil {
		s.Refuse(w, r, err)
		return
	}
	api.Write(w, http.StatusCreated, up)
}

func (s *Service) form(w http.ResponseWriter, r *http.Request, id, boundary string) (Uploaded, error) {
	if boundary == "" {
		return Uploaded{}, api.Fail(http.StatusBadRequest, "the form has no boundary")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // a writer in memory knows none
	r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
	form, err := r.MultipartReader()
	if err != nil {
		return Uploaded{}, api.Fail(http.StatusBadRequest, "the form cannot be read")
	}
	for range 16 { // fields before the file
		p, err := form.NextPart()
		if err != nil {
			return Uploaded{}, unreadable(err)
		}
		if p.FileName() == "" && p.FormName() != "file" {
			continue
		}
		up, err := s.store(id, p.FileName(), p)
		if err != nil {
			return Uploaded{}, err
		}
		return up, nil
	}
	return Uploaded{}, api.Fail(http.StatusBadRequest, "the form has no file")
}

func unreadable(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return tooLargeError()
	}
	return api.Fail(http.StatusBadRequest, "the form has no file that can be read")
}

func tooLargeError() error {
	return api.Fail(http.StatusRequestEntityTooLarge, "an attachment has at most %d bytes", maxAttachment)
}

// uploads bounds the JSON uploads that are decoded at a time.
var uploads = make(chan struct{}, 4)

func (s *Service) encoded(r *http.Request, id string) (Uploaded, error) {
	data, refused := api.Read(r, maxEncoded)
	if refused != nil {
		return Uploaded{}, refused
	}
	// Behind reading: who sends slowly holds up nobody.
	select {
	case uploads <- struct{}{}:
		defer func() { <-uploads }()
	case <-r.Context().Done():
		return Uploaded{}, r.Context().Err()
	}
	var body struct {
		Name     string `json:"name"`
		MimeType string `json:"mime_type"` // is looked at, not believed
		Data     string `json:"data"`
	}
	if err := api.Unmarshal(data, &body); err != nil {
		return Uploaded{}, err
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(body.Data)
	if err != nil {
		return Uploaded{}, api.Fail(http.StatusBadRequest, "data is not base64 (RFC 4648 §4, padded)")
	}
	return s.store(id, body.Name, bytes.NewReader(raw))
}

// store streams an attachment to the disk, under a name of our own.
func (s *Service) store(id, name string, r io.Reader) (up Uploaded, err error) {
	if err := s.cfg.Sessions.Room(); err != nil {
		return up, err
	}
	dir := path.Join(event.Folder(id), attachmentFolder)
	if err := s.cfg.Root.MkdirAll(dir, 0o700); err != nil {
		return up, err
	}
	used, err := s.used(dir)
	if err != nil {
		return up, err
	}
	limit := min(maxAttachment, maxAttachments-used)
	base := "att_" + strings.ToLower(rand.Text())
	tmp := path.Join(dir, "."+base)
	f, err := s.cfg.Root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return up, err
	}
	head, from := new(bytes.Buffer), &source{r: r}
	n, err := io.Copy(f, io.TeeReader(io.LimitReader(from, limit+1), &firstBytes{head, 512}))
	serr := errors.Join(f.Sync(), f.Close())
	switch {
	case from.err != nil:
		err = unreadable(from.err)
	case err != nil: // the disk's
	case n > limit && limit < maxAttachment:
		err = api.Coded(http.StatusInsufficientStorage, "quota", "the session's %d bytes for attachments are full", maxAttachments)
	case n > limit:
		err = tooLargeError()
	case n == 0:
		err = api.Fail(http.StatusBadRequest, "the file is empty")
	default:
		err = serr
	}
	if err != nil {
		return up, errors.Join(err, s.cfg.Root.Remove(tmp))
	}
	mimeType, ext := sniff(head.Bytes())
	file := base + "." + ext
	if err := hostfile.Rename(s.cfg.Root, tmp, path.Join(dir, file)); err != nil {
		return up, err
	}
	s.cfg.Sessions.Saved(id, path.Join("sessions", dir, file))
	return Uploaded{attachmentFolder + "/" + file, mimeType, printable(path.Base(strings.ReplaceAll(name, `\`, "/"))), n}, nil
}

// source keeps why what is uploaded could not be read: an upload can fail on both sides.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// firstBytes keeps the beginning of what is written.
type firstBytes struct {
	buf  *bytes.Buffer
	left int
}

func (f *firstBytes) Write(p []byte) (int, error) {
	n := min(len(p), f.left)
	f.buf.Write(p[:n])
	f.left -= n
	return len(p), nil
}

// used returns how much is attached to a session.
func (s *Service) used(dir string) (n int64, err error) {
	entries, err := fs.ReadDir(s.cfg.Root.FS(), dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n, nil
}

// attachment is GET /v1/sessions/{id}/attachments/{name}. It is never shown, only
// downloaded.
func (s *Service) attachment(w http.ResponseWriter, r *http.Request) {
	id, ref := r.PathValue("session_id"), attachmentFolder+"/"+r.PathValue("name")
	if _, _, err := s.find(id); err != nil {
		s.Refuse(w, r, err)
		return
	}
	none := api.Fail(http.StatusNotFound, "attachment not found in this session")
	mimeType, err := s.kindOf(id, ref)
	if err != nil {
		s.Refuse(w, r, none)
		return
	}
	f, err := s.cfg.Root.Open(path.Join(event.Folder(id), ref))
	if err != nil {
		s.Refuse(w, r, none)
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		s.Refuse(w, r, none)
		return
	}
	download(w, r.PathValue("name"), mimeType)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(uploadTime)) // a writer in memory knows none
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// download says that what follows is to be stored, and never run or shown.
func download(w http.ResponseWriter, name, mimeType string) {
	h := w.Header()
	h.Set("Content-Type", mimeType)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
}

var artifactPattern = lazyregexp.New(`^art_[A-Z2-7]{26}(@[a-z0-9-]{1,63})?$`)

// artifact is GET /v1/sessions/{id}/artifacts/{artifact_id}: what a tool has left.
func (s *Service) artifact(w http.ResponseWriter, r *http.Request) {
	id, art := r.PathValue("session_id"), r.PathValue("artifact_id")
	if _, _, err := s.find(id); err != nil {
		s.Refuse(w, r, err)
		return
	}
	page := make([]byte, 256<<10)
	n, size, err := 0, int64(0), tool.ErrNoArtifact
	if artifactPattern().MatchString(art) {
		n, size, err = s.cfg.Artifacts.ReadAt(id, art, page, 0)
	}
	if errors.Is(err, tool.ErrNoArtifact) {
		err = api.Fail(http.StatusNotFound, "artifact not found in this session")
	}
	if err != nil {
		s.Refuse(w, r, err)
		return
	}
	mimeType, ext := sniff(page[:min(n, 512)])
	download(w, art+"."+ext, mimeType)
	w.Header().Set("Content-Length", fmt.Sprint(size))
	rc := http.NewResponseController(w)
	for at := int64(0); ; {
		_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer in memory knows none
		if _, err := w.Write(page[:n]); err != nil || r.Method == http.MethodHead {
			return
		}
		if at += int64(n); at >= size || n == 0 {
			return
		}
		if n, _, err = s.cfg.Artifacts.ReadAt(id, art, page, at); err != nil {
			panic(http.ErrAbortHandler) // the client sees that it is cut off
		}
	}
}
