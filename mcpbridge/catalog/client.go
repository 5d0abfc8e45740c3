package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Bounds of a request to a registry.
const (
	requestTimeout = 20 * time.Second
	maxAnswer      = 8 << 20 // bytes
	pageSize       = 100
)

var cursorPattern = lazyregexp.New(`^[A-Za-z0-9._~:/+=-]{0,500}$`)

// Registry is a registry that the settings name.
type Registry struct {
	Name string
	URL  string
}

// errMissing is the error about an entry that the registry does not have.
var errMissing = errors.New("not found")

// errLarge is the error about an answer that is not read to its end.
var errLarge = fmt.Errorf("its answer is larger than %d MiB", maxAnswer>>20)

// entryError is an error about one entry: its registry answers, and has other entries.
type entryError struct{ err error }

func (e *entryError) Error() string { return e.err.Error() }
func (e *entryError) Unwrap() error { return e.err }

// page is one page of a registry's list.
type page struct {
	entries []Entry
	next    string
	skipped int // entries that cannot be used
}

// client returns the client for registries. Their addresses are the user's own settings, so
// that one may be in a private network, or behind the proxy of the environment. A registry sends
// requests nowhere else: redirects stay within its origin.
func client(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, Timeout: requestTimeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > 3 {
			return fmt.Errorf("it redirects %d times, last to %s", len(via), cut.Text(req.URL.Redacted(), 200))
		}
		if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			return fmt.Errorf("it redirects to %s, and yaya does not follow redirects to another origin", cut.Text(req.URL.Scheme+"://"+req.URL.Host, 200))
		}
		return nil
	}}
}

// transport carries requests to registries.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's
	t.MaxResponseHeaderBytes, t.DisableKeepAlives = 64<<10, true
	t.ResponseHeaderTimeout, t.TLSHandshakeTimeout = requestTimeout, requestTimeout/2
	return t
}

// get reads the answer of a registry to a path.
func (c *Catalog) get(ctx context.Context, r Registry, path string, query url.Values) ([]byte, error) {
	address := strings.TrimSuffix(r.URL, "/") + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "yaya")
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
			err = u.Err
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, errMissing
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers with status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1)) //nolint:forbidigo // bounded by the reader
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnswer {
		return nil, errLarge
	}
	return body, nil
}

// list asks a registry for a page of the newest version of each server. search is a part of the
// name, "" for all.
func (c *Catalog) list(ctx context.Context, r Registry, search, cursor string) (page, error) {
	query := url.Values{"version": {"latest"}, "limit": {strconv.Itoa(pageSize)}}
	if search != "" {
		query.Set("search", search)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	body, err := c.get(ctx, r, "/v0.1/servers", query)
	if err != nil {
		return page{}, err
	}
	var doc struct {
		Servers  []json.RawMessage `json:"servers"`
		Metadata struct {
			Next string `json:"nextCursor"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return page{}, errors.New("its answer is not a list of servers: its address has to be that of a registry that speaks the API of MCP's registry, v0.1")
	}
	p := page{next: doc.Metadata.Next}
	if !cursorPattern().MatchString(p.next) { // a command that the user pastes has it
		p.next = ""
	}
	seen := map[string]bool{}
	for i, raw := range doc.Servers {
		e, err := decode(r.Name, raw, c.now())
		if err != nil || i >= pageSize || seen[e.Server.Name] || e.Status == Deleted {
			p.skipped++
			continue
		}
		seen[e.Server.Name] = true
		p.entries = append(p.entries, e)
	}
	return p, nil
}

// one asks a registry for one server.
func (c *Catalog) one(ctx context.Context, r Registry, name, version string) (Entry, error) {
	body, err := c.get(ctx, r, "/v0.1/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version), nil)
	switch {
	case errors.Is(err, errLarge):
		return Entry{}, &entryError{fmt.Errorf("its entry %s cannot be used: %w", name, err)}
	case err != nil:
		return Entry{}, err
	}
	if !json.Valid(body) { // such as the page of a proxy
		return Entry{}, errors.New("its answer is not JSON")
	}
	e, err := decode(r.Name, body, c.now())
	switch {
	case err != nil:
		return Entry{}, &entryError{fmt.Errorf("its entry %s cannot be used: %w", name, err)}
	case e.Server.Name != name || version != latest && e.Server.Version != version:
		return Entry{}, &entryError{fmt.Errorf("it was asked for %s %s, and answered with %s %s", name, version, e.Server.Name, e.Server.Version)}
	}
	return e, nil
}

// latest stands for the newest version.
const latest = "latest"
