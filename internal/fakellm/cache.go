package fakellm

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
)

// How a service with OpenAI's API caches prompts: beginnings of 1024 tokens and more, in steps of
// 128, that some earlier prompt had.
const (
	tokenBytes = 4
	stepTokens = 128
	leastSteps = 1024 / stepTokens
)

// Prompt is a request to a server that counts and caches.
type Prompt struct {
	Request
	Tokens int // of tools and messages: four bytes of them are one
	Cached int // of these, as the service counts them
}

func (p Prompt) usage() string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`, p.Tokens, p.Tokens+20, p.Cached)
}

// Message is a message of a prompt, whose content is a text.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Messages returns the messages.
func (p Prompt) Messages() ([]Message, error) {
	var b struct {
		Messages []Message `json:"messages"`
	}
	err := json.Unmarshal(p.raw, &b)
	return b.Messages, err
}

// NewCaching starts a server that caches prompts as services do, and refuses those of more than
// window tokens. answer is called for each of the others, one at a time. The server keeps no
// requests.
func NewCaching(window int, answer func(Prompt) Step) *Server {
	s := &Server{cache: &cache{known: map[[sha256.Size]byte]bool{}}}
	s.answer = func(p Prompt) Step {
		if p.Tokens > window {
			s.refused++
			return Step{Status: http.StatusBadRequest, Body: fmt.Sprintf(`{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, window, p.Tokens)}
		}
		return answer(p)
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Refused returns how many requests were longer than the window.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// cache knows the beginnings of prompts, by the sum of each whole step and what is before it.
type cache struct{ known map[[sha256.Size]byte]bool }

func (c *cache) read(r Request) Prompt {
	text := r.prompt()
	p := Prompt{Request: r, Tokens: len(text) / tokenBytes}
	var sum [sha256.Size]byte
	steps, found := 0, true
	for ; len(text) >= stepTokens*tokenBytes; text = text[stepTokens*tokenBytes:] {
		sum = sha256.Sum256(append(sum[:], text[:stepTokens*tokenBytes]...))
		if found = found && c.known[sum]; found {
			steps++
		}
		c.known[sum] = true
	}
	if steps >= leastSteps {
		p.Cached = steps * stepTokens
	}
	return p
}
