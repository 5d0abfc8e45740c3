package wiretest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// RPC posts a body to /rpc.
func (w *World) RPC(g *Gadget, body string) (status int, answer string) {
	w.t.Helper()
	return w.do(g, "POST", "/rpc", body)
}

// Get asks for a path.
func (w *World) Get(g *Gadget, path string) (status int, answer string) {
	w.t.Helper()
	return w.do(g, "GET", path, "")
}

func (w *World) do(g *Gadget, method, path, body string) (status int, answer string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.HTTP.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" || method == "POST" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+g.Token)
	resp, err := w.HTTP.Client().Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body) //nolint:forbidigo // of the test's own server
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(data))
}

// RPCError is the error of a method.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Call calls a method of /rpc.
func (w *World) Call(g *Gadget, method string, params any) (map[string]any, *RPCError) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	if err != nil {
		w.t.Fatal(err)
	}
	status, text := w.RPC(g, string(body))
	var res struct {
		ID     any            `json:"id"`
		Result map[string]any `json:"result"`
		Error  *RPCError      `json:"error"`
	}
	if err := json.Unmarshal([]byte(text), &res); err != nil || status != 200 || res.ID != float64(7) {
		w.t.Fatalf("Call(%s) = %d %s, %v; want a response with the request's id", method, status, text, err)
	}
	return res.Result, res.Error
}
