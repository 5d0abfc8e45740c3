package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/kernel/session"
)

// COD-2: clients of /v1 find every code that they can get in docs/SESSIONS.md, with its
// status: those of statuses, of known errors, and of what the service refuses by itself.
func TestEveryCodeIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/SESSIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "\n## Errors\n")
	if !found {
		t.Fatal("docs/SESSIONS.md has no section Errors")
	}
	documented := func(status, code string) bool {
		for line := range strings.Lines(section) {
			statuses, rest, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
			if strings.Contains(statuses, status) && strings.Contains(rest, "`"+code+"`") {
				return true
			}
		}
		return false
	}
	for status, code := range codes {
		if !documented(fmt.Sprint(status), code) {
			t.Errorf("%d %s is not documented, want it in docs/SESSIONS.md", status, code)
		}
	}
	for _, k := range known {
		if code := (&Failure{Status: k.status, Code: k.code}).sent("").Code; !documented(fmt.Sprint(k.status), code) {
			t.Errorf("%d %s of %q is not documented, want it in docs/SESSIONS.md", k.status, code, k.err)
		}
	}
	seen := 0
	for _, c := range writtenCodes(t) {
		if !strings.HasPrefix(c.file, "../sessions/") {
			continue
		}
		if seen++; !documented(fmt.Sprint(c.status), c.code) {
			t.Errorf("%s: %d %s is not documented, want it in docs/SESSIONS.md", c.file, c.status, c.code)
		}
	}
	if seen < 15 {
		t.Errorf("%d codes were found in gateway/sessions, want all", seen)
	}
}

// writtenCode is a code that stands in the source of an API beside its status.
type writtenCode struct {
	file   string
	status int
	code   string
}

// writtenCodes finds those below gateway and in daemon.
func writtenCodes(t *testing.T) (out []writtenCode) {
	t.Helper()
	byName := map[string]int{}
	for status := 400; status < 600; status++ {
		byName[strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(status))] = status
	}
	forms := regexp.MustCompile(`(?:Coded\(http\.Status(\w+), |[sS]tatus: http\.Status(\w+), [cC]ode: )"(\w+)"`)
	for _, pattern := range []string{"../*.go", "../*/*.go", "../*/*/*.go", "../../daemon/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range forms.FindAllSubmatch(source, -1) {
				name := string(m[1]) + string(m[2])
				if byName[name] == 0 {
					t.Fatalf("%s: http.Status%s is a status that this test does not know", file, name)
				}
				out = append(out, writtenCode{file, byName[name], string(m[3])})
			}
		}
	}
	return out
}

// COD-2: a code has one status, so that clients need to look at the code alone.
func TestOneStatusForEachCode(t *testing.T) {
	all := writtenCodes(t)
	if len(all) < 20 {
		t.Errorf("%d codes were found beside their statuses, want all", len(all))
	}
	for status := 400; status < 600; status++ {
		all = append(all, writtenCode{"a failure without a code of its own", status, codeOf(status)})
	}
	statusOf := map[string]writtenCode{}
	for _, c := range all {
		if was, known := statusOf[c.code]; known && was.status != c.status {
			t.Errorf("%s is the code of %d (%s) and of %d (%s), want one status", c.code, was.status, was.file, c.status, c.file)
		}
		statusOf[c.code] = c
	}
}

// COD-2: an error has one status and code, whoever wraps it, and what nobody expected is
// in the log and not in the answer.
func TestExplain(t *testing.T) {
	for name, tt := range map[string]struct {
		err     error
		status  int
		code    string
		message string
		wait    time.Duration
		logged  bool
	}{
		"a failure":             {Fail(http.StatusRequestEntityTooLarge, "the body exceeds %d bytes", 9), 413, "too_large", "the body exceeds 9 bytes", 0, false},
		"one that is wrapped":   {fmt.Errorf("x: %w", Coded(http.StatusConflict, "exists", "there is one")), 409, "exists", "there is one", 0, false},
		"one beside another":    {errors.Join(Fail(http.StatusNotFound, "no"), errors.New("secret")), 404, "not_found", "no", 0, false},
		"known, told whole":     {fmt.Errorf("server %q: %w", "s", ErrStale), 409, "conflict", `server "s": it has changed since it was shown`, 0, false},
		"known, told alone":     {fmt.Errorf("/home/me/tape: %w", session.ErrDiskFull), 507, "disk_full", session.ErrDiskFull.Error(), 0, false},
		"one to come back from": {control.ErrUnavailable, 503, "unavailable", control.ErrUnavailable.Error(), 5 * time.Second, false},
		"of this machine":       {fmt.Errorf("key: %w", ErrFailed), 500, "internal", "key: it failed", 0, true},
		"unexpected":            {errors.New("secret"), 500, "internal", "internal error, request id req_1; yaya's log has the details", 0, true},
	} {
		var log strings.Builder
		got := Explain(zerolog.New(&log), "req_1", tt.err)
		want := Failure{Status: tt.status, Code: tt.code, Message: tt.message, Wait: tt.wait, RequestID: "req_1"}
		if *got != want {
			t.Errorf("%s: Explain(%v) = %+v, want %+v", name, tt.err, *got, want)
		}
		if logged := strings.Contains(log.String(), "req_1"); logged != tt.logged {
			t.Errorf("%s: logged %v (%s), want %v", name, logged, &log, tt.logged)
		}
	}
}

// COD-2, R7: a route without an access policy or a style is not served, and one with a
// policy is.
func TestRoutesHaveAPolicy(t *testing.T) {
	h := http.NotFoundHandler()
	for name, tt := range map[string]struct {
		route  Route
		served bool
	}{
		"without a policy": {Route{Pattern: "GET /x", Style: Detail, Handler: h}, false},
		"without a style":  {Route{Pattern: "GET /x", Access: Public(), Handler: h}, false},
		"only vital":       {Route{Pattern: "GET /x", Access: Access{Vital: true}, Style: Detail, Handler: h}, false},
		"for everybody":    {Route{Pattern: "GET /x", Access: Public(), Style: Detail, Handler: h}, true},
		"for devices":      {Route{Pattern: "GET /x", Access: For("s"), Style: Detail, Handler: h}, true},
		"over the socket":  {Route{Pattern: "GET /x", Access: OverSocket(), Style: Detail, Handler: h}, true},
	} {
		served := true
		func() {
			defer func() { served = recover() == nil }()
			NewTable([]Route{tt.route}, func(r Route) http.Handler { return r.Handler })
		}()
		if served != tt.served {
			t.Errorf("%s: served = %v, want %v", name, served, tt.served)
		}
	}
}

// COD-2: a missing resource is answered in the style of its API, with the methods that exist.
func TestNothing(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	table := NewTable([]Route{
		{Pattern: "GET /x/{id}", Access: Public(), Style: Detail, Handler: ok},
		{Pattern: "DELETE /x/{id}", Access: Public(), Style: Detail, Handler: ok},
		{Pattern: "/x/", Access: Public(), Style: Detail},
		{Pattern: "POST /call", Access: Public(), Style: func(f *Failure) any { return map[string]any{"error": f.Message} }, Handler: ok},
		{Pattern: "GET /files/{file...}", Access: Public(), Style: Detail, Handler: ok},
		{Pattern: "/", Access: Public(), Style: Text},
	}, func(r Route) http.Handler { return r.Handler })
	for name, tt := range map[string]struct {
		method, path string
		status       int
		body, allow  string
	}{
		"there":                          {"GET", "/x/1", 200, "", ""},
		"another method":                 {"PATCH", "/x/1", 405, `{"detail":"this resource knows GET, DELETE"}` + "\n", "GET, DELETE"},
		"nothing of the API":             {"GET", "/x/1/2", 404, `{"detail":"resource not found"}` + "\n", ""},
		"nothing at all":                 {"GET", "/y", 404, "resource not found\n", ""},
		"a method that nobody knows":     {"BREW", "/x/1", 405, `{"detail":"this resource knows GET, DELETE"}` + "\n", "GET, DELETE"},
		"a method that nobody has there": {"POST", "/y", 404, "resource not found\n", ""},
		"a method of another style":      {"GET", "/call", 405, `{"error":"this resource knows POST"}` + "\n", "POST"},
		"above an API":                   {"GET", "/x", 404, `{"detail":"resource not found"}` + "\n", ""},
		"above files":                    {"GET", "/files", 404, `{"detail":"resource not found"}` + "\n", ""},
		"a slash too many":               {"POST", "/call/", 404, "resource not found\n", ""},
		"all of it":                      {"OPTIONS", "*", 400, `{"detail":"the request names no resource: yaya is not a proxy, and knows no request about all of it"}` + "\n", ""},
		"elsewhere":                      {"GET", "//x/1?a=b", 307, `{"detail":"this resource is at /x/1"}` + "\n", ""},
		"elsewhere, by dots":             {"GET", "/y/../x/a%2Fb", 307, `{"detail":"this resource is at /x/a%2Fb"}` + "\n", ""},
		"elsewhere, another method":      {"PATCH", "/x/./1", 405, `{"detail":"this resource knows GET, DELETE"}` + "\n", "GET, DELETE"},
		"elsewhere, nothing":             {"GET", "//x/1/2", 404, `{"detail":"resource not found"}` + "\n", ""},
	} {
		w := httptest.NewRecorder()
		table.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil))
		if at, want := w.Header().Get("Location"), map[string]string{"//x/1?a=b": "/x/1?a=b", "/y/../x/a%2Fb": "/x/a%2Fb"}[tt.path]; at != want {
			t.Errorf("%s: %s %s leads to %q, want %q", name, tt.method, tt.path, at, want)
		}
		if w.Code != tt.status || w.Body.String() != tt.body || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s: %s %s answered %d %q, Allow %q, want %d %q, Allow %q", name, tt.method, tt.path, w.Code, w.Body, w.Header().Get("Allow"), tt.status, tt.body, tt.allow)
		}
	}
}

// COD-2: an operation and the listener refuse in the same words, with one id.
func TestRefusalsAreIdentified(t *testing.T) {
	a := New(Config{Base: "/x", Style: func(f *Failure) any { return f }, Docs: Public(), Rest: Public(), Log: zerolog.Nop()})
	Handle(a, Operation{Method: http.MethodGet, Path: "/x/y", ID: "y", Access: Public(), Status: http.StatusOK}, func(context.Context, *struct{}) (*struct{}, error) {
		return nil, errors.New("unexpected")
	})
	for _, path := range []string{"/x/nothing", "/x/y"} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		var f Failure
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || f.RequestID == "" || f.RequestID != w.Header().Get("X-Request-Id") {
			t.Errorf("%s: got id %q (%v), want %q", path, f.RequestID, err, w.Header().Get("X-Request-Id"))
		}
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: got Cache-Control %q, want no-store", path, got)
		}
	}
}
