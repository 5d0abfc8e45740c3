package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// weakness tells the user what a sandbox does not enforce.
type weakness struct {
	w   io.Writer
	dir string // the folder that records shown warnings; sandboxes do not see it
}

// onlyLimits are the needs that only limit resources: without them, a program can use more, but
// not reach more.
const onlyLimits = sandbox.NeedMemory | sandbox.NeedTasks

// tell reports what a profile lacks. It reports missing limits once for each profile and back
// end, since a user such as root lacks them in every run, and everything else each time.
func (t *weakness) tell(profile, backend string, lacks sandbox.Need) {
	if lacks == 0 {
		return
	}
	once := ""
	if lacks&^onlyLimits == 0 {
		sum := sha256.Sum256([]byte(strings.Join([]string{profile, backend, lacks.String()}, "\x00")))
		f, err := os.OpenFile(filepath.Join(t.dir, fmt.Sprintf("told-%x", sum[:8])), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:forbidigo // in a folder of the user's, under a name of yaya's
		if errors.Is(err, fs.ErrExist) {
			return
		}
		if err == nil { // otherwise it is reported again
			once = "; this warning appears only once"
			_ = f.Close()
		}
	}
	fmt.Fprintf(t.w, "yaya: weaker than profile %s: %s (back end %s; yaya sandbox says more%s)\n", profile, lacks.Lacking(), backend, once)
}

// onceEach writes each message about a sandbox once. It is safe for concurrent use.
type onceEach struct {
	w    io.Writer
	mu   sync.Mutex
	told map[string]bool
}

// maxTold bounds the lines that one run writes.
const maxTold = 1000

func (o *onceEach) tell(text string) {
	text = feature.Clean(text, 1<<10)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[text] || len(o.told) == maxTold {
		return
	}
	if o.told == nil {
		o.told = map[string]bool{}
	}
	o.told[text] = true
	fmt.Fprintln(o.w, "yaya:", text)
}
