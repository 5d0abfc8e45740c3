package mcpbridge

import "github.com/yaya-ai/yaya/mcpbridge/servers"

// learn registers the secrets of a server.
func (b *Bridge) learn(s servers.Server) {
	if b.cfg.Secrets != nil {
		b.cfg.Secrets.Learn(s.Secrets()...)
		b.cfg.Secrets.Declare(s.Declared(b.cfg.Env, b.inherits(s)...)...)
	}
}

// masked returns a text without secrets.
func (b *Bridge) masked(text string) string {
	if b.cfg.Mask == nil {
		return text
	}
	return b.cfg.Mask(text)
}

// maskedError hides the secrets in the text of the error that it wraps.
type maskedError struct {
	error
	text string
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.error }
