package masked

import (
	"encoding/json"
	"strings"
	"testing"
)

// Values whose names say that they are secrets are hidden whole.
func TestNamedSecretsAreHiddenWhole(t *testing.T) {
	var s Secrets
	for name, c := range map[string]struct{ text, want string }{
		"a scheme of a host":        {"Authorization: token ghp_0123456789abcdefghij", "Authorization: token ****"},
		"a scheme":                  {"Authorization: ApiKey x", "Authorization: ApiKey ****"},
		"a scheme nobody knows":     {"authorization: Mine x y", "authorization: ****"},
		"a short bearer":            {"Authorization: Bearer x", "Authorization: Bearer ****"},
		"a header in a log":         {"sent Authorization: Bearer x status=200", "sent Authorization: Bearer **** status=200"},
		"a bearer, alone":           {`{"h":"Bearer abc"}`, `{"h":"Bearer ****"}`},
		"of Amazon":                 {"Authorization: AWS4-HMAC-SHA256 Credential=AKIA/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=fe5f80f77d5fa3beca038a248ff027d0", "Authorization: AWS4-HMAC-SHA256 ****"},
		"a signature, alone":        {"x Signature=fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024", "x Signature=****"},
		"a signed URL":              {"https://h/x?X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027d0&a=1", "https://h/x?X-Amz-Signature=****&a=1"},
		"digest":                    {`Authorization: Digest username="me", response="6629fae49393a05397450978507c4ef1"`, `Authorization: Digest ****`},
		"a proxy's":                 {"Proxy-Authorization: Basic dTpw", "Proxy-Authorization: Basic ****"},
		"a header of curl":          {`curl -H "Authorization: token x" https://h/p`, `curl -H "Authorization: token ****" https://h/p`},
		"a header of curl, '":       {`curl -H 'X-Api-Key: a b' https://h/p`, `curl -H 'X-Api-Key: ****' https://h/p`},
		"a second cookie":           {"Cookie: a=one; sid=two\nHost: h", "Cookie: ****\nHost: h"},
		"a cookie that is set":      {"Set-Cookie: sid=two; Path=/; HttpOnly\r\nHost: h", "Set-Cookie: ****\r\nHost: h"},
		"cookies of curl":           {`curl -b x -H "Cookie: a=b; c=d" https://h`, `curl -b x -H "Cookie: ****" https://h`},
		"a cookie, a member":        {`{"Cookie":"a=one; sid=two"}`, `{"Cookie":"****"}`},
		"two words":                 {"passphrase: correct horse\nuser: eve", "passphrase: ****\nuser: eve"},
		"two words of an env file":  {"A=1\nPASSPHRASE=correct horse\nB=2", "A=1\nPASSPHRASE=****\nB=2"},
		"a command's variable":      {"PGPASSWORD=x psql -h db", "PGPASSWORD=**** psql -h db"},
		"two words in quotes":       {`export PASSPHRASE="correct horse" B=2`, `export PASSPHRASE="****" B=2`},
		"two words, a member":       {`{"passphrase":"correct horse","b":2}`, `{"passphrase":"****","b":2}`},
		"YAML":                      {"db:\n  password: correct horse\n  port: 5432", "db:\n  password: ****\n  port: 5432"},
		"an array":                  {`{"passwords":["a","b"],"n":[1]}`, `{"passwords":["****","****"],"n":[1]}`},
		"an object":                 {`{"credentials":{"user":"u","deep":[{"k":7,"on":true}]},"n":1}`, `{"credentials":{"user":"****","deep":[{"k":"****","on":true}]},"n":1}`},
		"a name with escapes":       {`{"pass\u0077ord":"x","n":1}`, `{"pass\u0077ord":"****","n":1}`},
		"in Python":                 {`{'passwords': ['a', 'b'], 'n': 1}`, `{'passwords': [****], 'n': 1}`},
		"a flag":                    {"tool --password hunter2 --verbose", "tool --password **** --verbose"},
		"a flag with =":             {"tool --token=abc --n=1", "tool --token=**** --n=1"},
		"a flag in quotes":          {`tool --api-key "a b" x`, `tool --api-key "****" x`},
		"a short flag":              {"sshpass -p hunter2 ssh h", "sshpass -p **** ssh h"},
		"a short flag, attached":    {"mysql -u root -phunter2 db", "mysql -u root -p**** db"},
		"the user of curl":          {"curl -u me:hunter2 https://h", "curl -u me:**** https://h"},
		"args":                      {`{"command":"x","args":["--token","abc","--n","1","--key=2"]}`, `{"command":"x","args":["--token","****","--n","1","--key=2"]}`},
		"args with =":               {`["--password=abc","-v"]`, `["--password=****","-v"]`},
		"args with a short flag":    {`{"args":["-p","hunter2"]}`, `{"args":["-p","****"]}`},
		"args with a header":        {`["--header","Authorization: Bearer abc","https://h"]`, `["--header","Authorization: Bearer ****","https://h"]`},
		"a pair":                    {`{"headers":[{"name":"Authorization","value":"x"},{"name":"Host","value":"h"}]}`, `{"headers":[{"name":"Authorization","value":"****"},{"name":"Host","value":"h"}]}`},
		"a pair, turned":            {`[{"value":"x y","enabled":true,"name":"API_TOKEN"}]`, `[{"value":"****","enabled":true,"name":"API_TOKEN"}]`},
		"key and value":             {`{"key":"password","value":"x"}`, `{"key":"password","value":"****"}`},
		"header and value":          {`{"header":"X-Api-Key","value":["x"]}`, `{"header":"X-Api-Key","value":"****"}`},
		"a tuple":                   {`[["Authorization","Bearer x"],["Host","h"]]`, `[["Authorization","****"],["Host","h"]]`},
		"the user of a URL":         {"postgres://me:hunter2@db:5432/x", "postgres://me:****@db:5432/x"},
		"a token in a URL":          {"https://0123456789abcdef0123@h/x", "https://****@h/x"},
		"a password with @":         {"https://me:p@ss@h/x", "https://me:****@h/x"},
		"a query":                   {"GET https://h/?a=1&api_key=x&b=2", "GET https://h/?a=1&api_key=****&b=2"},
		"a key of a query":          {"https://h/?key=0123456789abcdef&x=1", "https://h/?key=****&x=1"},
		"a private key":             {"x\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nAAAA\n-----END RSA PRIVATE KEY-----\ny", "x\n-----BEGIN RSA PRIVATE KEY-----****-----END RSA PRIVATE KEY-----\ny"},
		"a private key, a member":   {`{"f":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"}`, `{"f":"-----BEGIN PRIVATE KEY-----****-----END PRIVATE KEY-----\n"}`},
		"a private key, cut":        {"-----BEGIN OPENSSH PRIVATE KEY-----\nMIIE", "-----BEGIN OPENSSH PRIVATE KEY-----****"},
		"GitHub":                    {"use ghp_0123456789abcdefghijABCDEFGHIJ012345 now", "use **** now"},
		"GitHub, fine":              {"github_pat_11ABCDEFG0123456789_abcdefghijklmnop", "****"},
		"OpenAI":                    {"sk-proj-0123456789abcdefghij", "****"},
		"Anthropic":                 {"is sk-ant-api03-abcdefghijklmnop-qrst.", "is ****."},
		"Slack":                     {"xoxb-123456789012-abcdefghijkl", "****"},
		"Amazon":                    {"id AKIAIOSFODNN7EXAMPLE.", "id ****."},
		"Google":                    {"AIzaSyA0123456789abcdefghijklmnopqrstuv", "****"},
		"JWT":                       {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF_-123", "****"},
		"GitLab":                    {"glpat-abcdefghijklmnop1234", "****"},
		"npm":                       {"//r/:_authToken=npm_0123456789abcdefghijABCDEFGHIJ012345", "//r/:_authToken=****"},
		"a token after an escape":   {`a\nghp_0123456789abcdefghijABCDEFGHIJ012345`, `a\n****`},
		"yaya's own":                {"yaya_" + strings.Repeat("0AZ", 20)[:59], "****"},
		"a passphrase of words":     {"passphrase: too many cooks", "passphrase: ****"},
		"a passphrase, no":          {"passphrase: no such luck", "passphrase: ****"},
		"a number":                  {"password: 12345", "password: ****"},
		"a number, by its file":     {"app/password: 12345", "app/password: ****"},
		"an option of a connection": {"Server=h;User Id=sa;Password=a b;Port=1", "Server=h;User Id=sa;Password=****;Port=1"},
	} {
		t.Run(name, func(t *testing.T) { hides(t, &s, c.text, c.want) })
	}
}

// Ordinary text stays as it is: a record that hides too much is of no use.
func TestOrdinaryTextIsNotHidden(t *testing.T) {
	var s Secrets
	for name, text := range map[string]string{
		"counts":             `{"token_count":5,"max_tokens":100,"tokens":7,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":1}}`,
		"an author":          `{"author":"eve","authors":["a"],"authored":"x"}`,
		"cursors":            `{"nextPageToken":"abcdef","page_token":"x","progressToken":"7","continuation_token":"x","_meta":{"progressToken":3}}`,
		"a schema":           `{"properties":{"password":{"type":"string","description":"of the user","minLength":8},"token":{"type":"number"}}}`,
		"keys":               `{"key":"PROJ-12","keyboard":"de","monkey":"x","primary_key":"id","public_key":"AAAA","foreign_key":3}`,
		"pairs":              `[{"name":"Host","value":"h"},{"key":"token_count","value":"5"}]`,
		"who calls":          `{"level":"warn","principal":"token:laptop#2","message":"refused"}`,
		"a list of fields":   `["user","password","email"]`,
		"names of headers":   `["Authorization","Content-Type"]`,
		"flags":              `{"command":"docker","args":["run","-p","8080:80","--tokens","5","-v","/a:/b"]}`,
		"a package":          `{"command":"npx","args":["-y","-p","@scope/pkg","cmd"]}`,
		"a folder":           "mkdir -p a/b && cp -p x y",
		"a question":         "claude -p hello",
		"a port":             "ssh -p 2222 h",
		"help":               "  --token <TOKEN>   the token to use\n  --password to be asked",
		"prose":              "Bearer authentication uses a bearer token; Basic auth is a scheme. Tokens: none",
		"sentences":          "the secret of success: work",
		"an address":         "ssh://git@github.com/x and https://user@h/p, mail a@b.c",
		"a port in a URL":    "http://localhost:8080/@scope/pkg and https://h:1/x@y",
		"a query of a track": "https://h/?key=PROJ-12&author=eve&page=2",
		"a certificate":      "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
		"a reference":        `{"password":"${DB_PASSWORD}","h":"Authorization: Bearer ${TOKEN}","args":["--token","${T}"]}`,
		"a hash":             `{"sha":"0123456789abcdef0123456789abcdef01234567","id":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}`,
		"code":               `func token() string { return x }`,
		"a CSS class":        "sk-cube-grid and sk-fading-circle, task-0123456789abcdefghij",
		"a method":           `{"signature":"func Foo(a int) error"}`,
		"booleans":           `{"password":true,"secret":null,"token":""}`,
		"base64":             `{"data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"}`,
		"time":               `{"at":"2026-11-22T20:00:00Z","n":-1.5e+3}`,
		// A colon after the name of a file is followed by a reason or a place, not by a
		// value (GF-8: "**** such file").
		"a file that is gone":      "open /run/secrets/token: no such file or directory",
		"a file that is gone, cat": "cat: secret: No such file or directory\ncat: .password: No such file or directory",
		"a file, quoted":           "mkdir: cannot create directory '/x/secret': Read-only file system",
		"a file of others":         "bash: /tmp/x/token: Permission denied",
		"a name that is a file":    "stat password: permission denied",
		"a place":                  "src/token:12: x\nsrc/secret:3:4: y",
		"the end of a file":        "error reading password: EOF",
		"a program fails":          "git credential: fatal: could not read",
		"an answer":                "token: no",
		"switches":                 `{"password":"no","token":"true","api_key":"None","secret":"off"}`,
		"switches of a shell":      "PASSWORD=no\nUSE_TOKEN=false\nSECRET=none",
		"a switch, a flag":         "tool --password no --token=false",
		"escapes":                  `{"a":"C:\\temp\\new \u00e4 \/ 100%20","b":"\"q\""}`,
	} {
		t.Run(name, func(t *testing.T) { hides(t, &s, text, text) })
	}
}

func hides(t *testing.T, s *Secrets, text, want string) {
	t.Helper()
	got := string(s.Append(nil, []byte(text)))
	if got != want {
		t.Errorf("Append(%q)\n got %q\nwant %q", text, got, want)
	}
	if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
		t.Errorf("%q is not JSON, what it was made of is", got)
	}
	if again := string(s.Append(nil, []byte(got))); again != got {
		t.Errorf("masked twice it is %q, want %q", again, got)
	}
	// The same as the text of a result, and as JSON in the text of a result.
	for _, wrap := range []func(string) string{
		func(s string) string { return inText(t, s) },
		func(s string) string { return inText(t, inText(t, s)) },
	} {
		if got, want := string(s.Append(nil, []byte(wrap(text)))), wrap(want); got != want {
			t.Errorf("in the text of a result\n got %q\nwant %q", got, want)
		}
	}
}

func inText(t *testing.T, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to string }{{`\u003c`, "<"}, {`\u003e`, ">"}, {`\u0026`, "&"}} {
		raw = []byte(strings.ReplaceAll(string(raw), c.from, c.to))
	}
	return `{"content":[{"type":"text","text":` + string(raw) + `}]}`
}

// The path of a key is not secret, and Windows writes paths in its own way. A password that begins like one is.
func TestPathsDescribeSecrets(t *testing.T) {
	for value, want := range map[string]bool{
		"/etc/keys/a.pem": true, "~/keys/a": true, `C:\Users\ann\key.pem`: true, "d:/keys/a": true, `\\host\share\key`: true, `..\keys\a`: true,
		`C:hunter2`: false, `\hunter2`: false, "c:/Kx83jd92LmQpZ71v": false, "1:/a/b": false,
	} {
		if got := About("SIGNING_KEY", value); got != want {
			t.Errorf("About(%q) = %v, want %v", value, got, want)
		}
	}
}
