package servers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// parsed reads an entry of a configuration file.
func parsed(t *testing.T, entry string) Server {
	t.Helper()
	cfg, err := Parse("t", []byte(`{"mcpServers":{"s":`+entry+`}}`), FormatYaya)
	if err != nil || len(cfg.Servers) != 1 {
		t.Fatalf("got %v, %v, want len(Servers) 1", err, cfg.Invalid)
	}
	return cfg.Servers[0]
}

const (
	maskStdio = `{"command":"npx","args":["-y","pkg"],"cwd":"/w","env":{"API_KEY":"sk-canary-123456","HOST":"${HOST}","N":"1canary","NONE":""}}`
	maskHTTP  = `{"type":"http","url":"https://canary:canary@example.com/mcp?key=canary-abcdef&x=1&canary","headers":{"Authorization":"Bearer canary"},"oauth":{"clientId":"id","clientSecret":"canary-secret-1","issuer":"https://as","idpClientSecret":"canary-idp","idpIssuer":"https://idp"}}`
)

// sameStdio is maskStdio with other variables and more settings.
func sameStdio(env, more string) string {
	return `{"command":"npx","args":["-y","pkg"],"cwd":"/w","env":{` + env + `}` + more + `}`
}

// A masked entry has nothing of a secret, and restores the original when it comes back
// unchanged.
func TestMask(t *testing.T) {
	for name, entry := range map[string]string{
		"stdio":    maskStdio,
		"http":     maskHTTP,
		"args":     `{"command":"npx","args":["mcp-remote","https://me:canary-pass@h/x?token=canary","--header","Authorization: token canary","--api-key","canary","--token=canary","-p","8080","API_KEY=canary"],"env":{}}`,
		"short":    `{"command":"/usr/bin/serve","args":["-p","canary","-u","me"]}`,
		"default":  `{"command":"x","args":["--token","${T:-canary}"],"env":{"A":"${B:-canary}"}}`,
		"a path":   `{"type":"http","url":"https://h/ghp_canary0123456789abcdef/mcp?x=1"}`,
		"variable": `{"type":"http","url":"https://${HOST}/mcp?key=canary","headers":{"A":"${TOKEN}"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, entry)
			shown, err := s.Masked()
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"canary", "3456", "cdef", "et-1"} {
				if strings.Contains(string(shown), part) || strings.Contains(s.Runs(), part) || strings.Contains(s.Endpoint(), part) {
					t.Errorf("%q of a secret is shown: %s; %s; %s", part, shown, s.Runs(), s.Endpoint())
				}
			}
			back, err := parsed(t, string(shown)).Unmask(s)
			if err != nil {
				t.Fatal(err)
			}
			want, _ := json.Marshal(s)
			if got, _ := json.Marshal(back); string(got) != string(want) {
				t.Errorf("it came back as %s, was %s", got, want)
			}
		})
	}
	shown, err := parsed(t, maskStdio).Masked()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(shown), `"env":{"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":""}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s in it", got, want)
	}
}

// Secrets among the arguments are masked wherever the command line is shown; the other
// arguments stay readable.
func TestSecretsInArgsAreMasked(t *testing.T) {
	const entry = `{"command":"docker","args":["run","-p","8080:80","-e","LEVEL=debug","-e","GITHUB_TOKEN=ghp_x","-v","/a:/b","--author","eve","--max-tokens","5","img","--password","hunter2","--db=postgres://me:hunter2@db/x","https://h/?a=1&api_key=hunter2","--header","X-Api-Key: hunter2","--key","${KEY}"]}`
	const want = `docker run -p 8080:80 -e LEVEL=debug -e 'GITHUB_TOKEN=****' -v /a:/b --author eve --max-tokens 5 img --password '****' '--db=postgres://me:****@db/x' 'https://h/?a=1&api_key=****' --header 'X-Api-Key: ****' --key ${KEY}`
	s := parsed(t, entry)
	if got := s.Endpoint(); got != want {
		t.Errorf("Endpoint\n got %s\nwant %s", got, want)
	}
	if got := s.RunsExactly(); !strings.Contains(got, "GITHUB_TOKEN=ghp_x") {
		t.Errorf("RunsExactly = %s, want all of the command line", got)
	}
	if got := parsed(t, `{"command":"npx","args":["-y","-p","typescript","tsc"]}`).Endpoint(); got != "npx -y -p typescript tsc" {
		t.Errorf("Endpoint = %s, want the package in it", got)
	}
	if got, want := fmt.Sprint(s.Secrets()), "[ghp_x hunter2 hunter2 hunter2 hunter2]"; got != want {
		t.Errorf("Secrets = %s, want %s", got, want)
	}
	for _, bad := range []string{"ftp://me:hunter2@h/x", "h/?token=hunter2"} {
		cfg, err := Parse("t", []byte(`{"mcpServers":{"s":{"type":"http","url":"`+bad+`"}}}`), FormatYaya)
		if err != nil || len(cfg.Invalid) != 1 || strings.Contains(cfg.Invalid[0].Err.Error(), "hunter2") {
			t.Errorf("a wrong URL: %v, %v, want an error without the secret", cfg.Invalid, err)
		}
	}
}

// SEC-12: a secret stays where the server is the same program or at the same address,
// and nowhere else; a mask is never taken for a secret.
func TestMaskedSecretsStayWhereTheyWere(t *testing.T) {
	for name, c := range map[string]struct {
		old, now string // entries; in now, of what is masked
		want     string // the secret that is there, or
		refused  string // what the error names
	}{
		"another argument of the bridge": {maskStdio, sameStdio(`"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":""`, `,"disabled_tools":["x"]`), `"API_KEY":"sk-canary-123456"`, ""},
		"all that are secret are new":    {maskStdio, sameStdio(`"API_KEY":"rotated","N":"2"`, ``), `"API_KEY":"rotated","N":"2"`, ""},
		"the same, entered":              {maskStdio, sameStdio(`"API_KEY":"****","HOST":"${HOST}","N":"1canary","NONE":""`, ``), `"API_KEY":"sk-canary-123456"`, ""},
		"one that is new":                {maskStdio, sameStdio(`"API_KEY":"rotated","HOST":"${HOST}","N":"****","NONE":""`, ``), "", "env.N is masked, and env.API_KEY"},
		"address of the command":         {maskStdio, sameStdio(`"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":"","OPENAI_BASE_URL":"https://evil.example"`, ``), "", "env.API_KEY is masked, and env.OPENAI_BASE_URL"},
		"proxy of the command":           {maskStdio, sameStdio(`"API_KEY":"****","HOST":"${HOST}","HTTPS_PROXY":"http://evil.example","N":"****","NONE":""`, ``), "", "env.HTTPS_PROXY"},
		"another address":                {maskStdio, sameStdio(`"API_KEY":"****","HOST":"evil.example","N":"****","NONE":""`, ``), "", "env.HOST"},
		"an address that was empty":      {maskStdio, sameStdio(`"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":"evil.example"`, ``), "", "env.NONE"},
		"emptied":                        {maskStdio, sameStdio(`"API_KEY":"****","HOST":"","N":"****","NONE":""`, ``), "", "env.HOST"},
		"one that is removed":            {maskStdio, sameStdio(`"API_KEY":"****","N":"****","NONE":""`, ``), "", "env.HOST"},
		"a secret that is removed":       {maskStdio, sameStdio(`"API_KEY":"****","HOST":"${HOST}","NONE":""`, ``), "", "env.N"},
		"a variable that is passed":      {maskStdio, sameStdio(`"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":""`, `,"env_vars":["HTTPS_PROXY"]`), "", "env.API_KEY is masked, and env_vars"},
		"command":                        {maskStdio, `{"command":"evil","args":["-y","pkg"],"cwd":"/w","env":{"API_KEY":"****"}}`, "", "env.API_KEY is masked, and command"},
		"args":                           {maskStdio, `{"command":"npx","args":["-y","evil"],"cwd":"/w","env":{"API_KEY":"****"}}`, "", "env.API_KEY is masked, and args"},
		"fewer args":                     {maskStdio, `{"command":"npx","args":["-y"],"cwd":"/w","env":{"API_KEY":"****"}}`, "", "args"},
		"folder":                         {maskStdio, `{"command":"npx","args":["-y","pkg"],"cwd":"/evil","env":{"API_KEY":"****"}}`, "", "cwd"},
		"no folder":                      {maskStdio, `{"command":"npx","args":["-y","pkg"],"env":{"API_KEY":"****"}}`, "", "cwd"},
		"file of variables":              {maskStdio, `{"command":"npx","args":["-y","pkg"],"cwd":"/w","envFile":"/evil","env":{"API_KEY":"****"}}`, "", "envFile"},
		"path of the command":            {maskStdio, `{"command":"npx","args":["-y","pkg"],"cwd":"/w","env":{"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":"","PATH":"/evil"}}`, "", "env.PATH"},
		"command to address":             {maskStdio, `{"type":"http","url":"https://evil/mcp","headers":{"API_KEY":"****"}}`, "", "headers.API_KEY is masked, and type"},
		"another variable":               {maskStdio, `{"command":"npx","args":["-y","pkg"],"cwd":"/w","env":{"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":"","OTHER":"****"}}`, "", "env.OTHER is masked, and no secret is known"},
		"one that was empty":             {maskStdio, `{"command":"npx","args":["-y","pkg"],"cwd":"/w","env":{"API_KEY":"****","HOST":"${HOST}","N":"****","NONE":"****"}}`, "", "env.NONE"},
		"a mask in a value":              {maskStdio, `{"command":"npx","args":["-y","pkg"],"cwd":"/w","env":{"API_KEY":"Bearer ****"}}`, "", "env.API_KEY"},
		"a mask with an end":             {maskStdio, `{"command":"npx","args":["-y","pkg"],"cwd":"/w","env":{"API_KEY":"****3456"}}`, "", "env.API_KEY"},
		"the same args, masked":          {`{"command":"x","args":["--token","canary","-v"]}`, `{"command":"x","args":["--token","****","-v"],"disabled_tools":["x"]}`, `"args":["--token","canary","-v"]`, ""},
		"other args, masked":             {`{"command":"x","args":["--token","canary","-v"]}`, `{"command":"x","args":["--token","****","--to","evil"]}`, "", "args is masked, and args"},
		"another command, args masked":   {`{"command":"x","args":["--token","canary"]}`, `{"command":"evil","args":["--token","****"]}`, "", "args is masked, and command"},
		"new args":                       {`{"command":"x","args":["--token","canary"]}`, `{"command":"x","args":["--token","new"]}`, `"args":["--token","new"]`, ""},
		"a masked path, another host":    {`{"type":"http","url":"https://h/ghp_canary0123456789abcdef/mcp"}`, `{"type":"http","url":"https://evil/****/mcp"}`, "", "the path in url is masked, and url"},
		"another command, new secrets":   {maskStdio, `{"command":"other","env":{"API_KEY":"new"}}`, `"API_KEY":"new"`, ""},

		"the same address":          {maskHTTP, `{"type":"http","url":"https://****@EXAMPLE.com:443/mcp?x=2&key=****","headers":{"Authorization":"****","X":"1"}}`, `"url":"https://canary:canary@EXAMPLE.com:443/mcp?x=2\u0026key=canary-abcdef"`, ""},
		"host":                      {maskHTTP, `{"type":"http","url":"https://evil.example/mcp","headers":{"Authorization":"****"}}`, "", "headers.Authorization is masked, and url"},
		"port":                      {maskHTTP, `{"type":"http","url":"https://example.com:8443/mcp","headers":{"Authorization":"****"}}`, "", "headers.Authorization"},
		"scheme":                    {maskHTTP, `{"type":"http","url":"http://example.com/mcp","headers":{"Authorization":"****"}}`, "", "headers.Authorization"},
		"path":                      {maskHTTP, `{"type":"http","url":"https://example.com/other/mcp","headers":{"Authorization":"****"}}`, "", "headers.Authorization"},
		"user as host":              {maskHTTP, `{"type":"http","url":"https://example.com@evil.example/mcp","headers":{"Authorization":"****"}}`, "", "headers.Authorization"},
		"query as host":             {maskHTTP, `{"type":"http","url":"https://evil.example?@example.com/mcp","headers":{"Authorization":"****"}}`, "", "headers.Authorization"},
		"fragment as host":          {maskHTTP, `{"type":"http","url":"https://evil.example#@example.com/mcp","headers":{"Authorization":"****"}}`, "", "headers.Authorization"},
		"query's secret":            {maskHTTP, `{"type":"http","url":"https://evil.example/mcp?key=****"}`, "", `the query's "key" in url`},
		"query's secret, encoded":   {maskHTTP, `{"type":"http","url":"https://evil.example/mcp?key=%2a%2A**"}`, "", `the query's "key" in url`},
		"user's secret":             {maskHTTP, `{"type":"http","url":"https://****@evil.example/mcp"}`, "", "the user in url"},
		"user's secret, encoded":    {maskHTTP, `{"type":"http","url":"https://%2A%2A%2A%2A@evil.example/mcp"}`, "", "the user in url"},
		"another parameter":         {maskHTTP, `{"type":"http","url":"https://example.com/mcp?other=****"}`, "", `the query's "other" in url`},
		"another header":            {maskHTTP, `{"type":"http","url":"https://example.com/mcp","headers":{"X":"****"}}`, "", "headers.X"},
		"client secret, address":    {maskHTTP, `{"type":"http","url":"https://evil.example/mcp","oauth":{"clientId":"id","clientSecret":"****","issuer":"https://as"}}`, "", "oauth.clientSecret is masked, and url"},
		"client secret, issuer":     {maskHTTP, `{"type":"http","url":"https://example.com/mcp","oauth":{"clientId":"id","clientSecret":"****","issuer":"https://evil","idpIssuer":"https://idp"}}`, "", "oauth.clientSecret is masked, and oauth.issuer"},
		"client secret, no issuer":  {maskHTTP, `{"type":"http","url":"https://example.com/mcp","oauth":{"clientId":"id","clientSecret":"****","idpIssuer":"https://idp"}}`, "", "oauth.issuer"},
		"identity provider":         {maskHTTP, `{"type":"http","url":"https://example.com/mcp","oauth":{"clientId":"id","issuer":"https://as","idpClientSecret":"****","idpIssuer":"https://evil"}}`, "", "oauth.idpClientSecret is masked, and oauth.idpIssuer"},
		"address to command":        {maskHTTP, `{"command":"evil","env":{"Authorization":"****"}}`, "", "env.Authorization is masked, and type"},
		"variable in the address":   {`{"type":"http","url":"https://${HOST}/mcp","headers":{"A":"canary"}}`, `{"type":"http","url":"https://${EVIL}/mcp","headers":{"A":"****"}}`, "", "headers.A"},
		"a parameter twice":         {`{"type":"http","url":"https://example.com/mcp?key=one&key=two"}`, `{"type":"http","url":"https://example.com/mcp?key=****&key=****&x=1"}`, `?key=one\u0026key=two\u0026x=1"`, ""},
		"no path":                   {`{"type":"http","url":"https://canary@example.com?key=one"}`, `{"type":"http","url":"https://****@example.com?key=****&x=1"}`, `"https://canary@example.com?key=one\u0026x=1"`, ""},
		"another address, all new":  {maskHTTP, `{"type":"http","url":"https://other.example/mcp","headers":{"Authorization":"Bearer new"}}`, `"Authorization":"Bearer new"`, ""},
		"another transport, as one": {maskHTTP, `{"type":"sse","url":"https://example.com/mcp","headers":{"Authorization":"****"}}`, `"Authorization":"Bearer canary"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old, now := parsed(t, c.old), parsed(t, c.now)
			got, err := now.Unmask(old)
			raw, _ := json.Marshal(got)
			if c.refused == "" && (err != nil || !strings.Contains(string(raw), c.want)) {
				t.Errorf("got %s, %v, want %s in it", raw, err, c.want)
			}
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), "enter the secret") {
					t.Errorf("got %s, %v, want an error with %q", raw, err, c.refused)
				}
				if _, err := Set("f", nil, now); err == nil {
					t.Error("Set wrote a mask as a secret")
				}
				if _, err := now.Unmask(Server{}); err == nil { // a new server, or one under another name
					t.Error("a new server has a mask as a secret")
				}
			}
		})
	}
}

// R18: what is agreed to is shown exactly: nothing can be hidden in blanks, quotes or
// characters that change the direction of the text.
func TestRuns(t *testing.T) {
	s := Server{Transport: Stdio, Command: "/bin/sh", Args: []string{"-c", "echo hi; \u202erm -rf ~", "", "a b"}, Dir: "/tmp/x y", Env: map[string]string{"KEY": "secret"}, PassEnv: []string{"HOME"}, EnvFile: ".env"}
	want := `/bin/sh -c "echo hi; \u202erm -rf ~" "" "a b" in "/tmp/x y" with KEY, HOME and the variables of ".env"`
	if got := s.Runs(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := (Server{Transport: HTTP, URL: "https://h/mcp?k=secret-123456", Headers: map[string]string{"B": "1", "A": "2"}}).Runs(); got != "https://h/mcp?k=**** with the headers A, B" {
		t.Errorf("got %s; want the key masked, and the headers A and B named", got)
	}
}
