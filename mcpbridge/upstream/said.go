package upstream

import (
	"encoding/json"
	"io"

	"github.com/yaya-ai/yaya/internal/linelog"
)

// stderr takes what a child writes to standard error, nil if nobody wants it.
func (p *Provider) stderr() io.Writer {
	if p.cfg.Said == nil && p.cfg.Kept == nil {
		return nil
	}
	return &linelog.Splitter{Said: p.heard}
}

// maxLogged is how long a log message may be to be read; of a longer one the beginning
// is shown as it is.
const maxLogged = 16 << 10

// said takes the params of a log message.
func (p *Provider) said(params []byte) {
	if p.cfg.Said == nil {
		return
	}
	var m struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if len(params) > maxLogged || json.Unmarshal(params, &m) != nil {
		p.cfg.Said("log", "", string(params[:min(len(params), maxLogged)]))
		return
	}
	text := string(m.Data)
	var plain string
	if json.Unmarshal(m.Data, &plain) == nil {
		text = plain
	}
	if m.Logger != "" {
		text = m.Logger + ": " + text
	}
	p.cfg.Said("log", clip(m.Level, 16), text)
}
