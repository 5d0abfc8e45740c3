package tool_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Answers, progress and artifacts of a tool contain no secrets, even where a result is
// cut.
func TestResultsHaveNoSecrets(t *testing.T) {
	const secret = "k3y-value-0123456789"
	s := new(masked.Secrets)
	s.Declare(secret)
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	store := tool.NewStore(dir)
	store.Secrets = s
	shared := []tool.Block{tool.Text("is " + secret)} // the tool's own
	x := strings.Repeat("x", tool.MaxModelText*3/4-600)
	long := x + strings.Repeat(secret, 60) + x // uncovered, the cut would be in one of them
	d, reg := setup(t, tool.DispatcherConfig{Secrets: s, Artifacts: store},
		rawTool("say", func(_ context.Context, c tool.Call) (tool.Result, error) {
			for i := range secret {
				c.Progress(tool.Progress{Message: secret[:i]})
				c.Progress(tool.Progress{Message: secret[i:]})
			}
			return tool.Result{OK: true, Brief: "is " + secret, Display: shared, Structured: json.RawMessage(`{"k":"` + secret + `"}`), Detail: json.RawMessage(`["` + base64.StdEncoding.EncodeToString([]byte(secret)) + `"]`)}, nil
		}),
		rawTool("fail", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("no " + secret)
		}),
		rawTool("long", func(context.Context, tool.Call) (tool.Result, error) { return tool.OK("long", tool.Text(long)), nil }),
	)
	var told []string
	res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Caller: tool.LocalOwner, ID: "c1", Name: "say", SessionID: "s", Origin: tool.OriginLoop, Progress: func(p tool.Progress) { told = append(told, p.Message) }})
	if res.Brief != "is ****" || res.Text() != "is ****" || string(res.Structured) != `{"k":"****"}` || strings.Contains(string(res.Detail), "azN5LXZhb") {
		t.Errorf("the result is %+v", res)
	}
	if shared[0].Text != "is "+secret {
		t.Errorf("the tool's own block was changed to %q", shared[0].Text)
	}
	if all := strings.Join(told, ""); len(told) != 2*len(secret) || strings.Contains(all, secret[4:14]) {
		t.Errorf("the progress is %q", told)
	}
	if res := call(d, reg, "fail", "{}"); strings.Contains(res.Text()+res.Brief, secret) || !strings.Contains(res.Text(), "no ****") {
		t.Errorf("the error is %+v", res)
	}
	res = call(d, reg, "long", "{}")
	if text := res.Text(); !strings.Contains(text, "truncated") || strings.Contains(text, "k3y-") || strings.Contains(text, "456789") {
		t.Error("a part of the secret is where the result was cut")
	}
	if len(res.Artifacts) != 1 {
		t.Fatalf("the artifacts are %+v, want one", res.Artifacts)
	}
	kept := make([]byte, tool.MaxArtifact)
	n, _, err := store.ReadAt("s", res.Artifacts[0].ID, kept, 0)
	if err != nil || strings.Contains(string(kept[:n]), "k3y-") || !strings.Contains(string(kept[:n]), "****") {
		t.Errorf("the artifact has the secret: %v", err)
	}
}
