package main

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/yaya-ai/yaya/daemon"
)

// All JSON output of the command line goes through printJSON, printLine or plainJSON: it
// contains text from servers, and a terminal may show it.

// printJSON writes v as JSON, one member per line.
func printJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// printLine writes v as one line of JSON.
func printLine(w io.Writer, v any) error { return writeJSON(w, v, "") }

func writeJSON(w io.Writer, v any, indent string) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(daemon.PlainJSON(out.Bytes()))
	return err
}
