package sessions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/mention"
	"github.com/yaya-ai/yaya/kernel/tool"
)

type (
	// InServer names a server of a session.
	InServer struct {
		InSession
		Server string `path:"server" maxLength:"256" doc:"the name of an MCP server"`
	}
	inOffers struct {
		InServer
		Prefix string `query:"prefix" maxLength:"8192" doc:"prefix of the URIs or names to list"`
	}
	outServers struct {
		Body struct {
			Servers []mention.Server `json:"servers"`
		}
	}
	outResources struct {
		Body struct {
			Resources []mention.Resource `json:"resources"`
			More      int                `json:"more,omitempty" doc:"how many others there are"`
		}
	}
	outPrompts struct {
		Body struct {
			Prompts []mention.Prompt `json:"prompts"`
			More    int              `json:"more,omitempty" doc:"how many others there are"`
		}
	}
	inResource struct {
		InServer
		Body struct {
			URI string `json:"uri" minLength:"1" maxLength:"8192"`
		}
	}
	inPrompt struct {
		InServer
		Body struct {
			Name      string            `json:"name" minLength:"1" maxLength:"8192" doc:"as the server has it"`
			Arguments map[string]string `json:"arguments,omitempty"`
		}
	}
	outPrompt struct {
		Body struct {
			Text string `json:"text" doc:"text of a message: a line that names the prompt and the server, then the messages of the prompt; messages of other roles are quoted"`
		}
	}
)

// mentionRoutes declares what a user adds to messages from MCP servers. Lists need no more than the
// right to instruct the agent, which can list the same. yaya does not ask about a read or a prompt, so
// these need the right to approve, too.
func (s *Service) mentionRoutes() {
	const at = "/v1/sessions/{session_id}/servers"
	api.Handle(s.API, op("GET", at, "listSessionServers", auth.SessionsWrite, "List the connected MCP servers that the session may use", http.StatusOK), func(ctx context.Context, in *InSession) (*outServers, error) {
		call, err := s.offered(ctx, in.SessionID)
		out := new(outServers)
		out.Body.Servers = []mention.Server{}
		if err == nil && s.cfg.Servers != nil {
			out.Body.Servers = s.cfg.Servers.Servers(ctx, call)
		}
		return out, err
	})
	api.Handle(s.API, op("GET", at+"/{server}/resources", "listSessionResources", auth.SessionsWrite, "List resources of an MCP server, 200 at most", http.StatusOK), func(ctx context.Context, in *inOffers) (*outResources, error) {
		call, err := s.offers(ctx, in.InServer)
		if err != nil {
			return nil, err
		}
		out := new(outResources)
		out.Body.Resources, out.Body.More, err = s.cfg.Servers.Resources(ctx, call, in.Server, in.Prefix)
		return out, unlisted(err)
	})
	api.Handle(s.API, op("GET", at+"/{server}/prompts", "listSessionPrompts", auth.SessionsWrite, "List prompts of an MCP server, 200 at most", http.StatusOK), func(ctx context.Context, in *inOffers) (*outPrompts, error) {
		call, err := s.offers(ctx, in.InServer)
		if err != nil {
			return nil, err
		}
		out := new(outPrompts)
		out.Body.Prompts, out.Body.More, err = s.cfg.Servers.Prompts(ctx, call, in.Server, in.Prefix)
		return out, unlisted(err)
	})
	api.Handle(s.API, approving(op("POST", at+"/{server}/resources", "attachResource", auth.SessionsWrite, "Read a resource of an MCP server and keep its text as an attachment, named SERVER-RESOURCE; the caller also needs approvals:answer", http.StatusCreated)), func(ctx context.Context, in *inResource) (*struct{ Body Uploaded }, error) {
		up, err := s.attachResource(ctx, in)
		return &struct{ Body Uploaded }{up}, err
	})
	api.Handle(s.API, approving(op("POST", at+"/{server}/prompts", "getPrompt", auth.SessionsWrite, "Get a prompt of an MCP server as the text of a message; the caller also needs approvals:answer", http.StatusOK)), func(ctx context.Context, in *inPrompt) (*outPrompt, error) {
		call, err := s.taken(ctx, in.InServer)
		if err != nil {
			return nil, err
		}
		res := s.cfg.Servers.Prompt(ctx, call, in.Server, in.Body.Name, in.Body.Arguments)
		if !res.OK {
			return nil, unread(res)
		}
		out := new(outPrompt)
		out.Body.Text = res.Text()
		return out, nil
	})
}

// approving is an operation that stands for the approval of a call.
func approving(o api.Operation) api.Operation {
	o.Note = "also needs `approvals:answer`"
	return o
}

// offered names the user of a request, and the session.
func (s *Service) offered(ctx context.Context, id string) (tool.Call, error) {
	if _, _, err := s.steer(ctx, id); err != nil {
		return tool.Call{}, err
	}
	who := auth.FromContext(ctx)
	return tool.Call{
		ID: "call_" + rand.Text(), SessionID: id, Origin: tool.OriginAPI,
		Caller: tool.Caller{Principal: who.Name(), Has: who.Has, Servers: who.Servers()},
	}, nil
}

// offers is offered for what a server has.
func (s *Service) offers(ctx context.Context, in InServer) (tool.Call, error) {
	call, err := s.offered(ctx, in.SessionID)
	if err == nil && s.cfg.Servers == nil {
		err = api.Fail(http.StatusNotFound, "%v %q", mention.ErrNoServer, in.Server)
	}
	return call, err
}

// taken is offers for what counts as approved by the user.
func (s *Service) taken(ctx context.Context, in InServer) (tool.Call, error) {
	if err := auth.Allow(auth.FromContext(ctx), auth.ApprovalsAnswer); err != nil {
		return tool.Call{}, err
	}
	return s.offers(ctx, in)
}

// attachResource keeps a resource with a session. Its text begins with a line of ours: the model learns
// whose text it is, and the text is a text whatever its first bytes are.
func (s *Service) attachResource(ctx context.Context, in *inResource) (Uploaded, error) {
	call, err := s.taken(ctx, in.InServer)
	if err != nil {
		return Uploaded{}, err
	}
	res := s.cfg.Servers.Read(ctx, call, in.Server, in.Body.URI)
	if !res.OK {
		f := unread(res)
		f.Message = fmt.Sprintf("%q of the server %q cannot be read: %s", cut.Text(in.Body.URI, 200), in.Server, f.Message)
		return Uploaded{}, f
	}
	text := fmt.Sprintf("The resource %q of the MCP server %q:\n%s", in.Body.URI, in.Server, res.Text())
	return s.store(in.SessionID, attachedName(in.Server, in.Body.URI), strings.NewReader(text))
}

// attachedName returns the name of a resource's attachment: the server and the last part of the URI.
// Without slashes, store keeps it whole.
func attachedName(server, uri string) string {
	flat := strings.NewReplacer("/", "-", `\`, "-")
	return flat.Replace(server + "-" + path.Base(uri))
}

// unlisted is the failure of a list.
func unlisted(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mention.ErrNoServer):
		return api.Fail(http.StatusNotFound, "%v", err)
	}
	return api.Coded(http.StatusBadGateway, "server_failed", "%v", err)
}

// unread is the failure of a request to a server.
func unread(res tool.Result) *api.Failure {
	switch res.ErrorKind {
	case tool.ErrNotFound:
		return api.Fail(http.StatusNotFound, "%s", res.Text())
	case tool.ErrValidation:
		return api.Fail(http.StatusBadRequest, "%s", res.Text())
	case tool.ErrRejected:
		return api.Fail(http.StatusForbidden, "%s", res.Text())
	case tool.ErrTool, tool.ErrTimeout, tool.ErrCancelled, tool.ErrCrashed, tool.ErrUnavailable, tool.ErrInternal:
	}
	return api.Coded(http.StatusBadGateway, "server_failed", "%s", res.Text())
}
