package gateway

import (
	"crypto/rand"
	"net/http"
	"strings"
)

// deny refuses a request in the words of the surface that it was for.
func deny(w http.ResponseWriter, r *http.Request, status int, why string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		id := w.Header().Get("X-Request-Id")
		if id == "" {
			id = "req_" + rand.Text()
			w.Header().Set("X-Request-Id", id)
		}
		type body struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		}
		writeJSON(w, status, struct {
			Error body `json:"error"`
		}{body{codeOf(status), why, id}})
	case strings.HasPrefix(r.URL.Path, "/api/"):
		writeJSON(w, status, detail{why})
	default:
		http.Error(w, why, status)
	}
}

func codeOf(status int) string {
	return strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
}
