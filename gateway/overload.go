package gateway

import (
	"context"
	"maps"
	"math"
	"net/http"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/gateway/api"
)

// Thresholds as memory runs out, in shares of the limit that GOMEMLIMIT sets: from
// refuseAt, new requests are refused; from shedAt, streams end, a part of them every
// second. Vital routes, which tell whether yaya is alive, are always served.
const (
	refuseAt   = 0.85
	shedAt     = 0.95
	shedPart   = 4 // one in so many
	lookAtLoad = time.Second
)

// overload watches the memory of the process.
type overload struct {
	limit uint64 // bytes; 0 for no limit
	used  func() uint64
	// refuse answers who is refused.
	refuse func(http.ResponseWriter, *http.Request, *api.Failure)

	share atomic.Uint64 // of the limit, as float bits

	mu      sync.Mutex
	streams map[*context.CancelCauseFunc]struct{}
}

func newOverload(refuse func(http.ResponseWriter, *http.Request, *api.Failure)) *overload {
	o := &overload{used: memoryInUse, refuse: refuse, streams: map[*context.CancelCauseFunc]struct{}{}}
	if l := debug.SetMemoryLimit(-1); l < math.MaxInt64 {
		o.limit = uint64(l) //nolint:gosec // it is not negative
	}
	return o
}

// memoryInUse is the memory that counts against the limit: what the runtime has taken, less
// what it has given back.
func memoryInUse() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

func (o *overload) now() float64 { return math.Float64frombits(o.share.Load()) }

// watch looks at the load until ctx ends. also is called when streams have to end
// that net/http does not know.
func (o *overload) watch(ctx context.Context, also func(part int)) {
	if o.limit == 0 {
		return
	}
	t := time.NewTicker(lookAtLoad)
	defer t.Stop()
	for {
		share := float64(o.used()) / float64(o.limit)
		o.share.Store(math.Float64bits(share))
		if share >= shedAt {
			o.shed()
			if also != nil {
				also(shedPart)
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// shed ends a part of the streams.
func (o *overload) shed() {
	o.mu.Lock()
	all := slices.Collect(maps.Keys(o.streams)) // in no order: nobody is favoured
	o.mu.Unlock()
	for _, end := range all[:(len(all)+shedPart-1)/shedPart] {
		(*end)(http.ErrHandlerTimeout)
	}
}

// begins tells whether a request begins something that stays: a stream, or a session.
func begins(r *http.Request) (stream, session bool) {
	stream = r.Header.Get("Upgrade") != "" || (r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/event-stream"))
	session = r.Method == http.MethodPost && r.URL.Path == "/v1/sessions"
	session = session || r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && r.Header.Get("Mcp-Method") == "" && strings.HasPrefix(r.URL.Path, "/mcp")
	return stream, session
}

// guard refuses what there is no memory for.
func (o *overload) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.limit == 0 {
			next.ServeHTTP(w, r)
			return
		}
		stream, session := begins(r)
		share := o.now()
		if share >= shedAt || (share >= refuseAt && (stream || session)) {
			o.refuse(w, r, &api.Failure{Status: http.StatusServiceUnavailable, Message: "yaya is short of memory", Wait: 5 * time.Second})
			return
		}
		if stream {
			ctx, end := context.WithCancelCause(r.Context())
			defer end(nil)
			o.mu.Lock()
			o.streams[&end] = struct{}{}
			o.mu.Unlock()
			defer func() {
				o.mu.Lock()
				delete(o.streams, &end)
				o.mu.Unlock()
			}()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}
