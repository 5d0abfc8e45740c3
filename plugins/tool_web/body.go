package tool_web //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"compress/gzip"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxPicture is the size of a picture that services take.
const maxPicture = 3_750_000

// pictures are the types that models see.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// texts are types of texts that do not begin with text/ or end in +xml or +json.
var texts = []string{"application/json", "application/xml", "application/javascript", "application/ecmascript", "application/x-javascript", "application/x-sh", "application/x-ndjson", "application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/graphql", "application/rtf", "application/x-httpd-php"}

// bom says of a text how it is encoded, and is not part of it.
const bom = "\ufeff"

// read returns the result of an answer.
func (v *visit) read(res *http.Response) (tool.Result, error) {
	data, more, err := body(res)
	if err != nil {
		return tool.Fail(tool.ErrTool, "%s could not be read: %s", shown(v.at), cut.Line(err.Error(), 500)), nil
	}
	kind, declared := typeOf(res.Header.Get("Content-Type"), data)
	good := res.StatusCode >= 200 && res.StatusCode < 300
	if good && slices.Contains(pictures, kind) {
		return v.picture(kind, data, more)
	}
	page := kind == "text/html" || kind == "application/xhtml+xml"
	if !page && !isText(kind) {
		if good {
			return tool.Fail(tool.ErrTool, "%s has the type %s, which is neither text nor a picture that models see: a command can download it", shown(v.at), cut.Line(kind, 100)), nil
		}
		data, more = nil, false
	}
	text, title := decoded(data, declared, more), ""
	if page {
		text, title = readable(text, v.at)
	}
	head := "address: " + v.at.String() + "\n"
	if title != "" {
		head += "title: " + title + "\n"
	}
	if more {
		text += fmt.Sprintf("\n\n[it is longer: only its first %d bytes were read]", maxBody)
	}
	if strings.TrimSpace(text) == "" {
		text = "[it has no text]"
		if page {
			text = "[the page has no text; it may be made by scripts, which are not run]"
		}
	}
	blocks := []tool.Block{tool.Text(head + "\n" + text)}
	if !good {
		out := tool.Fail(tool.ErrTool, "%s answered with %d %s", v.at.Host, res.StatusCode, http.StatusText(res.StatusCode))
		out.Display = append([]tool.Block{tool.Text(out.Brief)}, blocks...)
		return out, nil
	}
	what := kind
	if title != "" {
		what = title
	}
	return tool.OK(fmt.Sprintf("%s: %s", v.at.Host, what), blocks...), nil
}

// body reads an answer; more says that it goes on.
func body(res *http.Response) (data []byte, more bool, err error) {
	var from io.Reader = res.Body
	switch coding := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		if from, err = gzip.NewReader(res.Body); err != nil {
			return nil, false, err
		}
	default:
		return nil, false, fmt.Errorf("it is encoded as %.40q, which nobody has asked for", coding)
	}
	data, err = io.ReadAll(io.LimitReader(from, maxBody+1)) //nolint:forbidigo // bounded
	if err != nil {
		return nil, false, err
	}
	if len(data) > maxBody {
		return data[:maxBody], true, nil
	}
	return data, false, nil
}

// typeOf returns the type of content, and the charset that its header declares. A server that does
// not know says application/octet-stream or nothing, or text/plain of what is not.
func typeOf(header string, data []byte) (kind, charset string) {
	kind, params, err := mime.ParseMediaType(header)
	if err != nil && kind == "" {
		kind = "application/octet-stream"
	}
	sniffed, _, _ := mime.ParseMediaType(http.DetectContentType(data)) // it is well formed
	switch {
	case slices.Contains(pictures, sniffed):
		kind = sniffed
	case kind == "application/octet-stream", kind == "text/plain" && sniffed == "application/octet-stream" && params["charset"] == "":
		kind = sniffed
	}
	return kind, params["charset"]
}

func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || slices.Contains(texts, kind)
}

// decoded returns a text in UTF-8, by the charset that its header declares, or else the text itself
// (a byte order mark, or a page's meta element). Without either it is UTF-8 if it can be;
// only a text with more behind it ends within a character.
func decoded(data []byte, declared string, more bool) string {
	kind := "text/html"
	if declared != "" {
		kind += "; charset=" + declared
	}
	encoding, _, certain := charset.DetermineEncoding(data[:min(len(data), 1024)], kind)
	whole := data
	if more {
		whole = cut.Whole(data)
	}
	if !certain && utf8.Valid(whole) {
		return strings.TrimPrefix(string(whole), bom)
	}
	out, err := encoding.NewDecoder().Bytes(data)
	if err != nil {
		out = data // it is shown as far as it is text
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(out), "\uFFFD"), bom)
}

// picture keeps a picture, which the model sees with the result.
func (v *visit) picture(kind string, data []byte, more bool) (tool.Result, error) {
	if more || len(data) > maxPicture {
		return tool.Fail(tool.ErrTool, "%s is a picture of more than %d bytes, which models do not see: a command can download it", shown(v.at), maxPicture), nil
	}
	a, err := v.p.artifacts.Put(v.call, kind, data)
	if err != nil {
		return tool.Result{}, err
	}
	out := tool.OK(v.at.Host+": a picture", tool.Text(fmt.Sprintf("address: %s\n\n[a picture, %s, artifact %s]", v.at, kind, a.ID)))
	out.Artifacts = []tool.Artifact{a}
	return out, nil
}
