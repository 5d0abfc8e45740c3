package upstream_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/proc"
)

// modeEnv makes the test binary a stdio MCP server with a fault.
const modeEnv = "FAKE_MCP_MODE"

func TestMain(m *testing.M) {
	if proc.GuardMain() {
		return
	}
	if mode := os.Getenv(modeEnv); mode != "" {
		fake(mode)
		return
	}
	// The official SDK keeps the sessions of a server that a test has "restarted"
	// until they expire.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/internal/jsonrpc2.(*Connection).readIncoming"))
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Error  json.RawMessage `json:"error"`
}

var outMu sync.Mutex

func say(format string, args ...any) {
	outMu.Lock()
	defer outMu.Unlock()
	fmt.Printf(format+"\n", args...)
}

func result(id json.RawMessage, res string) { say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, res) }

const initResult = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`

// ask is a call that asks its client many times, one after the other.
type ask struct {
	id              json.RawMessage
	left            int
	answers, errors int
	others          []json.RawMessage // calls that get the same answer
	reported        []string          // the client's progress
}

var asking *ask

func (a *ask) next() {
	a.left--
	say(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"m","_meta":{"progressToken":"theirs","io.modelcontextprotocol/x":1,"vendor/y":2}}}`, a.left)
}

func (a *ask) heard(m message) {
	if m.Error != nil {
		a.errors++
	} else {
		a.answers++
	}
	if a.left > 0 {
		a.next()
		return
	}
	for _, id := range append(a.others, a.id) {
		result(id, fmt.Sprintf(`{"content":[{"type":"text","text":"%d answers, %d errors"}],"last":%s,"reported":[%s]}`, a.answers, a.errors, cmp.Or(string(m.Error), "null"), strings.Join(a.reported, ",")))
	}
}

// fake is a stdio MCP server. The mode is a list of faults.
func fake(modes string) {
	has := func(m string) bool { return strings.Contains(" "+modes+" ", " "+m+" ") }
	if has("ignore-term") {
		signal.Ignore(syscall.SIGTERM)
		defer func() { select {} }()
	}
	if has("exit-at-once") {
		fmt.Fprintln(os.Stderr, "cannot start: \x1b[31mno licence")
		os.Exit(3)
	}
	if has("log-on-signal") {
		told := make(chan os.Signal, 1)
		signal.Notify(told, hosttest.User)
		go func() {
			for range told {
				say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%d"}}`, os.Getpid())
			}
		}()
	}
	if has("die-if-second") {
		flag, err := os.OpenFile(os.Getenv("FAKE_MCP_FLAG"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			modes += " die-on-call"
		} else {
			_ = flag.Close()
		}
	}
	if has("flood-stderr") {
		go func() {
			for {
				fmt.Fprint(os.Stderr, strings.Repeat("x", 4096))
			}
		}()
	}
	calls := 0
	in := bufio.NewReaderSize(os.Stdin, 16<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch m.Method {
		case "":
			if asking != nil {
				asking.heard(m)
			}
		case "server/discover":
			switch {
			case has("exit-on-unknown"):
				os.Exit(1)
			case has("silent-on-unknown"):
			case has("empty-discover"):
				result(m.ID, `{}`)
			case has("modern"):
				result(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"2"}}}`)
			default:
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
			}
		case "initialize":
			switch {
			case has("greets"):
				say("Server starting on port 8080\x1b[0m\a with %s", os.Getenv("FAKE_TOKEN"))
				continue
			case has("hang-initialize"):
				continue
			case has("exit-on-initialize"):
				os.Exit(1)
			case has("refuse-initialize"):
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}`, m.ID)
				continue
			case has("unknown-initialize"):
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
				continue
			case has("invalid-initialize"):
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, m.ID)
				continue
			case has("old-initialize") && !strings.Contains(string(m.Params), `"2025-03-26"`):
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2025-03-26","2024-11-05"]}}}`, m.ID)
				continue
			}
			if has("bad-version") {
				result(m.ID, `{"protocolVersion":"1999-01-01","capabilities":{}}`)
				continue
			}
			if has("garbage") {
				say("Starting server...\n\nnot json {{{")
			}
			switch {
			case has("instructs"):
				result(m.ID, strings.TrimSuffix(initResult, "}")+`,"instructions":"Use me.\u202e`+strings.Repeat("x", 100_000)+`"}`)
			case has("speaks-2025-03-26"):
				result(m.ID, strings.Replace(initResult, "2025-11-25", "2025-03-26", 1))
			case has("speaks-2025-06-18"):
				result(m.ID, strings.Replace(initResult, "2025-11-25", "2025-06-18", 1))
			default:
				result(m.ID, initResult)
			}
		case "tools/list":
			list(m, has)
		case "tools/call":
			calls++
			call(m, calls, has)
		case "notifications/progress":
			if asking != nil {
				asking.reported = append(asking.reported, string(m.Params))
			}
		case "notifications/cancelled":
			fmt.Fprintln(os.Stderr, "cancelled", string(m.Params))
			if late != nil {
				result(late, `{"content":[{"type":"text","text":"late"}]}`)
			}
		}
	}
}

var (
	lists int             // that were asked for
	late  json.RawMessage // the call that is answered once it has been cancelled
)

func list(m message, has func(string) bool) {
	switch {
	case has("hang-list"):
	case has("makes-tools"): // while its list is on its way, twice or, if it never ends, each time
		lists++
		if lists <= 2 || has("for-ever") {
			say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		var tools []string
		for n := range lists {
			tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, n+1))
		}
		result(m.ID, `{"tools":[`+strings.Join(tools, ",")+`]}`)
	case has("endless-pages"):
		result(m.ID, `{"tools":[{"name":"t`+strconv.Itoa(int(time.Now().UnixNano()%1e9))+`","inputSchema":{"type":"object"}}],"nextCursor":"`+strconv.FormatInt(time.Now().UnixNano(), 10)+`"}`)
	case has("same-cursor"):
		result(m.ID, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"again"}`)
	case has("long-description"):
		result(m.ID, `{"tools":[{"name":"t","description":"`+strings.Repeat("ä", 100_000)+`","inputSchema":{"type":"object"}}]}`)
	case has("many-tools"):
		var b strings.Builder
		for i := range 5000 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"name":"t%d","inputSchema":{"type":"object"}}`, i)
		}
		result(m.ID, `{"tools":[`+b.String()+`]}`)
	case has("output-schema"):
		result(m.ID, `{"tools":[{"name":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}`)
	default:
		result(m.ID, `{"tools":[{"name":"echo","description":"d","inputSchema":{"type":"object","$defs":{"x":{}},"allOf":[{}],"x-unknown":1},"futureField":{"n":12345678901234567890}},{"name":"hidden","inputSchema":{"type":"object"}},{"name":"header","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"bad header\r\n"}}}}]}`)
	}
}

// hanging are calls that are answered with the next one that wants no bytes.
var hanging []json.RawMessage

func call(m message, n int, has func(string) bool) {
	var p struct {
		Name      string
		Arguments json.RawMessage
		Meta      struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	switch {
	case has("die-on-call"):
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(7)
	case has("two-ids"):
		say(`{"jsonrpc":"2.0","id":%s,"result":{},"id":77}`, m.ID)
	case has("nested"):
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":%s`, m.ID, strings.Repeat("[", 2<<20))
	case has("text-id"):
		say(`{"jsonrpc":"2.0","id":"%s","result":{"content":[]}}`, m.ID)
	case has("bad-batch"):
		say(`[{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}, garbage]`, m.ID)
	case has("unasked-batch"):
		say(`[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]`, m.ID)
	case has("hang-call"):
	case has("late"):
		late = m.ID
	case has("wrong-ids"):
		say(`{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"text","text":"string id"}]}}`, strings.Trim(string(m.ID), `"`))
		say(`{"jsonrpc":"2.0","id":999999,"result":{"content":[]}}`)
		say(`{"jsonrpc":"2.0","id":null,"result":{}}`)
		say(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"both"}}`, m.ID)
	case has("twice"):
		result(m.ID, `{"content":[{"type":"text","text":"first"}]}`)
		result(m.ID, `{"content":[{"type":"text","text":"second"}]}`)
	case has("endless-line"):
		outMu.Lock()
		fmt.Print(`{"jsonrpc":"2.0","id":`, string(m.ID), `,"result":{"content":[{"type":"text","text":"`)
		for range 64 { // UP-12: 64 MiB
			fmt.Print(strings.Repeat("x", 1<<20))
		}
		outMu.Unlock()
	case has("sizes"):
		var a struct {
			Bytes         int
			IDLast, Hangs bool
			Stalls        bool // in the middle of the line
		}
		_ = json.Unmarshal(p.Arguments, &a)
		if a.Hangs {
			hanging = append(hanging, m.ID)
			return
		}
		if a.Stalls {
			outMu.Lock()
			fmt.Print(`{"jsonrpc":"2.0","id":`, string(m.ID), `,"result":{"content":[{"type":"text","text":"`, strings.Repeat("x", a.Bytes))
			outMu.Unlock()
			fmt.Fprintln(os.Stderr, "stalled")
			return
		}
		body := `"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", a.Bytes) + `"}]}`
		if a.IDLast {
			say(`{%s,"jsonrpc":"2.0","id":%s}`, body, m.ID)
		} else {
			say(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body)
		}
		if a.Bytes == 0 {
			for _, id := range hanging {
				result(id, `{"content":[{"type":"text","text":"at last"}]}`)
			}
			hanging = nil
		}
	case has("keep-printing"):
		for range 50 {
			say("DEBUG something happened")
		}
	case has("other-era"): // members that mean something in the modern era only
		say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"_meta":{"io.modelcontextprotocol/subscriptionId":1,"v/x":1}}}`, cmp.Or(string(p.Meta.ProgressToken), "0"))
		result(m.ID, fmt.Sprintf(`{"content":[],"resultType":"input_required","requestState":"s","ttlMs":1,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"inner"},"v/x":1},"params":%s}`, m.Params))
	case has("batches"):
		say(`[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}},{"jsonrpc":"2.0","id":%s,"result":{"content":[],"came":"in a batch"}}]`, cmp.Or(string(p.Meta.ProgressToken), "0"), m.ID)
		say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"came":"alone"}}`, m.ID)
	case has("not-an-object"):
		result(m.ID, `"text"`)
	case has("duplicate-members"):
		result(m.ID, `{"content":[],"content":[{"type":"text","text":"evil"}]}`)
	case has("error"):
		say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32099,"message":"m","data":{"n":9007199254740993},"extra":1}}`, m.ID)
	case has("progress"):
		for i := range 5 {
			say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":5,"message":"m%d","extra":9007199254740993}}`, p.Meta.ProgressToken, i+1, i)
		}
		say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":424242,"progress":1}}`)
		result(m.ID, `{"content":[{"type":"text","text":"done"}]}`)
	case has("change-list"):
		for range 1000 {
			say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		result(m.ID, `{"content":[]}`)
	case has("huge"):
		var n struct{ Items, Size, Structured int }
		_ = json.Unmarshal(p.Arguments, &n)
		structured := "12345678901234567890"
		if n.Structured > 0 {
			structured = `"` + strings.Repeat("s", n.Structured) + `"`
		}
		item := `{"type":"text","text":"` + strings.Repeat("é", n.Size/2) + `"}`
		result(m.ID, `{"content":[`+strings.TrimSuffix(strings.Repeat(item+",", n.Items), ",")+`],"structuredContent":{"n":`+structured+`},"_meta":{"vendor/key":1},"isError":true}`)
	case has("long-description"):
		result(m.ID, `{"content":[]}`)
	case has("ask-among"): // asks when a second call is in flight
		if asking == nil {
			asking = &ask{id: m.ID}
			return
		}
		asking.others = append(asking.others, m.ID)
		asking.left = 1
		asking.next()
	case has("ask-large"):
		asking = &ask{id: m.ID}
		say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"%s"}}`, strings.Repeat("m", 3<<20))
	case has("ask-once"):
		asking = &ask{id: m.ID, left: 1}
		asking.next()
	case has("ask-often"):
		// Answers are read while questions are asked, so they go through the loop.
		asking = &ask{id: m.ID, left: 150}
		asking.next()
	case has("ask-back"):
		say(`{"jsonrpc":"2.0","id":"srv-1","method":"sampling/createMessage","params":{}}`)
		say(`{"jsonrpc":"2.0","id":"srv-2","method":"ping"}`)
		result(m.ID, `{"content":[{"type":"text","text":"asked"}]}`)
	case has("env"):
		env, _ := json.Marshal(strings.Join(os.Environ(), "\n"))
		result(m.ID, `{"content":[{"type":"text","text":`+string(env)+`}]}`)
	case has("sleep"):
		go func() {
			time.Sleep(50 * time.Millisecond)
			result(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"pid":%d}`, strconv.Quote(string(p.Arguments)), os.Getpid()))
		}()
	default:
		result(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%s},{"type":"future","n":12345678901234567890}],"pid":%d,"call":%d,"params":%s}`, strconv.Quote(string(p.Arguments)), os.Getpid(), n, m.Params))
	}
}
