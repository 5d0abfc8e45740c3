package traffic

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// MaxBody bounds the recorded part of a call's arguments and of its result, in bytes
// each.
const MaxBody = 16 << 10

// maxText bounds the other members that others choose, in bytes.
const maxText = 256

// MethodTool is the method of tool calls, whichever way they arrive.
const MethodTool = "tools/call"

// The outcome of a successful call; others are the kinds of failure of package
// tool, and "error" for an error from the server.
const (
	OutcomeOK    = "ok"
	OutcomeError = "error"
)

// Bodies selects the calls whose arguments and results are recorded.
type Bodies int32

// The values of traffic.bodies.
const (
	BodiesOff Bodies = iota
	BodiesErrors
	BodiesAll
)

func (b Bodies) String() string { return [...]string{"off", "errors", "all"}[b] }

// ParseBodies reads a value of traffic.bodies.
func ParseBodies(s string) (Bodies, bool) {
	for _, b := range []Bodies{BodiesOff, BodiesErrors, BodiesAll} {
		if b.String() == s {
			return b, true
		}
	}
	return 0, false
}

// Call is a call that has ended. Its slices belong to the caller, and are copied.
type Call struct {
	Start     time.Time
	Took      time.Duration
	Origin    string // mcp, api, wire, cli, loop
	Client    []byte // an MCP client's description of itself: a JSON object with name and version
	Principal string
	Session   string
	Method    string // of MCP: tools/call, resources/read, prompts/get
	Server    string // "" for yaya itself
	Tool      string // the server's own name of it; of resources, the URI
	Name      string // the name that it was called by, if that is another
	Outcome   string
	Error     string // in short, for people
	Approved  bool   // a person agreed to this very call
	Trace     []byte // a traceparent of W3C, if the client sent one

	Arguments, Result []byte
	// ResultSize is the size of the result if Result is not all of it.
	ResultSize int
	// Bare calls are recorded without bodies, whatever the settings.
	Bare bool
}

// Record is a recorded call. All its texts are untrusted.
type Record struct {
	ID             int64     `json:"id"`
	Time           time.Time `json:"time" doc:"when it began"`
	TookMS         float64   `json:"took_ms"`
	Origin         string    `json:"origin" doc:"mcp, api, wire, cli, loop"`
	Client         string    `json:"client,omitempty" doc:"what the client calls itself"`
	ClientVersion  string    `json:"client_version,omitempty"`
	Principal      string    `json:"principal,omitempty"`
	Session        string    `json:"session,omitempty"`
	Method         string    `json:"method" doc:"tools/call, resources/read, prompts/get"`
	Server         string    `json:"server,omitempty" doc:"empty for yaya itself"`
	Tool           string    `json:"tool" doc:"the server's name of the tool or prompt, or the URI of the resource"`
	Name           string    `json:"name,omitempty" doc:"what it was called by, if that is another name"`
	Outcome        string    `json:"outcome" doc:"ok, error, or why the call failed: not_found, rejected, timeout, cancelled, …"`
	Error          string    `json:"error,omitempty"`
	Approval       string    `json:"approval,omitempty" doc:"person, if one agreed to this very call"`
	Trace          string    `json:"trace,omitempty" doc:"trace id that the client sent"`
	ArgumentsBytes int64     `json:"arguments_bytes"`
	ResultBytes    int64     `json:"result_bytes"`
	Arguments      string    `json:"arguments,omitempty" doc:"the first 16 KiB, secrets masked"`
	Result         string    `json:"result,omitempty" doc:"the first 16 KiB, secrets masked"`
	Cut            bool      `json:"cut,omitempty" doc:"there was more of the arguments or the result"`
	Busy           bool      `json:"busy,omitempty" doc:"there was too much traffic to keep arguments and result"`
}

// Failed reports whether a call was not successful.
func (r *Record) Failed() bool { return r.Outcome != OutcomeOK }

const hexDigits = "0123456789abcdef"

// appendJSON appends a string as JSON. Bytes that are not UTF-8 are replaced.
func appendJSON[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < 0x7f {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRune([]byte(s[i:min(len(s), i+utf8.UTFMax)])); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= utf8.RuneSelf:
			dst = append(dst, `\ufffd`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// appendRecord appends a record as a line. The result equals that of json.Marshal,
// in a tenth of the time.
func appendRecord(dst []byte, r *Record, arguments, result []byte) []byte {
	text := func(name, v string) {
		if v != "" {
			dst = appendJSON(append(append(append(dst, `,"`...), name...), `":`...), v)
		}
	}
	number := func(name string, v int64) {
		dst = strconv.AppendInt(append(append(append(dst, `,"`...), name...), `":`...), v, 10)
	}
	dst = strconv.AppendInt(append(dst, `{"id":`...), r.ID, 10)
	dst = append(r.Time.AppendFormat(append(dst, `,"time":"`...), time.RFC3339Nano), '"')
	dst = strconv.AppendFloat(append(dst, `,"took_ms":`...), r.TookMS, 'f', -1, 64)
	text("origin", r.Origin)
	text("client", r.Client)
	text("client_version", r.ClientVersion)
	text("principal", r.Principal)
	text("session", r.Session)
	text("method", r.Method)
	text("server", r.Server)
	text("tool", r.Tool)
	text("name", r.Name)
	text("outcome", r.Outcome)
	text("error", r.Error)
	text("approval", r.Approval)
	text("trace", r.Trace)
	number("arguments_bytes", r.ArgumentsBytes)
	number("result_bytes", r.ResultBytes)
	if len(arguments) > 0 {
		dst = appendJSON(append(dst, `,"arguments":`...), arguments)
	}
	if len(result) > 0 {
		dst = appendJSON(append(dst, `,"result":`...), result)
	}
	if r.Cut {
		dst = append(dst, `,"cut":true`...)
	}
	if r.Busy {
		dst = append(dst, `,"busy":true`...)
	}
	return append(dst, '}', '\n')
}
