package daemon

import (
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/secrets"
)

// Flags are those that every command has.
type Flags struct {
	DataDir    string
	ConfigDir  string
	ConfigFile string
	Verbose    bool
	Secrets    masked.Secrets // that are shown nowhere
	Vault      *secrets.Store // of the data folder that was opened last
}
