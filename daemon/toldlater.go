package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// Files that tell the next start what to put into the audit, because it could not be written
// when it happened. Each holds the payload of the entry.
const (
	restartedFile = "control-restarted.json" // the control log begins again
	restoredFile  = "restored.json"          // the data directory comes from a backup
)

// later has the event and the target of the entry of each.
var later = []struct{ file, event, target string }{
	{restoredFile, "restored", "data"},
	{restartedFile, "control_restarted", "log"},
}

// tellLater leaves something to the next start.
func tellLater(data *os.Root, file string, payload any) error {
	raw, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(data, file, raw)
	return err
}

// tellNow puts into the audit what was left to this start.
func (c *controlPlane) tellNow(data *os.Root) error {
	for _, l := range later {
		raw, err := readSmall(data, l.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var payload map[string]any
		if err == nil {
			err = json.Unmarshal(raw, &payload)
		}
		if err != nil {
			return fmt.Errorf("%s: %w; mend it: yaya repair", l.file, err)
		}
		if _, err := c.log.Append(context.Background(), control.Change{Event: l.event, Actor: control.Owner, Target: l.target, Payload: payload}, nil); err != nil {
			if c.cluster != nil && errors.Is(err, control.ErrUnavailable) {
				continue // the next start tells it
			}
			return fmt.Errorf("%s: %w", l.file, err)
		}
		if err := data.Remove(l.file); err != nil {
			return err
		}
	}
	return nil
}
