package llm_test

import (
	"errors"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// MIS-2, OP-81: the words by which services refuse a request that is longer than the window
// are recognised, with the window if they name it, and no others.
func TestOverflow(t *testing.T) {
	for text, want := range map[string]int{
		"This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens.": 8192,
		"Your input exceeds the context window of this model. Please adjust your input and try again.":        0,
		"context_length_exceeded": 0,
		"request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it":                                                                                 8192,
		`{"error":{"code":400,"message":"the request exceeds the available context size.","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":4096}}`:                4096,
		"Requested tokens (2285) exceed context window of 2048":                                                                                                                     2048,
		"The decoder prompt (length 40000) is longer than the maximum model length of 32768. Make sure that max_model_len is no smaller.":                                           32768,
		"You passed 1015 input tokens and requested 10 output tokens. However, the model's context length is only 1024 tokens, resulting in a maximum input length of 1014 tokens.": 1024,
		"Input length (265330) exceeds model's maximum context length (262144).":                                                                                                    262144,
		"Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough.":            32768,
		"The number of tokens to keep from the initial prompt is greater than the context length (n_ctx: 8192).":                                                                    8192,
		"Context size has been exceeded.":                                                        0,
		"the input length exceeds the context length":                                            0,
		"prompt too long; exceeded max context length by 12 tokens":                              0,
		"prompt is too long: 213462 tokens > 200000 maximum":                                     200000,
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)": 1048575,
		"This model's maximum prompt length is 131,072 but the request contains 537,812 tokens":  131072,
		"Your request exceeded model token limit: 262144 (requested: 300000)":                    262144,
		"Prompt contains 150000 tokens, too large for model with 32768 maximum context length":   32768,
	} {
		if window, ok := llm.Overflow(text); !ok || window != want {
			t.Errorf("Overflow(%.80q) = %d, %v, want %d, true", text, window, ok, want)
		}
	}
	for _, text := range []string{
		"", "no such model", "invalid value for max_tokens", "the server is overloaded",
		"Rate limit reached for maximum context length tokens per minute (TPM): Limit 6000", "Too many tokens, please wait before trying again",
	} {
		if _, ok := llm.Overflow(text); ok {
			t.Errorf("Overflow(%q) is true", text)
		}
	}
	busy := &llm.Error{Kind: event.LLMStatus, StatusCode: 429, Err: errors.New("maximum context length")}
	if llm.Explain(busy).Overflow || !llm.Worth(busy) {
		t.Error("an error with status 429 is not tried again")
	}
	if e := llm.Explain(&llm.Error{Kind: event.LLMStatus, StatusCode: 500, Err: errors.New("no")}, `"code":"context_length_exceeded"`); !e.Overflow || llm.Worth(e) {
		t.Errorf("got %+v, want an overflow, which is not tried again as it is", e)
	}
}
