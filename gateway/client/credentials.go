package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/keypin"
	"github.com/yaya-ai/yaya/internal/netaddr"
	"github.com/yaya-ai/yaya/internal/tlswords"
)

// Credentials identify a device at one server. They are secret.
type Credentials struct {
	URL      string             `json:"url"` // of the server: https://host, without a path
	ServerID string             `json:"server_id"`
	DeviceID string             `json:"device_id"`
	Label    string             `json:"label,omitempty"`
	Key      ed25519.PrivateKey `json:"key"`
	Token    string             `json:"device_token"`
	Expires  time.Time          `json:"expires_at"`
	// Fingerprint is that of the server's key, when no authority has signed its
	// certificate: then no other key is taken for the server's.
	Fingerprint string `json:"tls_fingerprint,omitempty"`
}

// Errors of the package.
var (
	// ErrPending says that somebody has to approve the device first.
	ErrPending = errors.New("the device waits for approval")
	// ErrRefused says that the server has rejected or revoked the device.
	ErrRefused = errors.New("the server has refused this device")
	// ErrUnavailable means that the gateway cannot be reached, or that the connection was lost.
	ErrUnavailable = errors.New("bridge_unavailable")
	// ErrUnsigned is returned when no authority that this machine knows has signed the
	// server's certificate.
	ErrUnsigned = errors.New("nobody that this machine knows speaks for the server's certificate: if it makes its own (yaya serve --tls-self-signed), connect with the fingerprint of its key, which \"yaya device invite\" prints there (yaya connect --fingerprint)")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the client is closed")
)

// New makes the credentials of a device that no server knows yet. at is the URL of
// the server: https, or http on this machine alone, as the key's proof and the
// token pass over it.
func New(at, device, label string) (Credentials, error) {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return Credentials{}, fmt.Errorf("%q is not the URL of a server, such as https://yaya.example", at)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !netaddr.Loopback(u.Hostname())) {
		return Credentials{}, fmt.Errorf("%s: https is needed, http will do for this machine alone", at)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{URL: u.Scheme + "://" + u.Host, DeviceID: device, Label: label, Key: key}, nil
}

// socket returns the URL of the WebSocket, as it is dialled.
func (c *Credentials) socket() string { return "ws" + strings.TrimPrefix(c.URL, "http") + "/ws" }

// Pin makes the server's key the one with that fingerprint, and no other.
func (c *Credentials) Pin(fingerprint string) error {
	f, err := keypin.Parse(fingerprint)
	if err == nil && !strings.HasPrefix(c.URL, "https://") {
		err = fmt.Errorf("%s: there is no key to compare without https", c.URL)
	}
	if err == nil {
		c.Fingerprint = f
	}
	return err
}

// tlsConfig is how to connect with the server, nil for as with all others.
func (c *Credentials) tlsConfig(given *tls.Config) (*tls.Config, error) {
	if given != nil || c.Fingerprint == "" {
		return given, nil
	}
	return keypin.Config(c.Fingerprint)
}

// unsigned says what to do when nobody speaks for a certificate, and what else is wrong
// with TLS.
func (c *Credentials) unsigned(err error) error {
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return fmt.Errorf("%s: %w", c.URL, ErrUnsigned)
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // without the path, which is nobody's business
	}
	return fmt.Errorf("%s: %w", c.URL, tlswords.Explain(err))
}

// httpClient is for requests to the server: it follows no redirects.
func (c *Credentials) httpClient(given *http.Client) (*http.Client, error) {
	if given != nil {
		return given, nil
	}
	h := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	cfg, err := c.tlsConfig(nil)
	if err != nil || cfg == nil {
		return h, err
	}
	h.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg, TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true}
	return h, nil
}

// answer is the answer of /auth/register and /auth/refresh.
type answer struct {
	Token     string    `json:"device_token"`
	ExpiresAt time.Time `json:"expires_at"`
	ServerID  string    `json:"server_id"`
	RequestID string    `json:"request_id"`
	Detail    string    `json:"detail"`
}

const maxAnswer = 64 << 10

func (c *Credentials) post(ctx context.Context, h *http.Client, path, token string, body any) (answer, int, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return answer{}, 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+path, bytes.NewReader(raw))
	if err != nil {
		return answer{}, 0, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if h, err = c.httpClient(h); err != nil {
		return answer{}, 0, err
	}
	resp, err := h.Do(req)
	if err != nil {
		return answer{}, 0, c.unsigned(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var a answer
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) //nolint:forbidigo // bounded by the reader
	if err == nil {
		err = json.Unmarshal(reply, &a)
	}
	if resp.StatusCode == http.StatusBadRequest && bytes.Contains(reply, []byte("HTTP request to an HTTPS server")) { // as Go's server says it
		return answer{}, resp.StatusCode, fmt.Errorf("%s: the server speaks TLS at this port: write https://%s", c.URL, strings.TrimPrefix(c.URL, "http://"))
	}
	if err != nil && resp.StatusCode < 300 {
		return answer{}, resp.StatusCode, fmt.Errorf("%s%s: the answer cannot be read: %w", c.URL, path, err)
	}
	return a, resp.StatusCode, nil
}

func (c *Credentials) registration() auth.Registration {
	pub, _ := c.Key.Public().(ed25519.PublicKey)
	return auth.Registration{PublicKey: base64.StdEncoding.EncodeToString(pub), DeviceID: c.DeviceID, Label: c.Label}
}

// take takes over a token. A server that has become another one is refused.
func (c *Credentials) take(a answer) error {
	if a.ServerID == "" || (c.ServerID != "" && c.ServerID != a.ServerID) {
		return fmt.Errorf("%w: %s is server %.16s…, and %.16s… is known", auth.ErrOtherServer, c.URL, a.ServerID, c.ServerID)
	}
	c.ServerID, c.Token, c.Expires = a.ServerID, a.Token, a.ExpiresAt
	return nil
}

func refusal(a answer, status int) error {
	why := a.Detail
	if why == "" {
		why = "HTTP " + http.StatusText(status)
	}
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return errors.New(why)
	}
	return deny(why)
}

// deny is [ErrRefused] with the server's reason, which may begin with the same word.
func deny(why string) error {
	if why = strings.TrimPrefix(strings.TrimPrefix(why, auth.ErrRefused.Error()), ": "); why == "" {
		return ErrRefused
	}
	return fmt.Errorf("%w: %.200s", ErrRefused, why)
}

// Enroll gets the device its first token by a code of yaya device invite.
func (c *Credentials) Enroll(ctx context.Context, h *http.Client, code string) error {
	r := c.registration()
	r.Code = code
	a, status, err := c.post(ctx, h, "/auth/register", "", r)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return refusal(a, status)
	}
	return c.take(a)
}

// Ask gets the device a token by its key alone: at once if the server knows it,
// else the error wraps [ErrPending] and request says what to wait for. Asking again
// with that request fetches the token once somebody has approved.
func (c *Credentials) Ask(ctx context.Context, h *http.Client, request string) (string, error) {
	for range 2 {
		r := c.registration()
		if request != "" {
			r.RequestID = request
			r.Proof = base64.StdEncoding.EncodeToString(auth.SignRegistration(c.Key, c.ServerID, request, c.DeviceID))
		}
		a, status, err := c.post(ctx, h, "/auth/register", "", r)
		switch {
		case err != nil:
			return request, err
		case status == http.StatusOK:
			return "", c.take(a)
		case status != http.StatusAccepted:
			return "", refusal(a, status)
		case c.ServerID != "" && a.ServerID != c.ServerID:
			return "", c.take(a)
		case request != "": // proved, and not approved yet
			return request, ErrPending
		}
		request, c.ServerID = a.RequestID, a.ServerID // from now on, this server and no other
	}
	return request, ErrPending
}

// Refresh exchanges the token for the next. A token that is good no
// more is replaced by way of the key.
func (c *Credentials) Refresh(ctx context.Context, h *http.Client) error {
	if c.Token != "" {
		a, status, err := c.post(ctx, h, "/auth/refresh", c.Token, nil)
		if err != nil {
			return err
		}
		if status == http.StatusOK {
			return c.take(a)
		}
		if status != http.StatusUnauthorized {
			return refusal(a, status)
		}
	}
	_, err := c.Ask(ctx, h, "")
	if errors.Is(err, ErrPending) {
		return fmt.Errorf("%w: it was revoked, or has been forgotten", ErrRefused)
	}
	return err
}
