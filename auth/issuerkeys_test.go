package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/yaya-ai/yaya/auth"
)

// remote is an issuer that answers in the test's own time.
type remote struct {
	handler http.Handler
	takes   time.Duration
	away    atomic.Bool
	asked   atomic.Int64
}

func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	r.asked.Add(1)
	select {
	case <-time.After(r.takes):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	if r.away.Load() {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w.Result(), nil
}

// An issuer that does not answer is asked once for all who wait, is left alone for
// a while then, and later requests learn at once when to come again.
func TestIssuerIsAway(t *testing.T) {
	i := newIssuer(t)
	synctest.Test(t, func(t *testing.T) {
		far := &remote{handler: i.Config.Handler, takes: 10 * time.Second}
		far.away.Store(true)
		v, err := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: audience, Client: &http.Client{Transport: far}})
		if err != nil {
			t.Fatal(err)
		}
		token := func(kid string) string {
			c := i.claims()
			c["iat"], c["exp"] = time.Now().Unix(), time.Now().Add(time.Hour).Unix()
			return sign(t, jwt.SigningMethodRS256, i.rsa, map[string]any{"kid": kid}, c)
		}
		verify := func(ctx context.Context, kid string) (time.Duration, error) {
			start := time.Now()
			_, err := v.Verify(ctx, token(kid))
			return time.Since(start), err
		}
		const fetch = 20 * time.Second // two addresses are tried
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				took, err := verify(t.Context(), "r")
				if u, ok := errors.AsType[*auth.UnavailableError](err); !ok || errors.Is(err, auth.ErrToken) || u.Wait <= 0 {
					t.Errorf("got %v, want when to come again", err)
				}
				if took > fetch {
					t.Errorf("a caller waited for %v, want at most %v", took, fetch)
				}
			})
		}
		wg.Wait()
		if n := far.asked.Load(); n != 2 {
			t.Errorf("%d requests for 100 tokens, want 2", n)
		}
		took, err := verify(t.Context(), "r")
		if u, ok := errors.AsType[*auth.UnavailableError](err); !ok || took != 0 || u.Wait > time.Second || far.asked.Load() != 2 {
			t.Errorf("during the pause: %v after %v", err, took)
		}
		if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, i.rsa, map[string]any{"kid": "r"}, jwt.MapClaims{"iss": "https://other.example"})); !errors.Is(err, auth.ErrToken) {
			t.Errorf("another issuer's token: got %v, want it refused", err)
		}

		// An hour of tokens: the pauses grow to a minute.
		for start := time.Now(); time.Since(start) < time.Hour; time.Sleep(time.Second) {
			if _, err := verify(t.Context(), "r"); err == nil {
				t.Fatal("it was accepted")
			}
		}
		if n := far.asked.Load(); n < 60 || n > 160 {
			t.Errorf("%d requests in an hour, want two every 50 to 80 seconds", n)
		}

		// A caller that leaves meanwhile does not affect the others.
		far.away.Store(false)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, err := verify(ctx, "r"); err == nil {
				t.Error("a caller that went away got an answer")
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := verify(t.Context(), "r"); err != nil {
				t.Errorf("the one behind it: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()

		// Keys that are known serve on while they cannot be renewed, and nobody but the
		// one who asks waits.
		far.away.Store(true)
		time.Sleep(20 * time.Minute)
		wg.Go(func() {
			if _, err := verify(t.Context(), "r"); err != nil {
				t.Errorf("the one who asks: %v", err)
			}
		})
		synctest.Wait()
		if took, err := verify(t.Context(), "r"); err != nil || took != 0 {
			t.Errorf("another: %v after %v", err, took)
		}
		wg.Wait()
		asked := far.asked.Load()
		if took, err := verify(t.Context(), "r"); err != nil || took != 0 || far.asked.Load() != asked {
			t.Errorf("during the pause: %v after %v", err, took)
		}
	})
}
