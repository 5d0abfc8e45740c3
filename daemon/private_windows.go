package daemon

import (
	"fmt"
	"os"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// keepPrivate takes a data directory away from all users but this one and the
// system; what lies in it inherits that. The notes say what was wrong.
func keepPrivate(data *os.Root, _ int) (notes []string, err error) {
	how, _, err := exposed(data)
	if err != nil || how == "" {
		return nil, err
	}
	if err := hostfile.MakePrivate(data.Name()); err != nil {
		return nil, fmt.Errorf("data directory %s has %s, so others can reach it, and yaya cannot change that: %w; choose another --data-dir, on a file system with access lists", data.Name(), how, err)
	}
	still, fix, err := exposed(data)
	if err != nil {
		return nil, err
	}
	if still != "" {
		return nil, fmt.Errorf("data directory %s has %s, so others can reach it: run %s, or choose another --data-dir", data.Name(), still, fix)
	}
	return []string{fmt.Sprintf("%s had %s: yaya has taken the rights of others away", data.Name(), how)}, nil
}

func exposed(data *os.Root) (how, fix string, err error) {
	f, err := data.Open(".")
	if err != nil {
		return "", "", fmt.Errorf("data directory: %w", err)
	}
	defer func() { _ = f.Close() }()
	if how, fix, err = hostfile.Exposed(f); err != nil {
		return "", "", fmt.Errorf("data directory: %w", err)
	}
	return how, fix, nil
}

// checkFolder has nothing to refuse: what an administrator makes below another user's folder
// inherits that user's rights.
func (p Paths) checkFolder(int) error { return nil }
