package certs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/mail"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/acme"

	"github.com/yaya-ai/yaya/internal/backoff"
)

// LetsEncrypt is the default authority.
const LetsEncrypt = acme.LetsEncryptURL

// ALPN is the protocol in which an authority checks a host by TLS-ALPN-01 (RFC 8737). The
// listener has to offer it.
const ALPN = acme.ALPNProto

// Times of orders. Authorities count failures: Let's Encrypt allows five failed checks of
// a name in an hour, and one try makes two of them at most.
const (
	orderTime    = 5 * time.Minute
	afterRefusal = 20 * time.Minute // doubled for each failure
	mostRefusal  = 12 * time.Hour
	afterOutage  = time.Minute // the authority could not be reached
	mostOutage   = time.Hour
	mostAsked    = 48 * time.Hour // that an authority can ask to wait for
	// lookEvery is how often the loop checks the clock: timers stop while a machine
	// sleeps.
	lookEvery = time.Hour
)

// ACMEConfig configures an [ACME].
type ACMEConfig struct {
	Names     []string // of hosts; those with a port are taken without it
	Directory string   // URL of the authority; default LetsEncrypt
	Email     string   // for the authority, "" for none
	Dir       *os.Root // for keys and certificates, see [OpenFolder]
	// Plain is the listener for challenges over plain HTTP, which also redirects browsers
	// to https; nil for none. Run closes it.
	Plain net.Listener
	Log   zerolog.Logger

	// Transport is for tests; default one with deadlines.
	Transport http.RoundTripper
}

// ACME holds certificates of an authority for a fixed list of names.
type ACME struct {
	cfg   ACMEConfig
	names []string
	dir   *os.Root // of this authority

	mu     sync.Mutex
	have   map[string]*tls.Certificate
	state  map[string]*Status
	failed map[string]int // tries in a row
	// Answers to the challenges of the authority while it checks a name.
	alpn map[string]*tls.Certificate // by name
	http map[string]http01           // by token
	// plain reports whether challenges over plain HTTP can be answered.
	plain bool
}

type http01 struct{ name, answer string }

// CheckDirectory reads the URL of an authority. Errors show no password that is in it.
func CheckDirectory(directory string) (*url.URL, error) {
	u, err := url.Parse(directory)
	switch {
	case err == nil && u.User != nil && u.Scheme == "https" && u.Host != "":
		return nil, fmt.Errorf("--acme-directory %.200q has a user in it: authorities know yaya by its key, so leave that out", withoutUser(directory))
	case err != nil || u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("--acme-directory %.200q is not an https URL, such as %s", withoutUser(directory), LetsEncrypt)
	}
	return u, nil
}

// withoutUser hides a possible user and password in text that may not be a URL.
func withoutUser(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	scheme := ""
	if i := strings.Index(s[:at], "://"); i >= 0 {
		scheme = s[:i+3]
	}
	return scheme + "****" + s[at:]
}

// CheckEmail returns an error if an authority cannot use an address as contact; "" is
// valid.
func CheckEmail(address string) error {
	if a, err := mail.ParseAddress(address); address != "" && (err != nil || a.Address != address) {
		return fmt.Errorf("--acme-email %.200q is not an address such as admin@example.com", address)
	}
	return nil
}

// OpenACME checks the configuration and reads the stored certificates.
func OpenACME(cfg ACMEConfig) (*ACME, error) {
	cfg.Directory = cmp.Or(cfg.Directory, LetsEncrypt)
	u, err := CheckDirectory(cfg.Directory)
	if err == nil {
		err = CheckEmail(cfg.Email)
	}
	if err != nil {
		return nil, err
	}
	a := &ACME{
		cfg: cfg, have: map[string]*tls.Certificate{}, state: map[string]*Status{}, failed: map[string]int{},
		alpn: map[string]*tls.Certificate{}, http: map[string]http01{},
	}
	for _, h := range cfg.Names {
		name := hostOf(h)
		if err := CheckName(name, cfg.Directory == LetsEncrypt); err != nil {
			return nil, fmt.Errorf("--acme: --host %w", err)
		}
		if !slices.Contains(a.names, name) {
			a.names = append(a.names, name)
		}
	}
	if len(a.names) == 0 {
		return nil, errors.New("--acme needs --host: the name by which clients reach yaya, and which the certificate is for")
	}
	// Certificates of a test authority must not be mistaken for those of the real one.
	sum := sha256.Sum256([]byte(cfg.Directory))
	folder := strings.ReplaceAll(u.Host, ":", "_") + "-" + hex.EncodeToString(sum[:4])
	if a.dir, err = OpenFolder(cfg.Dir, folder); err != nil {
		return nil, err
	}
	for _, name := range a.names {
		a.state[name] = &Status{Name: name}
		pair, err := readPair(a.dir, name+pairEnd)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, a.dir.Close())
		}
		now := time.Now().Round(0)
		if err == nil && good(pair.Leaf, name, now) == nil {
			a.take(name, pair)
		}
		a.waitAsKept(name, now)
	}
	return a, nil
}

const (
	pairEnd    = ".pem"
	accountKey = "account.key"
)

// Close closes the folder.
func (a *ACME) Close() error { return a.dir.Close() }

// CA is the host of the authority.
func (a *ACME) CA() string {
	u, err := url.Parse(a.cfg.Directory)
	if err != nil { // checked
		return a.cfg.Directory
	}
	return u.Host
}

// Names returns the hosts of the certificates.
func (a *ACME) Names() []string { return slices.Clone(a.names) }

// Status returns the state of each certificate, in the order of the names.
func (a *ACME) Status() []Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]Status, len(a.names))
	for i, name := range a.names {
		out[i] = *a.state[name]
	}
	return out
}

// take makes clients get a certificate.
func (a *ACME) take(name string, pair *tls.Certificate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.have[name] = pair
	*a.state[name] = Status{Name: name, Expires: pair.Leaf.NotAfter, Issuer: clean(pair.Leaf.Issuer.String()), Next: renewal(pair)}
	delete(a.failed, name)
}

// renewal is when a certificate is renewed: with a third of its time left.
func renewal(pair *tls.Certificate) time.Time {
	from, to := pair.Leaf.NotBefore, pair.Leaf.NotAfter
	return to.Add(-to.Sub(from) / 3)
}

// Certificate is for [tls.Config.GetCertificate]. It returns the present certificate,
// and never contacts the authority, because strangers can call it as often as they like.
func (a *ACME) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := hostOf(hello.ServerName)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state[name] == nil {
		return nil, fmt.Errorf("TLS: %.100q is not a name of this yaya (--host)", clean(hello.ServerName))
	}
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == ALPN {
		if pair := a.alpn[name]; pair != nil {
			return pair, nil
		}
		return nil, fmt.Errorf("TLS: nobody checks %s at the moment", name)
	}
	if pair := a.have[name]; pair != nil {
		return pair, nil
	}
	return nil, fmt.Errorf("TLS: there is no certificate for %s yet", name)
}

// Run gets and renews certificates until ctx ends, and serves plain HTTP meanwhile. It is
// called once.
func (a *ACME) Run(ctx context.Context) {
	if a.cfg.Plain != nil {
		a.setPlain(true)
		served := make(chan struct{})
		go func() {
			defer close(served)
			if err := a.servePlain(ctx, a.cfg.Plain); err != nil {
				a.cfg.Log.Error().Err(err).Msg("challenges over plain HTTP are no longer answered")
			}
		}()
		defer func() { <-served }()
	}
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		wait := lookEvery
		for _, name := range a.names {
			if time.Now().Round(0).Before(a.next(name)) {
				wait = min(wait, a.until(name))
				continue
			}
			a.renew(ctx, name)
			if ctx.Err() != nil {
				return
			}
			wait = min(wait, a.until(name))
		}
		t.Reset(wait)
	}
}

func (a *ACME) next(name string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state[name].Next
}

// until returns the time until a name's next attempt, which is more than 0.
func (a *ACME) until(name string) time.Duration {
	return max(a.next(name).Sub(time.Now().Round(0)), time.Second)
}

// renew orders one certificate, and logs the result.
func (a *ACME) renew(ctx context.Context, name string) {
	a.cfg.Log.Info().Str("host", name).Str("ca", a.CA()).Msg("asking for a certificate")
	a.mu.Lock()
	n := a.failed[name]
	a.mu.Unlock()
	// If yaya is killed meanwhile, the attempt counts as failed.
	a.keepRetry(name, &retry{Next: time.Now().Round(0).Add(pause(nil, n)), Failed: n + 1, Why: "the last try was cut off"})
	pair, err := a.order(ctx, name)
	if err == nil {
		var wait *retry
		if err = writePair(a.dir, name+pairEnd, pair); err != nil {
			err = fmt.Errorf("the certificate for %s is in use, and could not be kept: %w", name, err)
			a.cfg.Log.Error().Err(err).Msg("after a restart another one has to be asked for")
			wait = &retry{Next: time.Now().Round(0).Add(pause(&refusal{err}, n)), Failed: n + 1, Why: err.Error()}
		}
		a.take(name, pair)
		a.keepRetry(name, wait)
		a.cfg.Log.Info().Str("host", name).Str("issuer", clean(pair.Leaf.Issuer.String())).Time("until", pair.Leaf.NotAfter).Msg("the certificate is there")
		return
	}
	if ctx.Err() != nil { // not a failure of the authority, but yaya may be restarting in a loop
		a.keepRetry(name, &retry{Next: time.Now().Round(0).Add(afterOutage), Failed: n, Why: "yaya ended during the last try"})
		return
	}
	why := a.explain(name, err)
	a.mu.Lock()
	a.failed[name]++
	wait := pause(err, n)
	s := a.state[name]
	s.Err, s.Next = why, time.Now().Round(0).Add(wait)
	told := *s
	a.mu.Unlock()
	a.keepRetry(name, &retry{Next: told.Next, Failed: n + 1, Why: why.Error()})
	log := a.cfg.Log.Error()
	if !told.Expires.IsZero() {
		log = a.cfg.Log.Warn().Time("until", told.Expires)
	}
	log.Err(told.Err).Str("host", name).Stringer("again_in", wait.Round(time.Second)).Msg("no certificate was issued")
}

// pause returns the wait after that many failures.
func pause(err error, failures int) time.Duration {
	first, most := afterOutage, mostOutage
	var refused *refusal
	if errors.As(err, &refused) {
		first, most = afterRefusal, mostRefusal
	}
	wait := backoff.Pause(first, most, failures)
	if problem, ok := errors.AsType[*acme.Error](err); ok {
		if asked, limited := acme.RateLimit(problem); limited {
			wait = max(wait, min(asked, mostAsked))
		}
	}
	return wait
}

// refusal is an error that the authority sent, and counts.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// explained is an error with a remedy; text of the authority cannot act on a terminal
// through it.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

func (a *ACME) explain(name string, err error) error {
	var refused *refusal
	if errors.As(err, &refused) {
		remedy := "%s has to lead to this machine in the DNS, and its port 443 to this listener"
		if a.answersHTTP() {
			remedy += " or its port 80 to the one for challenges"
		}
		if limited(err) {
			remedy = "too many were asked for: nothing is to be done but wait, and %s is not asked for before"
		}
		return &explained{fmt.Sprintf("%s refused a certificate for %s: %s ("+remedy+")", a.CA(), name, clean(err.Error()), name), err}
	}
	return &explained{fmt.Sprintf("the certification authority %s could not be asked: %s (check the network, a proxy's environment, and --acme-directory)", a.CA(), clean(err.Error())), err}
}

func limited(err error) bool {
	problem, ok := errors.AsType[*acme.Error](err)
	if !ok {
		return false
	}
	_, is := acme.RateLimit(problem)
	return is
}
