//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// journey is the way of somebody new: the commands of README.md, from an empty home folder to a
// call of a tool by the command that yaya has written into the configuration of Claude Code. The
// files of the release come from a server of this machine.
func (b *builder) journey(ctx context.Context) (err error) {
	home, err := os.MkdirTemp("", "yaya-journey-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }() //nolint:forbidigo // made above
	site, stop, err := serveHere(ctx, http.FileServer(http.Dir(b.out)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "YAYA_BASE_URL=" + site}
	begun := time.Now()
	say := func(text string) { fmt.Printf("%5.1f s  %s\n", time.Since(begun).Seconds(), text) }
	yaya := "yaya"
	for _, command := range []string{"curl -fsSLO " + site + "/install.sh", "sh install.sh", "yaya mcp add echo -- " + self + " echo", "yaya client add claude-code --yes"} {
		typed := command
		if rest, is := strings.CutPrefix(command, "yaya "); is {
			typed = yaya + " " + rest
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", typed) //nolint:gosec // the commands above
		cmd.Dir, cmd.Env = home, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", typed, err, out)
		}
		say(command)
		for line := range strings.Lines(string(out)) { // the installer says how to call yaya
			if next, is := strings.CutPrefix(line, "Next: "); is {
				yaya = strings.TrimSuffix(strings.TrimSpace(next), " serve")
			}
		}
	}
	argv, err := claudesCommand(filepath.Join(home, ".claude.json"))
	if err != nil {
		return err
	}
	answer, err := callEcho(ctx, home, env, argv)
	if err != nil {
		return err
	}
	say("a client called echo__echo through " + strings.Join(argv, " ") + ", and got " + answer)
	return askClaude(ctx, home, env, say)
}

// serveHere serves on a free port of this machine.
func serveHere(ctx context.Context, h http.Handler) (url string, stop func() error, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// claudesCommand is what Claude Code starts for yaya.
func claudesCommand(file string) ([]string, error) {
	data, err := os.ReadFile(file) //nolint:forbidigo,gosec // written by yaya, just now
	if err != nil {
		return nil, err
	}
	var config struct {
		Servers map[string]struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s := config.Servers["yaya"]
	if !filepath.IsAbs(s.Command) {
		return nil, fmt.Errorf("%s has the command %q for yaya, want an absolute path", file, s.Command)
	}
	return append([]string{s.Command}, s.Args...), nil
}

// callEcho calls the tool with the official client, and returns the text of the answer.
func callEcho(ctx context.Context, home string, env, argv []string) (answer string, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // what yaya has written for its client
	cmd.Dir, cmd.Env, cmd.Stderr = home, env, os.Stderr
	client := sdk.NewClient(&sdk.Implementation{Name: "claude-code", Version: "1"}, nil)
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", strings.Join(argv, " "), err)
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(tools.Tools, func(t *sdk.Tool) bool { return t.Name == "echo__echo" }) {
		return "", fmt.Errorf("yaya lists %d tools without echo__echo", len(tools.Tools))
	}
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "echo__echo", Arguments: map[string]string{"text": "hello"}})
	if err != nil {
		return "", err
	}
	if len(result.Content) == 1 {
		if text, is := result.Content[0].(*sdk.TextContent); is && strings.Contains(text.Text, "hello") {
			return text.Text, nil
		}
	}
	return "", fmt.Errorf("echo__echo answers %+v, want hello", result)
}
