// Package openapi is what the HTTP APIs that are described by their handlers have in
// common: strict reading before the library sees a body, errors that each API words in
// its own way, the OpenAPI document, and a page made of it that needs no script.
package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/yaya-ai/yaya/gateway/httpbody"
)

// MaxBody bounds a JSON body, in bytes (C.2).
const MaxBody = 1 << 20

// Failure is an error of the library's own, before an API has worded it.
type Failure struct {
	Status  int
	Message string
}

func (f *Failure) Error() string { return f.Message }

// GetStatus implements [huma.StatusError].
func (f *Failure) GetStatus() int { return f.Status }

// once sets what the library has one of for all APIs of a process.
var once = sync.OnceFunc(func() {
	huma.ValidateStrictCasing = true // HT-15
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		if status == http.StatusUnprocessableEntity { // S-5
			status = http.StatusBadRequest
		}
		if status >= http.StatusInternalServerError {
			return &Failure{status, "internal error; yaya's log has the details"}
		}
		for _, err := range errs {
			// What was sent is not sent back: it may be a secret.
			if d, ok := errors.AsType[*huma.ErrorDetail](err); ok && d.Location != "" {
				err = fmt.Errorf("%s (%s)", d.Message, d.Location)
			}
			if err != nil {
				msg += "; " + err.Error()
			}
		}
		if len(msg) > 2000 {
			msg = strings.ToValidUTF8(msg[:2000], "") + "…"
		}
		return &Failure{status, msg}
	}
})

// New returns an API whose operations are registered with mux. word makes a
// [Failure] what the API's clients get.
func New(mux *http.ServeMux, info huma.Info, word func(huma.Context, *Failure) any) huma.API {
	once()
	return humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0", Info: &info,
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
				return word(ctx, f), nil
			}
			return v, nil
		}},
	})
}

// Operation describes an operation; scope is what a device needs for it, "" if no device
// reaches it. The library sets no deadline for its body, which [Strict] has read before:
// one of the library's own would outlive the body and cancel what runs longer.
func Operation(tag, method, path, id, scope, summary string, status int) huma.Operation {
	who := SocketOnly
	if scope != "" {
		who = "Scope for devices: `" + scope + "`."
	}
	return huma.Operation{Method: method, Path: path, OperationID: id, Summary: summary, DefaultStatus: status, Tags: []string{tag}, Description: who, MaxBodyBytes: MaxBody, BodyReadTimeout: -1}
}

// SocketOnly describes an operation without a scope: no device reaches it.
const SocketOnly = "Over the Unix socket alone, for the user that runs yaya."

// Errors gives every operation of a document the error that its API answers with.
func Errors[E any](doc *huma.OpenAPI) *huma.Response {
	reg := doc.Components.Schemas
	delete(reg.Map(), "Failure")
	failure := &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{"application/json": {Schema: reg.Schema(reflect.TypeFor[E](), true, "Error")}}}
	for _, item := range doc.Paths {
		for _, o := range Operations(item) {
			o.Responses["default"] = failure
		}
	}
	return failure
}

// Operations returns the operations of a path, in the order of their methods.
func Operations(item *huma.PathItem) []*huma.Operation {
	var out []*huma.Operation
	for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
		if o != nil {
			out = append(out, o)
		}
	}
	return out
}

// Methods returns the methods by which the resource of a request can be used,
// besides what answers for everything.
func Methods(mux *http.ServeMux, r *http.Request, everything string) string {
	var out []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := &http.Request{Method: m, URL: r.URL, Host: r.Host}
		if _, pattern := mux.Handler(probe); pattern != "" && pattern != everything {
			out = append(out, m)
		}
	}
	return strings.Join(out, ", ")
}

// Strict reads a JSON body strictly and bounded before anybody sees it, and replaces
// it by what was read.
func Strict(w http.ResponseWriter, r *http.Request) *httpbody.Error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.ContentLength == 0 {
		return nil
	}
	body, err := httpbody.Read(w, r, MaxBody)
	if err != nil {
		return err
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}
