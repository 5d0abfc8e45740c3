package kernel

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Bounds of the attachments that a model gets with a message.
const (
	maxImage        = 3_750_000 // 5 MB in base64, which is what services count
	maxImages       = 8
	maxAttachedText = 64 << 10
)

var attachmentRef = lazyregexp.New(`^attachments/[A-Za-z0-9_-]{1,80}(\.[A-Za-z0-9]{1,16})?$`)

// attached returns a message as models read it: pictures of the common types as
// pictures, texts as text in a frame, and for other files their name.
func (k *Kernel) attached(session string, m event.Message) event.Message {
	if m.Role == "tool" {
		return k.pictured(session, m)
	}
	var b strings.Builder
	b.WriteString(m.Content)
	for _, a := range m.Attachments {
		what := fmt.Sprintf("%s (%s, %s)", cmp.Or(a.Name, a.Ref), a.Ref, a.MimeType)
		picture, text := isPicture(a.MimeType), isText(a.MimeType)
		limit := int64(maxAttachedText)
		if picture {
			limit = maxImage
		}
		if (!picture && !text) || (picture && len(m.Images) == maxImages) {
			fmt.Fprintf(&b, "\n[attached: %s]", what)
			continue
		}
		data, whole, err := k.attachment(session, a.Ref, limit)
		switch {
		case err != nil:
			fmt.Fprintf(&b, "\n[attached, and cannot be read: %s]", what)
		case picture && !whole:
			fmt.Fprintf(&b, "\n[attached, and too large to be shown: %s]", what)
		case picture:
			mime, ok := pictureType(data)
			if !ok {
				fmt.Fprintf(&b, "\n[attached, and not a picture that models take: %s]", what)
				continue
			}
			m.Images = append(m.Images, event.Image{MimeType: mime, Data: data})
		default:
			shown := strings.ToValidUTF8(string(data), "\uFFFD")
			if !whole {
				shown += "\n[… the rest is left out]"
			}
			b.WriteString("\n" + tool.Framed("attached: "+what, path.Base(a.Ref), shown))
		}
	}
	m.Content = b.String()
	return m
}

// pictured returns a result with its pictures, MIS-5. Its text names each, so one that cannot be
// read is left out.
func (k *Kernel) pictured(session string, m event.Message) event.Message {
	for _, a := range m.Attachments {
		if !isPicture(a.MimeType) {
			continue
		}
		data, whole, err := k.artifact(session, a.Ref)
		if err != nil || !whole {
			continue
		}
		if mime, ok := pictureType(data); ok {
			m.Images = append(m.Images, event.Image{MimeType: mime, Data: data})
		}
	}
	return m
}

func isPicture(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

func isText(mime string) bool {
	mime, _, _ = strings.Cut(mime, ";")
	return strings.HasPrefix(mime, "text/") || mime == "application/json"
}

// artifact reads an artifact that is small enough for a picture.
func (k *Kernel) artifact(session, id string) (data []byte, whole bool, err error) {
	_, size, err := k.Artifacts.ReadAt(session, id, nil, 0)
	if err != nil || size > maxImage {
		return nil, false, err
	}
	data = make([]byte, size)
	n, _, err := k.Artifacts.ReadAt(session, id, data, 0)
	return data, int64(n) == size, err
}

// attachment reads an attachment of a session or, for a sub-agent, of its parent.
func (k *Kernel) attachment(session, ref string, limit int64) (data []byte, whole bool, err error) {
	if !attachmentRef().MatchString(ref) {
		return nil, false, fmt.Errorf("%q is not an attachment", ref)
	}
	root := event.Root(session)
	f, err := k.sessions.Open(path.Join(event.Folder(root), ref))
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	data, err = io.ReadAll(io.LimitReader(f, limit+1)) //nolint:forbidigo // bounded
	whole = int64(len(data)) <= limit
	return data[:min(int64(len(data)), limit)], whole, err
}
