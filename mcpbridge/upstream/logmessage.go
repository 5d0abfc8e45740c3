package upstream

import (
	"encoding/json"
	"io"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/linelog"
)

// stderr returns the writer for a child's standard error, nil if its output is not wanted.
func (p *Provider) stderr() io.Writer {
	if p.cfg.Log == nil && p.cfg.Kept == nil {
		return nil
	}
	joint := p.cfg.Secrets.Joint()
	return &linelog.Splitter{Line: func(line string) { p.heard(nextLine(joint, line)) }}
}

// maxLogged bounds a log message that is parsed; of a longer one, the beginning is shown raw.
const maxLogged = 16 << 10

// logMessage handles the params of a log message.
func (p *Provider) logMessage(params []byte) {
	if p.cfg.Log == nil {
		return
	}
	var m struct {
		Level  string          `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	if len(params) > maxLogged || json.Unmarshal(params, &m) != nil {
		p.cfg.Log("log", "", string(params[:min(len(params), maxLogged)]))
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
	p.cfg.Log("log", cut.Text(m.Level, 16), text)
}
