package llm

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Bounds of a window that an error may name, in tokens, and of the text that is searched.
const (
	minWindow = 256
	maxWindow = 100_000_000
	maxSearch = 16 << 10
)

// overflows are the words by which services refuse a request that is longer than the window.
// There is no common code: OpenAI, and those that copy it well, have context_length_exceeded.
var overflows = []string{
	"context_length_exceeded", "context length exceeded", // OpenAI and many others
	"maximum context length", "exceeds the context window", // OpenAI, OpenRouter, vLLM, Mistral
	"exceed_context_size_error", "exceeds the available context size", // llama.cpp
	"exceed context window", "prompt exceeds n_ctx", // llama-cpp-python
	"maximum model length", "'s context length is only", "longer than the model's context length", // vLLM, SGLang
	"context length of only", "greater than the context length", "context size has been exceeded", // LM Studio
	"input length exceeds the context length", "exceeded max context length", // Ollama
	"model_context_window_exceeded", "prompt is too long", // Anthropic
	"exceeds the maximum number of tokens allowed", // Gemini
	"maximum prompt length is",                     // xAI
	"exceeded model token limit",                   // Moonshot
	"maximum allowed input length",                 // GLM
	"reduce the length of the messages",            // Groq
	"context window exceeds limit",                 // MiniMax
	"`max_new_tokens` must be <=",                  // TGI
}

// limited are words of errors that go away by themselves, although they speak of tokens.
var limited = []string{"tokens per minute", "tokens per day", "rate limit", "rate_limit", "too many requests", "throttling", "quota"}

// windows find the size of the window in such a text.
var windows = sync.OnceValue(func() (out []*regexp.Regexp) {
	for _, p := range []string{
		`"n_ctx"\s*:\s*(\d+)`,
		`n_ctx:?\s*=?\s*(\d+)`,
		`available context size \((\d+)`,
		`maximum (?:context|model|prompt) length(?: is| of|:)?\s*\(?(\d+)`,
		`context length is only (\d+)`,
		`context length of only (\d+)`,
		`context length \((\d+)`,
		`context length (?:is|of) (\d+)`,
		`exceed context window of (\d+)`,
		`> (\d+) maximum`,
		`tokens allowed \((\d+)`,
		`token limit: (\d+)`,
		`input length of (\d+)`,
		`too large for model with (\d+)`,
		`must be <= (\d+)`,
	} {
		out = append(out, regexp.MustCompile(p))
	}
	return out
})

// Overflow reports whether an error's text or code says that the request is longer than the
// model's window, and the size of that, 0 if the text does not name it.
func Overflow(text string) (window int, ok bool) {
	text = strings.ToLower(text[:min(len(text), maxSearch)])
	text = strings.ReplaceAll(text, "\u2019", "'")
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	if !has(overflows) || has(limited) {
		return 0, false
	}
	text = strings.ReplaceAll(text, ",", "") // of 131,072
	for _, p := range windows() {
		if m := p.FindStringSubmatch(text); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && n >= minWindow && n <= maxWindow {
				return n, true
			}
		}
	}
	return 0, true
}

// noCredit are codes of OpenAI, and of those that copy it, for an account that has used up what it has paid
// for. They have the status of a service that is busy, and no wait helps.
var noCredit = []string{"insufficient_quota", "billing_hard_limit_reached"}

// Explain completes an error by what its text says about the window and the account. details are codes
// and bodies that are not part of the text.
func Explain(e *Error, details ...string) *Error {
	if e.Err != nil && e.Kind == event.LLMStatus && e.StatusCode == 429 && e.RetryAfter == 0 {
		for _, code := range noCredit {
			if strings.Contains(strings.Join(append(details, e.Err.Error()), "\n"), code) {
				e.StatusCode = 402
			}
		}
	}
	if e.Overflow || e.Err == nil || e.Kind == event.LLMTimeout || (e.Kind == event.LLMStatus && (e.StatusCode == 429 || e.StatusCode == 401 || e.StatusCode == 403)) {
		return e
	}
	e.Window, e.Overflow = Overflow(strings.Join(append(details, e.Err.Error()), "\n"))
	return e
}
