package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/cut"
)

// maxBody bounds the JSON body of an operation, in bytes.
const maxBody = 1 << 20

// Config describes an [API].
type Config struct {
	Base  string // below which its routes are, such as "/api"
	Style Style
	Info  huma.Info
	Docs  Access // of the document
	Rest  Access // of what is not there
	Log   zerolog.Logger
}

// API is routes, most of them operations that are described by their handlers, and the
// OpenAPI document of those. It is a handler, too, for those who have established by
// themselves that a caller may use it. All of it is declared before it serves.
type API struct {
	cfg      Config
	routes   []Route
	register []func(huma.API)
	made     func() (map[string]http.Handler, *huma.OpenAPI) // at the first use: it takes a while
	table    func() *Table
}

// New returns an API with a document of what is declared afterwards.
func New(cfg Config) *API {
	a := &API{cfg: cfg}
	a.made = sync.OnceValues(a.make)
	a.table = sync.OnceValue(func() *Table { return NewTable(a.routes, func(r Route) http.Handler { return r.Handler }) })
	a.route(Route{Pattern: cfg.Base + "/", Access: cfg.Rest})
	a.document("/openapi.json", writeDocument)
	a.document("/docs", func(h http.Header, doc *huma.OpenAPI) ([]byte, error) { return writePage(h, cfg.Base, doc) })
	return a
}

// Routes returns the routes, each with its policy.
func (a *API) Routes() []Route { return a.routes }

// ServeHTTP implements [http.Handler], for callers who may use every route; the context
// says who they are.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.table().ServeHTTP(w, r) }

// Explain makes an error one that the client of a request may read.
func (a *API) Explain(ctx context.Context, err error) *Failure {
	f := Explain(a.cfg.Log, RequestID(ctx), err)
	if full, ok := errors.AsType[*atomicfile.FullError](err); ok && auth.FromContext(ctx).Kind == auth.Owner {
		f.Message = full.Error() // others are not told of paths of this machine
	}
	return f
}

// Refuse answers with an error.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	Refuse(w, r, a.cfg.Style, a.Explain(r.Context(), err))
}

// route adds a route.
func (a *API) route(r Route) {
	r.Style, r.around = a.cfg.Style, identify
	a.routes = append(a.routes, r)
}

// Operation describes an operation.
type Operation struct {
	Method, Path string
	ID, Tag      string
	Summary      string
	Access       Access
	Note         string // see [Route]
	Status       int    // of the answer
}

func (o Operation) pattern() string { return o.Method + " " + o.Path }

func (o Operation) route(h http.HandlerFunc) Route {
	return Route{Pattern: o.pattern(), Access: o.Access, Operation: o.ID, Note: o.Note, Handler: h}
}

// described is the operation as the library takes it. The library sets no deadline for
// the body, which [strict] has read before: one of the library's own would outlive the
// body and cancel what runs longer.
func (o Operation) described() huma.Operation {
	who := "Over the Unix socket alone, for the user that runs yaya."
	switch {
	case o.Access.Device == "" && o.Access.Owner == Local:
		who = "On this machine, for the user that runs yaya."
	case o.Access.Device != "":
		who = "Scope for devices: `" + string(o.Access.Device) + "`."
	}
	return huma.Operation{Method: o.Method, Path: o.Path, OperationID: o.ID, Summary: o.Summary, DefaultStatus: o.Status, Tags: []string{o.Tag}, Description: who, MaxBodyBytes: maxBody, BodyReadTimeout: -1}
}

// Handle adds an operation. Its input and output make its part of the document; its
// errors become ones that its caller may read.
func Handle[I, O any](a *API, o Operation, f func(context.Context, *I) (*O, error)) {
	a.route(o.route(func(w http.ResponseWriter, r *http.Request) {
		handlers, _ := a.made()
		handlers[o.pattern()].ServeHTTP(w, r)
	}))
	a.register = append(a.register, func(to huma.API) {
		huma.Register(to, o.described(), func(ctx context.Context, in *I) (*O, error) {
			out, err := f(ctx, in)
			if err != nil {
				return nil, a.Explain(ctx, err)
			}
			return out, nil
		})
	})
}

// Schemas are those of a document.
type Schemas = huma.Registry

// Plain adds an operation that reads its request and writes its answer by itself;
// describe completes its part of the document.
func (a *API) Plain(o Operation, describe func(Schemas, *huma.Operation), h http.HandlerFunc) {
	a.route(o.route(h))
	a.register = append(a.register, func(to huma.API) {
		op := o.described()
		describe(to.OpenAPI().Components.Schemas, &op)
		to.OpenAPI().AddOperation(&op)
	})
}

// make makes the handlers of operations, by pattern, and the document.
func (a *API) make() (map[string]http.Handler, *huma.OpenAPI) {
	once()
	to := handlers{}
	api := humago.New(to, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0", Info: &a.cfg.Info,
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
				SecuritySchemes: map[string]*huma.SecurityScheme{"device": {Type: "http", Scheme: "bearer", Description: "a device token with the scope that the operation names"}},
			},
			Security: []map[string][]string{{}, {"device": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json", RejectUnknownQueryParameters: true,
		Transformers: []huma.Transformer{func(ctx huma.Context, _ string, v any) (any, error) {
			if f, ok := v.(*Failure); ok {
				return a.cfg.Style(f.sent(RequestID(ctx.Context()))), nil
			}
			return v, nil
		}},
	})
	for _, register := range a.register {
		register(api)
	}
	describeErrors(api.OpenAPI(), a.cfg.Style)
	out := make(map[string]http.Handler, len(to))
	for pattern, h := range to {
		out[pattern] = a.strict(h)
	}
	for path, item := range api.OpenAPI().Paths {
		for _, o := range operations(item) {
			if h, ok := to[o.Method+" "+path]; ok && o.RequestBody == nil {
				out[o.Method+" "+path] = a.bodiless(h)
			}
		}
	}
	return out, api.OpenAPI()
}

// handlers collects what the library would register with a mux.
type handlers map[string]http.HandlerFunc

// HandleFunc implements [humago.Mux].
func (h handlers) HandleFunc(pattern string, f func(http.ResponseWriter, *http.Request)) {
	h[pattern] = f
}

// ServeHTTP implements [humago.Mux]; nobody calls it.
func (handlers) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// once sets what the library has one of for all APIs of a process.
var once = sync.OnceFunc(func() {
	huma.ValidateStrictCasing = true // a member has one spelling
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		if status == http.StatusUnprocessableEntity { // the contract answers 400 to every bad body (S-5)
			status = http.StatusBadRequest
		}
		if status >= http.StatusInternalServerError {
			return &Failure{Status: status, Message: "internal error; yaya's log has the details"}
		}
		for _, err := range errs {
			// The error does not repeat the value that was sent: it may be a secret.
			if d, ok := errors.AsType[*huma.ErrorDetail](err); ok && d.Location != "" {
				err = fmt.Errorf("%s (%s)", d.Message, d.Location)
			}
			if err != nil {
				msg += "; " + err.Error()
			}
		}
		return &Failure{Status: status, Message: cut.Text(msg, 2000)}
	}
})

// describeErrors gives every operation of a document the error that its API answers with.
func describeErrors(doc *huma.OpenAPI, style Style) {
	reg := doc.Components.Schemas
	delete(reg.Map(), "Failure")
	reg.Map()["Error"] = huma.SchemaFromType(reg, reflect.TypeOf(style(new(Failure))))
	failure := &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Ref: "#/components/schemas/Error"}}}}
	for _, item := range doc.Paths {
		for _, o := range operations(item) {
			o.Responses["default"] = failure
		}
	}
}

// strict reads a JSON body strictly and bounded before anybody sees it, and replaces
// it by what was read.
func (a *API) strict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		body, err := Read(r, maxBody)
		if err != nil {
			a.Refuse(w, r, err)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// bodiless serves an operation that takes no body. One that comes all the same says
// something that nobody would hear, so it is refused; but for the empty object, which some
// clients always send.
func (a *API) bodiless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Body == nil {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxEmpty+1)) //nolint:forbidigo // bounded by the reader
		said := bytes.Join(bytes.Fields(body), nil)
		switch {
		case err != nil:
			a.Refuse(w, r, Fail(http.StatusBadRequest, "the body cannot be read"))
		case len(body) > maxEmpty || len(said) > 0 && string(said) != "{}":
			a.Refuse(w, r, Fail(http.StatusBadRequest, "%s %s takes no body: send none, or {}", r.Method, r.URL.Path))
		default:
			r.Body, r.ContentLength = http.NoBody, 0
			next.ServeHTTP(w, r)
		}
	})
}

// maxEmpty bounds a body that says nothing, in bytes.
const maxEmpty = 1 << 10
