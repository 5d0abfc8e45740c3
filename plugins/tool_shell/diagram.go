package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/kernel/tool"
)

type diagramArgs struct {
	Source string `json:"source" jsonschema:"what to draw, in the language of Graphviz (dot)"`
}

func (p *Plugin) diagram(ctx context.Context, call tool.Call, a diagramArgs) (tool.Result, error) {
	if len(a.Source) == 0 || len(a.Source) > maxCommand {
		return tool.Fail(tool.ErrValidation, "the source must have between 1 and %d bytes", maxCommand), nil
	}
	s, err := p.settle(call.SessionID, "", asDrawing)
	if err != nil {
		return tool.Fail(tool.ErrUnavailable, "%v", err), nil
	}
	defer s.at.close()
	call.Progress = nil // the picture is not text that could be streamed
	r, err := p.run(ctx, call, s, "command -v dot >/dev/null || exit 127; exec dot -Tsvg", strings.NewReader(a.Source), 20*time.Second, nil)
	if err != nil {
		return ended(r.result, err)
	}
	kind, data, note := "image/svg+xml", []byte(r.output), "drawn"
	switch {
	case r.code == 127:
		kind, data, note = "text/vnd.graphviz", []byte(a.Source), "Graphviz is not installed on this machine: the source is kept"
	case r.code != 0 || r.timedOut:
		return r.result(), nil
	}
	art, err := p.cfg.Artifacts.Put(call, kind, data)
	if err != nil {
		return tool.Result{}, err
	}
	res := tool.OK(note, tool.Text(note+", as artifact "+art.ID))
	res.Artifacts = []tool.Artifact{art}
	return res, nil
}
