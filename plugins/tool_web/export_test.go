package tool_web //nolint:staticcheck // plugins are named after what the configuration calls them

import "net/http"

// Send has f answer the requests to search services.
func (p *Plugin) Send(f func(*http.Request) (*http.Response, error)) { p.services = sender(f) }

type sender func(*http.Request) (*http.Response, error)

func (f sender) Do(req *http.Request) (*http.Response, error) { return f(req) }

func (sender) Close() {}
