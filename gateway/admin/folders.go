package admin

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/folder"
)

type (
	// Item is one thing that a folder brings.
	Item struct {
		Kind string `json:"kind" enum:"check,server,instructions,skill,agent,hook"`
		Name string `json:"name,omitempty"`
		Runs string `json:"runs,omitempty" doc:"the command line or the address, exactly, and what of its sandbox is enforced here"`
	}
	// TrustedFolder is a folder that somebody trusts.
	TrustedFolder struct {
		Folder string `json:"folder" doc:"absolute path, without symbolic links"`
		Items  []Item `json:"items" doc:"what was shown"`
		Digest string `json:"digest" doc:"of the folder and its items"`
		// Changed says that the folder brings something else now, and is restricted.
		Changed bool      `json:"changed"`
		By      string    `json:"by"`
		At      time.Time `json:"at"`
	}
	// FolderView is the present state of a folder, which is shown before it is trusted.
	FolderView struct {
		Folder  string `json:"folder" doc:"absolute path, without symbolic links"`
		Trusted bool   `json:"trusted"`
		Items   []Item `json:"items" doc:"what trusting it lets run"`
		Added   []Item `json:"added,omitempty" doc:"since it was trusted"`
		Removed []Item `json:"removed,omitempty" doc:"since it was trusted"`
		Allowed []Item `json:"allowed,omitempty" doc:"servers that the user lets do more than the folder says, with all that they may do"`
		Digest  string `json:"digest" doc:"of the folder and its items; trusting it takes this"`
	}
	inFolder struct {
		Path string `query:"path" required:"true" minLength:"1" maxLength:"4096" doc:"absolute path"`
	}
)

func items(all []folder.Item) []Item {
	out := make([]Item, len(all))
	for i, x := range all {
		out[i] = Item{string(x.Kind), x.Name, x.Runs}
	}
	return out
}

func (a *API) folderRoutes() {
	r := routes{a, "folders", a.cfg.Folders != nil, "folders"}
	handle(r, "GET", "/api/folders", "listFolders", api.For(auth.ConfigRead), "List trusted folders", http.StatusOK, func(context.Context, *none) (*struct{ Body []TrustedFolder }, error) {
		all, err := a.cfg.Folders.List()
		if err != nil {
			return nil, err
		}
		out := make([]TrustedFolder, len(all))
		for i, x := range all {
			st, err := a.cfg.Folders.Status(x.Folder)
			out[i] = TrustedFolder{x.Folder, items(x.Items), x.Digest, err != nil || !st.Trusted, x.By, x.At}
		}
		return &struct{ Body []TrustedFolder }{out}, nil
	})
	handle(r, "GET", "/api/folders/look", "lookAtFolder", api.For(auth.ConfigWrite), "Show the programs that trusting a folder would let run", http.StatusOK, func(_ context.Context, in *inFolder) (*struct{ Body FolderView }, error) {
		st, err := a.look(in.Path)
		if err != nil {
			return nil, err
		}
		shown := st.AsShown()
		return &struct{ Body FolderView }{FolderView{st.Folder, st.Trusted, items(shown.Items), items(shown.Added), items(shown.Removed), items(shown.Allowed), st.Digest()}}, nil
	})
	handle(r, "POST", "/api/folders", "trustFolder", api.For(auth.ConfigWrite), "Trust a folder as shown", http.StatusOK, func(ctx context.Context, in *struct {
		Body struct {
			Path   string `json:"path" minLength:"1" maxLength:"4096"`
			Digest string `json:"digest" minLength:"64" maxLength:"64" doc:"of what was shown"`
		}
	},
	) (*struct{ Body TrustedFolder }, error) {
		st, err := a.look(in.Body.Path)
		if err != nil {
			return nil, err
		}
		if st.Digest() != in.Body.Digest {
			return nil, api.Fail(http.StatusConflict, "the folder %s has changed since it was shown: look at it again", st.Folder)
		}
		rec, err := a.cfg.Folders.Trust(st.Folder, in.Body.Digest, auth.FromContext(ctx).Actor())
		switch {
		case errors.Is(err, folder.ErrChanged):
			return nil, api.Fail(http.StatusConflict, "the folder %s has changed since it was shown: look at it again", st.Folder)
		case errors.Is(err, folder.ErrTooMuch):
			return nil, api.Fail(http.StatusUnprocessableEntity, "%v", err)
		case err != nil:
			return nil, err
		}
		return &struct{ Body TrustedFolder }{TrustedFolder{rec.Folder, items(rec.Items), rec.Digest, false, rec.By, rec.At}}, nil
	})
	handle(r, "DELETE", "/api/folders", "revokeFolder", api.For(auth.ConfigWrite), "Stop trusting a folder", http.StatusNoContent, func(ctx context.Context, in *inFolder) (*none, error) {
		_, err := a.cfg.Folders.Revoke(in.Path, auth.FromContext(ctx).Actor())
		if errors.Is(err, folder.ErrUnknown) {
			return nil, api.Fail(http.StatusNotFound, "the folder %s is not trusted", in.Path)
		}
		return nil, err
	})
}

func (a *API) look(path string) (folder.Status, error) {
	if !filepath.IsAbs(path) {
		return folder.Status{}, api.Fail(http.StatusBadRequest, "the path of the folder must be absolute")
	}
	st, err := a.cfg.Folders.Status(path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, api.Fail(http.StatusNotFound, "there is no folder %s", path)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return st, api.Fail(http.StatusUnprocessableEntity, "%s is not a folder", path)
	}
	if err != nil {
		return st, api.Fail(http.StatusUnprocessableEntity, "%v", err)
	}
	return st, nil
}
