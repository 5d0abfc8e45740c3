package kernel_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// camera registers a tool that returns a picture, and another file.
func (w *world) camera(size int) {
	w.t.Helper()
	x, err := tool.New(tool.Definition{Name: "shoot", Kind: tool.KindRead, Description: "takes a picture"}, func(_ context.Context, c tool.Call, a sleepArgs) (tool.Result, error) {
		r := tool.OK("a picture", tool.Text("[image of "+a.Name+"]"))
		for mime, data := range map[string][]byte{"image/png": picture(w.t, size, a.Name), "application/zip": []byte("ZIP")} {
			art, err := w.Artifacts.Put(c, mime, data)
			if err != nil {
				return tool.Result{}, err
			}
			r.Artifacts = append(r.Artifacts, art)
		}
		return r, nil
	})
	if err == nil {
		err = w.Tools.Register(x)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// picture returns one of so many bytes at least, which end with its name.
func picture(t *testing.T, size int, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	b.WriteString(strings.Repeat(".", size) + name)
	return b.Bytes()
}

// seen returns the pictures of a request's results.
func seen(p *clipping, n int) (out []string) {
	for _, m := range p.requests[n].History {
		for _, i := range m.Images {
			out = append(out, fmt.Sprintf("%s %s PNG %s", m.Role, i.MimeType, i.Data[len(i.Data)-3:]))
		}
	}
	return out
}

// MIS-5: a picture that a tool returns reaches the model as a picture, even after a restart.
func TestPicturesOfTools(t *testing.T) {
	dir := t.TempDir()
	p := &clipping{tool: "shoot", answers: []clip{{args: `{"name":"one"}`, stop: event.StopToolCalls}, {args: `{"name":"two"}`, stop: event.StopToolCalls}, {text: "done"}}}
	withClips(t, dir, p, func(t *testing.T, w *world) {
		w.camera(0)
		w.run("s1", "look")
		equal(t, seen(p, 1), "tool image/png PNG one")
		equal(t, seen(p, 2), "tool image/png PNG one", "tool image/png PNG two")
	})
	p = &clipping{answers: []clip{{text: "yes"}}}
	withClips(t, dir, p, func(t *testing.T, w *world) {
		w.run("s1", "and?")
		equal(t, seen(p, 0), "tool image/png PNG one", "tool image/png PNG two")
	})
}

// MIS-3: a model that takes no pictures gets none, by the catalogue or by the settings of its provider,
// and is told so.
func TestPicturesForBlindModels(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]string
		want     []string
	}{
		"catalogue": {map[string]string{"providers.test-clipping.model": `"o3-mini"`}, nil},
		"settings":  {map[string]string{"providers.test-clipping.images": `false`}, nil},
		"override":  {map[string]string{"providers.test-clipping.model": `"o3-mini"`, "providers.test-clipping.images": `true`}, []string{"tool image/png PNG one"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &clipping{tool: "shoot", answers: []clip{{args: `{"name":"one"}`, stop: event.StopToolCalls}, {text: "done"}}}
			withClipsIn(t, "", p, tc.settings, func(t *testing.T, w *world) {
				w.camera(0)
				w.run("s1", "look")
				equal(t, seen(p, 1), tc.want...)
				last := p.requests[1].History
				if told := strings.Contains(last[len(last)-1].Content, "[1 picture is not shown: this model takes no pictures]"); told != (len(tc.want) == 0) {
					t.Errorf("the result is %q, want it to say whether its picture is shown", last[len(last)-1].Content)
				}
			})
		})
	}
}

// MIS-5, MIS-2: the pictures of a request are bounded, the newest count, and they are the first
// to go when the window is full. One that is too large stays out.
func TestPicturesAreBounded(t *testing.T) {
	shots := func(n int) (out []clip) {
		for i := range n {
			out = append(out, clip{args: fmt.Sprintf(`{"name":"%03d"}`, i), stop: event.StopToolCalls})
		}
		return append(out, clip{text: "done"})
	}
	p := &clipping{tool: "shoot", answers: shots(5)}
	withClips(t, "", p, func(t *testing.T, w *world) {
		w.camera(3_500_000)
		w.run("s1", "look")
		equal(t, seen(p, 5), "tool image/png PNG 002", "tool image/png PNG 003", "tool image/png PNG 004")
	})
	p = &clipping{tool: "shoot", answers: shots(1)}
	withClips(t, "", p, func(t *testing.T, w *world) {
		w.camera(4 << 20)
		w.run("s1", "look")
		equal(t, seen(p, 1))
	})
	p = &clipping{tool: "shoot", answers: shots(30)}
	withClipsIn(t, "", p, map[string]string{"providers.test-clipping.context_window": `8192`}, func(t *testing.T, w *world) {
		w.camera(0)
		w.run("s1", "look")
		if got := seen(p, 30); len(got) == 0 || len(got) > 16 || got[len(got)-1] != "tool image/png PNG 029" {
			t.Errorf("the last request has the pictures %q, want the last few", got)
		}
	})
}

// MIS-5: pictures that services refuse are not sent, since each further request of the session would have
// it: other bytes, wrong types, sides that are too long. The type is that of the bytes.
func TestPictureTypes(t *testing.T) {
	webp := func(kind string, rest ...byte) []byte {
		return append(append([]byte("RIFF\x1e\x00\x00\x00WEBP"+kind), rest...), make([]byte, 32)...)
	}
	var long bytes.Buffer
	if err := png.Encode(&long, image.NewGray(image.Rect(0, 0, 8001, 1))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		mime string // "" for none
	}{
		"png":       {picture(t, 0, ""), "image/png"},
		"webp":      {webp("VP8 ", 0, 0, 0, 0, 0, 0, 0, 0x9d, 0x01, 0x2a, 2, 0, 3, 0), "image/webp"},
		"lossless":  {webp("VP8L", 0, 0, 0, 0, 0x2f, 1, 0x40, 0, 0), "image/webp"},
		"extended":  {webp("VP8X", 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 9, 0, 0), "image/webp"},
		"too long":  {long.Bytes(), ""},
		"long webp": {webp("VP8X", 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 9, 0, 0), ""},
		"junk":      {[]byte("PNG"), ""},
		"nothing":   {nil, ""},
		"cut":       {picture(t, 0, "")[:20], ""},
		"no sides":  {webp("VP8 "), ""},
	} {
		mime, ok := kernel.PictureType(c.data)
		if ok != (c.mime != "") || (ok && mime != c.mime) {
			t.Errorf("%s: got %q, %v, want %q", name, mime, ok, c.mime)
		}
	}
}
