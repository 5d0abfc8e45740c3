package llm_gemini_test

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

// MIS-3: why an answer ended.
func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]event.StopReason{
		"STOP": event.StopEnd, "MAX_TOKENS": event.StopLength, "SAFETY": event.StopRefusal, "RECITATION": event.StopRefusal, "BLOCKLIST": event.StopRefusal,
		"PROHIBITED_CONTENT": event.StopRefusal, "SPII": event.StopRefusal, "OTHER": event.StopEnd, "NEW_REASON": event.StopEnd,
	} {
		s := providertest.Serve(t, chunks(said("FINISH_REASON_UNSPECIFIED", text("well")), said(reason)))
		if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); got.StopReason != want || got.Text != "well" || got.Usage.Output != 89 {
			t.Errorf("%s: got %+v, want %s", reason, got, want)
		}
	}
	s := providertest.Serve(t, chunks(said("SAFETY", text("first"), `{"functionCall":{"name":"rm"}}`)))
	if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); len(got.ToolCalls) != 0 {
		t.Errorf("got the calls %+v of a refused answer, want none", got.ToolCalls)
	}
}

// Y-151, Y-152, MIS-2: errors of the service before and within the stream, answers that end without a
// reason, and events that are not the service's.
func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		step fakellm.Step
		want event.LLMError
	}{
		"key":        {fakellm.Step{Status: 400, Body: failure(400, "INVALID_ARGUMENT", "API key not valid: AIza-instance", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`)}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "not valid: ****"}},
		"too long":   {fakellm.Step{Status: 400, Body: failure(400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "")}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "exceeds", Overflow: true, ContextWindow: 1048576}},
		"quota":      {fakellm.Step{Status: 429, Body: failure(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", fmt.Sprintf(retryInfo, "3600.5s"))}, event.LLMError{Kind: event.LLMStatus, StatusCode: 429, RetryAfterS: 3600.5, Error: "exceeded"}},
		"header":     {fakellm.Step{Status: 429, RetryAfter: "7200", Body: failure(429, "RESOURCE_EXHAUSTED", "slow down", fmt.Sprintf(retryInfo, "3600s"))}, event.LLMError{Kind: event.LLMStatus, StatusCode: 429, RetryAfterS: 7200, Error: "slow down"}},
		"within":     {chunks(said("", text("half")), failure(503, "UNAVAILABLE", "The model is overloaded", fmt.Sprintf(retryInfo, "9s"))), event.LLMError{Kind: event.LLMStatus, StatusCode: 503, RetryAfterS: 9, Error: "overloaded"}},
		"at the end": {chunks(said("STOP", text("well")), failure(503, "UNAVAILABLE", "The model is overloaded", "")), event.LLMError{Kind: event.LLMStatus, StatusCode: 503, Error: "overloaded"}},
		"odd code":   {chunks(said("", text("half")), failure(13, "INTERNAL", "", "")), event.LLMError{Kind: event.LLMOther, Error: "INTERNAL"}},
		"no event":   {fakellm.Step{Raw: failure(400, "INVALID_ARGUMENT", "sorry", "")}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "sorry"}},
		"blocked":    {chunks(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT","blockReasonMessage":"no","safetyRatings":[]},"usageMetadata":{"promptTokenCount":5}}`), event.LLMError{Kind: event.LLMOther, Error: "blocked the request: PROHIBITED_CONTENT: no"}},
		"refused":    {chunks(said("SAFETY")), event.LLMError{Kind: event.LLMOther, Error: "refused to answer"}},
		"limit":      {chunks(said("", `{"text":"hm","thought":true}`), said("MAX_TOKENS")), event.LLMError{Kind: event.LLMOther, Error: "output limit"}},
		"bad call":   {chunks(said("", text("I call")), `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(ls(","index":0}]}`), event.LLMError{Kind: event.LLMEmpty, Error: "cannot read: MALFORMED_FUNCTION_CALL"}},
		// Text came first, so that these are not tried again.
		"broken off":  {chunks(said("", text("half of"))), event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"half event":  {fakellm.Step{Raw: chunks(said("", text("half of"))).Raw + `data: {"candidates":[{"content":{"par`}, event.LLMError{Kind: event.LLMConnection, Error: "unexpected EOF"}},
		"empty":       {chunks(said("", text("half of")), `{"candidates":[]}`, `{"candidates":[{"index":1,"finishReason":"STOP"}]}`, `{}`), event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"no JSON":     {fakellm.Step{Raw: "data: <html>\n\n"}, event.LLMError{Kind: event.LLMOther, Error: "an event of the answer"}},
		"a list":      {fakellm.Step{Raw: "data: [1]\n\n"}, event.LLMError{Kind: event.LLMOther, Error: "an event of the answer"}},
		"no list":     {chunks(`{"candidates":[null]}`), event.LLMError{Kind: event.LLMOther, Error: "an event of the answer: not in the form"}},
		"other shape": {chunks(`{"candidates":{"content":1}}`), event.LLMError{Kind: event.LLMOther, Error: "an event of the answer"}},
		"a page":      {fakellm.Step{Raw: "<html>" + strings.Repeat("x", 1<<20)}, event.LLMError{Kind: event.LLMOther, Error: "an event of the answer"}},
		"too much":    {chunks(said("STOP", text(strings.Repeat("y", llm.MaxText+1)))), event.LLMError{Kind: event.LLMOther, Error: "exceeds"}},
		"many calls":  {chunks(said("STOP", strings.Repeat(`{"functionCall":{"name":"a"}},`, llm.MaxToolCalls)+`{"functionCall":{"name":"a"}}`)), event.LLMError{Kind: event.LLMOther, Error: "more than 64 tool calls"}},
	} {
		t.Run(name, func(t *testing.T) {
			ev := load(t, providertest.Serve(t, tc.step).URL, nil).Ask(event.LLMRequest{Provider: "work"})
			e, ok := ev.Payload.(event.LLMError)
			if !ok || e.Kind != tc.want.Kind || e.StatusCode != tc.want.StatusCode || e.RetryAfterS != tc.want.RetryAfterS || e.Overflow != tc.want.Overflow || e.ContextWindow != tc.want.ContextWindow || !strings.Contains(e.Error, tc.want.Error) || len(e.Error) > 4000 {
				t.Errorf("got %+v, want %+v", ev.Payload, tc.want)
			}
		})
	}
}

// An answer with a reason for its end is whole, however the stream ends.
func TestWholeAnswers(t *testing.T) {
	whole := chunks(said("", text("all ")), said("MAX_TOKENS", text("of it"))).Raw
	for name, step := range map[string]fakellm.Step{
		"no blank line at the end": {Raw: strings.TrimSuffix(whole, "\r\n")},
		"no line break at the end": {Raw: strings.TrimSuffix(whole, "\r\n\r\n")},
		"cut":                      {Raw: whole, Cut: true},
		"cut, no line break":       {Raw: strings.TrimSuffix(whole, "\r\n\r\n"), Cut: true},
		"cut within the usage":     {Raw: whole + `data: {"usageMetadata":{"prom`, Cut: true},
		"not JSON after it":        {Raw: whole + "data: [DONE]\r\n\r\n", Open: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Serve(t, step)
			ev := load(t, s.URL, nil).Ask(event.LLMRequest{Provider: "work"})
			if got, ok := ev.Payload.(event.LLMResponse); !ok || got.Text != "all of it" || got.StopReason != event.StopLength || got.Usage.Output != 89 || len(s.Requests()) != 1 {
				t.Errorf("got %+v after %d requests, want the answer after one", ev.Payload, len(s.Requests()))
			}
		})
	}
}

// A connection that ends in the middle of an answer is an error of the connection, and nothing is
// written to the log of the process, as the SDK would.
func TestCutConnection(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	defer log.SetOutput(os.Stderr)
	s := providertest.Serve(t, fakellm.Step{Raw: chunks(said("", text("half of"))).Raw + `data: {"candi`, Cut: true})
	ev := load(t, s.URL, nil).Ask(event.LLMRequest{Provider: "work"})
	if e, ok := ev.Payload.(event.LLMError); !ok || e.Kind != event.LLMConnection || !strings.Contains(e.Error, "unexpected EOF") {
		t.Errorf("got %+v, want an error of the connection", ev.Payload)
	}
	if out.Len() > 0 {
		t.Errorf("the SDK has logged %q, want nothing", out.String())
	}
}

// A service that does not listen is an error of the connection, with the host and the reason.
func TestNobodyListens(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{})
	s.Close()
	ev := load(t, s.URL, nil).Ask(event.LLMRequest{Provider: "work"})
	if e, ok := ev.Payload.(event.LLMError); !ok || e.Kind != event.LLMConnection || !strings.HasPrefix(e.Error, strings.TrimPrefix(s.URL, "http://")+": ") || strings.Contains(e.Error, "Post ") {
		t.Errorf("got %+v, want one error of the connection", ev.Payload)
	}
}

// Y-153: a busy service is asked again, whether it says so before the stream or in it, and so is a
// model whose call could not be read.
func TestRetry(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Status: 503, RetryAfter: "0.1", Body: failure(503, "UNAVAILABLE", "overloaded", "")},
		fakellm.Step{Status: 429, Body: failure(429, "RESOURCE_EXHAUSTED", "slow down", fmt.Sprintf(retryInfo, "0.1s"))}, chunks(said("MALFORMED_FUNCTION_CALL")), chunks(said("STOP", text("at last"))))
	if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); got.Text != "at last" || len(s.Requests()) != 4 {
		t.Errorf("got %q after %d requests, want the answer after 4", got.Text, len(s.Requests()))
	}
}

// A chunk may be as large as an answer.
func TestHugeChunk(t *testing.T) {
	want := strings.Repeat("z", 1<<20)
	s := providertest.Serve(t, chunks(said("STOP", text(want), `{"functionCall":{"name":"write","args":{"text":`+fmt.Sprintf("%q", want[:1<<19])+`}}}`)))
	got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"})
	if got.Text != want || len(got.ToolCalls) != 1 || len(got.ToolCalls[0].Args) != 1<<19+len(`{"text":""}`) {
		t.Errorf("got %d bytes of text and %d calls, want all", len(got.Text), len(got.ToolCalls))
	}
}
