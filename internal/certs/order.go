package certs

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// Kinds of challenges, in the order in which they are tried.
const (
	kindALPN = "tls-alpn-01"
	kindHTTP = "http-01"
)

// maxAuthorizations bounds what an authority can ask for one name.
const maxAuthorizations = 4

// order gets a certificate for a name (RFC 8555 section 7.4). It tries each challenge that
// yaya can answer, with a separate order each, because a failed order is final.
func (a *ACME) order(ctx context.Context, name string) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	client, err := a.client(ctx)
	if err != nil {
		return nil, refused(err)
	}
	kinds := []string{kindALPN}
	if a.answersHTTP() {
		kinds = append(kinds, kindHTTP)
	}
	var errs []error
	for _, kind := range kinds {
		pair, err := a.orderBy(ctx, client, name, kind)
		if err == nil {
			return pair, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", kind, err))
		if _, failed := errors.AsType[*acme.AuthorizationError](err); !failed {
			break // another challenge would not help
		}
	}
	return nil, refused(errors.Join(errs...))
}

// refused distinguishes errors of the authority from those of the connection.
func refused(err error) error {
	problem, isProblem := errors.AsType[*acme.Error](err)
	_, authz := errors.AsType[*acme.AuthorizationError](err)
	_, order := errors.AsType[*acme.OrderError](err)
	if authz || order || (isProblem && problem.StatusCode < 500) {
		return &refusal{err}
	}
	return err
}

// client signs in with the account, and creates it if there is none.
func (a *ACME) client(ctx context.Context) (*acme.Client, error) {
	key, isNew, err := a.account()
	if err != nil {
		return nil, err
	}
	c := &acme.Client{Key: key, DirectoryURL: a.cfg.Directory, UserAgent: "yaya", HTTPClient: a.httpClient(), RetryBackoff: retryPause}
	account := &acme.Account{}
	if a.cfg.Email != "" {
		account.Contact = []string{"mailto:" + a.cfg.Email}
	}
	_, err = c.Register(ctx, account, func(terms string) bool {
		if isNew {
			a.cfg.Log.Info().Str("ca", a.CA()).Str("terms", clean(terms)).Msg("with --acme you agree to the terms of the certification authority")
		}
		return true
	})
	if err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, err
	}
	return c, nil
}

// account reads the account key, which identifies this yaya to the authority, or
// creates it.
func (a *ACME) account() (key crypto.Signer, isNew bool, err error) {
	data, err := read(a.dir, accountKey)
	if errors.Is(err, fs.ErrNotExist) {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, false, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(made)
		if err != nil {
			return nil, false, err
		}
		// It is stored before it is used: an account whose key is lost is useless.
		_, err = atomicfile.Write(a.dir, accountKey, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		return made, true, err
	}
	if err != nil {
		return nil, false, err
	}
	if b, _ := pem.Decode(data); b != nil {
		if parsed, err := x509.ParsePKCS8PrivateKey(b.Bytes); err == nil {
			if key, ok := parsed.(crypto.Signer); ok {
				return key, false, nil
			}
		}
	}
	return nil, false, fmt.Errorf("%s/%s is damaged: remove it, and a new account is made", a.dir.Name(), accountKey)
}

// orderBy places an order, and answers challenges of one kind.
func (a *ACME) orderBy(ctx context.Context, client *acme.Client, name, kind string) (*tls.Certificate, error) {
	o, err := client.AuthorizeOrder(ctx, acme.DomainIDs(name))
	if err != nil {
		return nil, err
	}
	if len(o.AuthzURLs) > maxAuthorizations {
		return nil, fmt.Errorf("the authority wants %d authorizations for one name", len(o.AuthzURLs))
	}
	for _, at := range o.AuthzURLs {
		if err := a.authorize(ctx, client, at, name, kind); err != nil {
			return nil, err
		}
	}
	if o, err = client.WaitOrder(ctx, o.URI); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{name}}, key)
	if err != nil {
		return nil, err
	}
	chain, _, err := client.CreateCertFromOrder(ctx, o, csr, true)
	if err != nil {
		return nil, err
	}
	pair, err := pairOf(chain, key, name, time.Now())
	if err != nil {
		return nil, fmt.Errorf("the authority sent a certificate that cannot be used: %w", err)
	}
	return pair, nil
}

// authorize proves control of a name (RFC 8555 section 7.5).
func (a *ACME) authorize(ctx context.Context, client *acme.Client, at, name, kind string) error {
	z, err := client.GetAuthorization(ctx, at)
	if err != nil {
		return err
	}
	if z.Identifier.Type != "dns" || z.Identifier.Value != name {
		return fmt.Errorf("the authority asks about %q instead of %s", clean(z.Identifier.Value), name)
	}
	switch z.Status {
	case acme.StatusValid:
		return nil
	case acme.StatusPending:
	default:
		return fmt.Errorf("the authorization of %s is %q", name, clean(z.Status))
	}
	i := slices.IndexFunc(z.Challenges, func(c *acme.Challenge) bool { return c.Type == kind })
	if i < 0 {
		return &acme.AuthorizationError{URI: at, Identifier: name, Errors: []error{errors.New("the authority does not offer this check")}}
	}
	c := z.Challenges[i]
	done, err := a.answer(client, c, name)
	if err != nil {
		return err
	}
	defer done()
	if _, err := client.Accept(ctx, c); err != nil {
		return err
	}
	_, err = client.WaitAuthorization(ctx, at)
	return err
}

// maxToken bounds a token, which is in the answer's path.
const maxToken = 512

// answer publishes the response that the authority looks for, until done is called.
func (a *ACME) answer(client *acme.Client, c *acme.Challenge, name string) (done func(), err error) {
	if c.Token == "" || len(c.Token) > maxToken {
		return nil, fmt.Errorf("the authority sent a token of %d characters", len(c.Token))
	}
	if c.Type == kindALPN {
		pair, err := client.TLSALPN01ChallengeCert(c.Token, name)
		if err != nil {
			return nil, err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.alpn[name] = &pair
		return func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.alpn, name)
		}, nil
	}
	text, err := client.HTTP01ChallengeResponse(c.Token)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.http[c.Token] = http01{name, text}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.http, c.Token)
	}, nil
}
