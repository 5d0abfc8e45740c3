package gateway

import (
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/yaya-ai/yaya/gateway/api"
)

// maxProfiled bounds the time that one profile may take.
const maxProfiled = 5 * time.Minute

// Profiles serves the profiles of the Go runtime, as net/http/pprof does. They show code,
// arguments of the process, and addresses of its memory: the route is for the socket alone.
func Profiles() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := r.FormValue("seconds"); s != "" {
			if n, err := strconv.Atoi(s); err != nil || n < 1 || n > int(maxProfiled/time.Second) {
				api.Refuse(w, r, api.Text, api.Fail(http.StatusBadRequest, "seconds must be a number from 1 to %d", int(maxProfiled/time.Second)))
				return
			}
		}
		switch name := r.PathValue("profile"); name {
		case "":
			pprof.Index(w, r)
		case "cmdline":
			pprof.Cmdline(w, r)
		case "profile":
			pprof.Profile(w, r)
		case "symbol":
			pprof.Symbol(w, r)
		case "trace":
			pprof.Trace(w, r)
		default:
			pprof.Handler(name).ServeHTTP(w, r)
		}
	})
}
