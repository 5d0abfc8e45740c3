package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// camera registers a tool that returns a picture, and another file.
func (w *world) camera(size int) {
	w.t.Helper()
	x, err := tool.New(tool.Definition{Name: "shoot", Kind: tool.KindRead, Description: "takes a picture"}, func(_ context.Context, c tool.Call, a sleepArgs) (tool.Result, error) {
		r := tool.OK("a picture", tool.Text("[image of "+a.Name+"]"))
		for mime, data := range map[string]string{"image/png": "PNG " + a.Name + strings.Repeat(".", size), "application/zip": "ZIP"} {
			art, err := w.Artifacts.Put(c, mime, []byte(data))
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

// seen returns the pictures of a request's results.
func seen(p *clipping, n int) (out []string) {
	for _, m := range p.requests[n].History {
		for _, i := range m.Images {
			out = append(out, fmt.Sprintf("%s %s %.7s", m.Role, i.MimeType, i.Data))
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
		w.camera(4 << 20)
		w.run("s1", "look")
		equal(t, seen(p, 5), "tool image/png PNG 002", "tool image/png PNG 003", "tool image/png PNG 004")
	})
	p = &clipping{tool: "shoot", answers: shots(1)}
	withClips(t, "", p, func(t *testing.T, w *world) {
		w.camera(6 << 20)
		w.run("s1", "look")
		equal(t, seen(p, 1))
	})
	p = &clipping{tool: "shoot", answers: shots(30)}
	withClipsIn(t, "", p, map[string]string{"providers.test-clipping.context_window": `16384`}, func(t *testing.T, w *world) {
		w.camera(0)
		w.run("s1", "look")
		if got := seen(p, 30); len(got) == 0 || len(got) > 14 || got[len(got)-1] != "tool image/png PNG 029" {
			t.Errorf("the last request has the pictures %q, want the last few", got)
		}
	})
}
