package tool

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/yaya-ai/yaya/internal/cut"
)

// Bounds of the text that a model reads.
const (
	MaxModelText = 64 << 10 // bytes of text in all blocks of one result
	maxBlocks    = 256
)

// bound cuts a result to the size that a model may read. It stores the whole text
// as an artifact, up to [MaxArtifact], and marks the cut with the true size.
func bound(store *Store, call Call, res Result) Result {
	total := len(res.Structured)
	for _, b := range res.Display {
		total += len(b.Content())
	}
	if total <= MaxModelText && len(res.Display) <= maxBlocks {
		return res
	}
	full := []byte(res.Text())
	if len(res.Structured) > 0 {
		full = append(append(full, '\n'), res.Structured...)
	}
	note := "the rest was dropped"
	if store != nil {
		a, err := store.Put(call, "text/plain; charset=utf-8", full)
		if err != nil {
			note = fmt.Sprintf("the rest could not be kept: %v", err)
		} else {
			res.Artifacts = append(res.Artifacts, a)
			note = fmt.Sprintf("the whole text is artifact %s, read_artifact pages through it", a.ID)
			if a.Size < a.Full {
				note = fmt.Sprintf("the first %d bytes are artifact %s, read_artifact pages through it", a.Size, a.ID)
			}
		}
	}
	marker := fmt.Sprintf("\n\n[truncated: %d bytes in all; %s]\n\n", len(full), note)
	keep := MaxModelText - len(marker)
	head, tail := keep*3/4, keep/4
	text := string(cut.Whole(full[:head])) + marker + string(trimStart(full[len(full)-tail:]))
	res.Display = []Block{Text(text)}
	if len(res.Structured) > MaxModelText/2 {
		res.Structured = json.RawMessage(fmt.Sprintf(`{"truncated":true,"bytes":%d}`, len(res.Structured)))
	}
	return res
}

// trimStart drops the rest of a character at the beginning.
func trimStart(b []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
