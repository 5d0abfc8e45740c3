// Command client is the program that the conformance suite runs to test yaya as a
// client: an MCP client of the official SDK in front of the yaya binary, which it
// connects to the suite's server. It signs in like a person, and plays the browser
// itself. It is not shipped.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	browserEnv = "YAYA_CONFORMANCE_BROWSER"
	binaryEnv  = "YAYA_CONFORMANCE_BINARY"
	maxLogins  = 3
	timeout    = 4 * time.Minute // a suite starts dozens at once
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if len(os.Args) != 2 {
		fail(errors.New("usage: client URL"))
	}
	if os.Getenv(browserEnv) != "" {
		if err := browse(ctx, os.Args[1]); err != nil {
			fail(err)
		}
		return
	}
	if err := run(ctx, os.Args[1]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// browse is the browser of a person who agrees to everything.
func browse(ctx context.Context, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil) //nolint:gosec // the page that it is told to open
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req) //nolint:forbidigo,gosec // a test program
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return errors.Join(err, resp.Body.Close())
}

// given is the content of MCP_CONFORMANCE_CONTEXT, which the suite sets.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	Key          string `json:"private_key_pem"`
	Algorithm    string `json:"signing_algorithm"`
	IdPClientID  string `json:"idp_client_id"`
	IdPToken     string `json:"idp_id_token"`
	IdPIssuer    string `json:"idp_issuer"`
	JWT          string `json:"valid_jwt"`
	ToolCalls    []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"toolCalls"`
}

type yaya struct {
	bin, dir, config string
}

func (y *yaya) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, y.bin, append([]string{"--data-dir", filepath.Join(y.dir, "d"), "--config-dir", filepath.Join(y.dir, "c")}, args...)...) //nolint:gosec // the binary under test
	cmd.Env = append(os.Environ(), "HOME="+y.dir, "BROWSER="+os.Args[0], browserEnv+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

func (y *yaya) login(ctx context.Context) error {
	return y.command(ctx, "mcp", "login", "suite", "--mcp-config", y.config).Run()
}

func run(ctx context.Context, url string) (err error) {
	var in given
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &in); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "yc")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() //nolint:forbidigo // made above
	scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	y := &yaya{bin: os.Getenv(binaryEnv), dir: dir, config: filepath.Join(dir, "mcp.json")}
	server := map[string]any{"url": url, "type": "http", "prefix": ""}
	person := false
	if strings.HasPrefix(scenario, "auth/") {
		if server["oauth"], person, err = authorization(dir, scenario, in); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"suite": server}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(y.config, data, 0o600); err != nil { //nolint:forbidigo // in a folder of its own
		return err
	}
	if person {
		if err := y.login(ctx); err != nil {
			return fmt.Errorf("login: %w", err)
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "conformance", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			content := map[string]any{}
			if scenario == "sep-2322-client-request-state" {
				content["confirmed"] = true
			}
			return &sdk.ElicitResult{Action: "accept", Content: content}, nil
		},
	})
	s, err := client.Connect(ctx, &sdk.CommandTransport{Command: y.command(ctx, "mcp", "serve", "--mcp-config", y.config)}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return drive(ctx, y, s, scenario, in)
}

// authorization returns the configuration for a scenario, and whether a person
// signs in.
func authorization(dir, scenario string, in given) (map[string]any, bool, error) {
	keep := func(name, content string) (string, error) {
		path := filepath.Join(dir, name)
		return path, os.WriteFile(path, []byte(content), 0o600) //nolint:forbidigo // in a folder of its own
	}
	o := map[string]any{}
	if in.ClientID != "" {
		o["clientId"] = in.ClientID
	}
	if in.ClientSecret != "" {
		o["clientSecret"] = in.ClientSecret
	}
	var err error
	switch scenario {
	case "auth/client-credentials-jwt":
		o["grant"], o["signingAlgorithm"] = "client_credentials", in.Algorithm
		o["privateKeyFile"], err = keep("key.pem", in.Key)
	case "auth/client-credentials-basic":
		o["grant"] = "client_credentials"
	case "auth/wif-jwt-bearer":
		o["grant"] = "jwt_bearer"
		o["assertionFile"], err = keep("jwt", in.JWT)
	case "auth/enterprise-managed-authorization", "auth/cross-app-access-complete-flow":
		o["grant"], o["idpIssuer"], o["idpClientId"] = "enterprise", in.IdPIssuer, in.IdPClientID
		o["assertionFile"], err = keep("jwt", in.IdPToken)
	default:
		o["clientMetadataUrl"] = "https://conformance-test.local/client-metadata.json"
		return o, true, nil
	}
	return o, false, err
}

func drive(ctx context.Context, y *yaya, s *sdk.ClientSession, scenario string, in given) error {
	tools, err := s.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	call := func(name string, args map[string]any) error {
		if args == nil {
			args = map[string]any{}
		}
		res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: args})
		if err == nil && res.IsError {
			text, merr := json.Marshal(res.Content)
			err = errors.Join(merr, fmt.Errorf("%s failed: %s", name, text))
		}
		return err
	}
	own := func(yield func(*sdk.Tool) bool) {
		for _, t := range tools.Tools {
			if t.Name != "read_artifact" && !yield(t) { // that is yaya's
				return
			}
		}
	}
	switch {
	case strings.HasPrefix(scenario, "auth/"):
		for try := 1; ; try++ {
			err := call("test-tool", nil)
			if err == nil || try == maxLogins || (!strings.Contains(err.Error(), "yaya mcp login") && !strings.Contains(err.Error(), "unknown tool")) {
				return err
			}
			if err := y.login(ctx); err != nil {
				return fmt.Errorf("login: %w", err)
			}
		}
	case scenario == "tools_call":
		return call("add_numbers", map[string]any{"a": 5, "b": 3})
	case scenario == "elicitation-sep1034-client-defaults":
		return call("test_client_elicitation_defaults", nil)
	case scenario == "sse-retry":
		return call("test_reconnection", nil)
	case scenario == "json-schema-2020-12-preservation":
		for t := range own {
			if t.Name == "json_schema_2020_12_tool" {
				return call("json_schema_echo", map[string]any{"schema": t.InputSchema})
			}
		}
		return errors.New("the tool is missing")
	case scenario == "sep-2322-client-request-state":
		for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			if err := call(name, nil); err != nil {
				fmt.Fprintln(os.Stderr, name, err) // some are to be refused
			}
		}
	case scenario == "http-standard-headers":
		return everything(ctx, s, own, call)
	case scenario == "http-custom-headers":
		for _, c := range in.ToolCalls {
			if err := call(c.Name, c.Arguments); err != nil {
				fmt.Fprintln(os.Stderr, c.Name, err)
			}
		}
	case scenario == "http-invalid-tool-headers":
		for t := range own {
			if err := call(t.Name, map[string]any{"region": "us-west1"}); err != nil {
				fmt.Fprintln(os.Stderr, t.Name, err)
			}
		}
	}
	return nil
}

// everything uses one of each thing that a server has.
func everything(ctx context.Context, s *sdk.ClientSession, own func(func(*sdk.Tool) bool), call func(string, map[string]any) error) error {
	var errs []error
	for t := range own {
		errs = append(errs, call(t.Name, nil))
		break
	}
	if res, err := s.ListResources(ctx, nil); err != nil {
		errs = append(errs, err)
	} else if len(res.Resources) > 0 {
		_, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: res.Resources[0].URI})
		errs = append(errs, err)
	}
	if res, err := s.ListPrompts(ctx, nil); err != nil {
		errs = append(errs, err)
	} else if len(res.Prompts) > 0 {
		_, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: res.Prompts[0].Name, Arguments: map[string]string{}})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
