package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Read returns a body of at most limit bytes that is one strict JSON value. The
// listener sees to it that a body arrives in time; what a large one takes of the budget
// is given back when the request has been served.
func Read(r *http.Request, limit int64) ([]byte, *Failure) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, Fail(http.StatusUnsupportedMediaType, "the body has to be application/json")
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, Fail(http.StatusUnsupportedMediaType, "an encoded body is not accepted")
	}
	data, held, err := intake.Bodies().Read(nil, r.Body, r.ContentLength, auth.FromContext(r.Context()).Name(), int(limit))
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		return nil, Fail(http.StatusRequestEntityTooLarge, "the body exceeds %d bytes", limit)
	case errors.Is(err, intake.ErrBusy):
		return nil, &Failure{Status: http.StatusServiceUnavailable, Message: err.Error() + ": come back later", Wait: time.Second}
	case err != nil:
		return nil, Fail(http.StatusBadRequest, "the body cannot be read")
	case held.Any():
		context.AfterFunc(r.Context(), held.Release)
	}
	if err := jsonrpc.Check(data); err != nil {
		return nil, Fail(http.StatusBadRequest, "the body is not what is expected: %v", err)
	}
	return data, nil
}

// Decode reads a body as [Read] does into the struct that v points to.
func Decode(r *http.Request, limit int64, v any) *Failure {
	data, err := Read(r, limit)
	if err != nil {
		return err
	}
	return Unmarshal(data, v)
}

// Unmarshal decodes an object that has been checked. Its members have to be
// those of the struct that v points to, letter by letter: encoding/json
// would take others for them.
func Unmarshal(data []byte, v any) *Failure {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil || members == nil {
		return Fail(http.StatusBadRequest, "the body is not a JSON object")
	}
	known := names(reflect.TypeOf(v).Elem())
	for name := range members {
		if !known[name] {
			return Fail(http.StatusBadRequest, "the body has an unknown member %.40q", name)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return Fail(http.StatusBadRequest, "the body is not what is expected: %v", err)
	}
	return nil
}

func names(t reflect.Type) map[string]bool {
	out := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			out[name] = true
		}
	}
	return out
}
