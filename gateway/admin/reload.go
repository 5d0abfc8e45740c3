package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// Files reads the files again that configure yaya.
type Files interface {
	// Reload takes over what has changed in the files, and says what that was.
	Reload(ctx context.Context) Reloaded
	// Notices returns the files whose present content is not in use.
	Notices() []Notice
}

// Reloaded lists the changes in files.
type Reloaded struct {
	Changes []FileChange `json:"changes"`
	Refused []Notice     `json:"refused" doc:"files that are not taken over: what was read before holds"`
	Waiting []string     `json:"waiting,omitempty" doc:"settings that have changed and hold from the next start of yaya on"`
}

// FileChange is a server or a setting that has changed in a file.
type FileChange struct {
	File   string `json:"file"`
	Kind   string `json:"kind" enum:"server,setting"`
	Name   string `json:"name"`
	Change string `json:"change" enum:"added,changed,removed"`
	Effect string `json:"effect" enum:"taken,restart,overridden" doc:"taken: it holds now; restart: from the next start of yaya on; overridden: something else decides"`
	Note   string `json:"note,omitempty"`
}

// Kinds and effects of a [FileChange].
const (
	KindServer       = "server"
	KindSetting      = "setting"
	EffectTaken      = "taken"
	EffectRestart    = "restart"
	EffectOverridden = "overridden"
)

// Notice is a file whose present content is not in use, and why.
type Notice struct {
	File  string    `json:"file"`
	Error string    `json:"error" doc:"with the place, where it can be told"`
	Since time.Time `json:"since"`
}

func (a *API) fileRoutes() {
	r := routes{a, "config", a.cfg.Files != nil, "files"}
	handle(r, "POST", "/api/reload", "reload", api.For(auth.ConfigWrite), "Reload mcp.json and config.toml", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body Reloaded }, error) {
		return &struct{ Body Reloaded }{a.cfg.Files.Reload(ctx)}, nil
	})
	handle(r, "GET", "/api/notices", "listNotices", api.For(auth.ConfigRead), "List files whose current content is not in use, and why", http.StatusOK, func(context.Context, *none) (*struct{ Body []Notice }, error) {
		return &struct{ Body []Notice }{a.cfg.Files.Notices()}, nil
	})
}
