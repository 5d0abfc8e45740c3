// Command remote-device watches an agent of a yaya elsewhere, as another device:
// it starts the agent, follows its answer while it is written, loses its connection
// in the middle, goes on where it was, and says so when it is thrown out.
//
//	remote-device CREDENTIALS PROMPT
//
// CREDENTIALS is the file that yaya connect has made, below keys/remotes of its
// data directory.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/yaya-ai/yaya/gateway/client"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: remote-device CREDENTIALS PROMPT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "remote-device:", err)
		os.Exit(1)
	}
}

func run(file, prompt string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	data, err := os.ReadFile(file) //nolint:forbidigo,gosec // named by the user
	if err != nil {
		return err
	}
	var creds client.Credentials
	if err := json.Unmarshal(data, &creds); err != nil {
		return err
	}
	states := make(chan error, 16)
	c := client.Start(client.Options{
		Credentials: creds, Retry: client.Backoff(200*time.Millisecond, time.Second),
		OnState: func(there bool, why error) {
			if there {
				why = nil
			}
			states <- why
		},
	})
	defer c.Close()

	lobby := c.Join("agent:lobby", client.Join{OnEvent: func(e client.Event) { fmt.Println("lobby:", e.Name) }})
	if err := lobby.Joined(ctx); err != nil {
		return err
	}
	id, err := spawn(ctx, creds)
	if err != nil {
		return err
	}
	fmt.Println("agent:", id)

	said := make(chan client.Stream, 1)
	started := make(chan struct{}, 1)
	var agent *client.Channel
	streams := &client.Streams{
		OnText: func(piece string, s client.Stream) {
			fmt.Printf("text: %q\n", piece)
			select {
			case started <- struct{}{}:
			default:
			}
			if s.Done {
				said <- s
			}
		},
		Retry: func(request string, missing []int) {
			go func() { // the answer comes on the connection that must not be held up
				_ = agent.Push(ctx, "stream_retry", map[string]any{"request_id": request, "missing": missing}, nil)
			}()
		},
	}
	defer streams.Close()
	agent = c.Join("agent:"+id, client.Join{OnEvent: streams.Event})
	if err := agent.Joined(ctx); err != nil {
		return err
	}
	if err := agent.Push(ctx, "message", map[string]any{"content": prompt, "id": "hello-1"}, nil); err != nil {
		return err
	}
	<-started
	if why := <-states; why != nil {
		return why
	}
	fmt.Println("connection: lost")
	c.Reconnect()
	for why := range states {
		if why == nil {
			break
		}
	}
	fmt.Println("connection: there again")
	s := <-said
	fmt.Printf("whole: %q\n", s.Text)

	fmt.Println("ready to be thrown out")
	begun := time.Now()
	for {
		select {
		case why := <-states:
			if why == nil {
				begun = time.Now()
				continue
			}
			fmt.Println("connection:", why)
			if errors.Is(why, client.ErrRefused) {
				fmt.Printf("thrown out after %.1f s\n", time.Since(begun).Seconds())
				return nil
			}
		case <-ctx.Done():
			return errors.New("nobody has thrown this device out")
		}
	}
}

// spawn starts an agent (agent.spawn).
func spawn(ctx context.Context, c client.Credentials) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/rpc", bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":1,"method":"agent.spawn","params":{"skill":"chat","context":{}}}`)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.Token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var out struct {
		Result struct {
			ID string `json:"id"`
		} `json:"result"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || out.Result.ID == "" {
		return "", fmt.Errorf("agent.spawn: HTTP %s: %w", resp.Status, err)
	}
	return out.Result.ID, nil
}
