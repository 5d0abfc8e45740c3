package upstream

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// asking says how a connection settles its era: which one it requests first, and whether the
// other one is unacceptable.
type asking struct {
	first servers.Era
	only  bool
}

// mainAsks returns how the main session settles its era; the caller holds mu.
//
// A shared pipe begins with initialize. Every legacy server understands it, and a modern-only
// server refuses it by name. A server that speaks both then uses the era whose questions yaya
// can forward to clients of either. Over HTTP, each client's calls use a connection of the
// client's era, and the first connection begins with server/discover, as the specification
// says.
func (p *Provider) mainAsks() asking {
	first := servers.EraLegacy
	if p.cfg.Server.Transport == servers.HTTP {
		first = servers.EraModern
	}
	return p.asks(first)
}

// clientAsks returns how a connection for a single client settles its era; the caller holds mu.
func (p *Provider) clientAsks(peer relay.Peer) asking {
	if peer == nil && p.main != nil {
		return p.asks(p.main.peer.Era)
	}
	if peer != nil && peer.Modern() {
		return p.asks(servers.EraModern)
	}
	return p.asks(servers.EraLegacy)
}

// asks adjusts an era to the configuration and to the known eras; the caller holds mu.
func (p *Provider) asks(first servers.Era) asking {
	if pinned := p.cfg.Server.Era; pinned == servers.EraLegacy || pinned == servers.EraModern {
		return asking{pinned, true}
	}
	switch {
	case first == servers.EraModern && (p.isSilent() || p.spoken.Modern == refused):
		first = servers.EraLegacy
	case first == servers.EraLegacy && !p.isSilent() && p.spoken.Legacy == refused:
		first = servers.EraModern
	}
	return asking{first: first}
}

// silentFor is how long yaya does not retry server/discover on a server that gave no answer, or
// a malformed one. The server may only have been slow to start, or broken.
const silentFor = time.Hour

// isSilent reports whether the server recently gave no usable answer to server/discover; the
// caller holds mu.
func (p *Provider) isSilent() bool { return !p.silent.IsZero() && time.Since(p.silent) < silentFor }

func otherEra(e servers.Era) servers.Era {
	if e == servers.EraModern {
		return servers.EraLegacy
	}
	return servers.EraModern
}

// eraError says that a server does not speak the era that a connection requires.
type eraError struct {
	era servers.Era
	err error
}

func (e *eraError) Error() string {
	return fmt.Sprintf("the server does not support the %s era: %v", e.era, e.err)
}

func (e *eraError) Unwrap() error { return e.err }

// verdict tells whether a server speaks an era; "" is unknown.
type verdict string

const (
	spoke   verdict = "spoken"
	refused verdict = "refused"
)

// spoken is the knowledge about a server's eras.
type spoken struct {
	Legacy  verdict   `json:"legacy,omitempty"`
	Modern  verdict   `json:"modern,omitempty"`
	Name    string    `json:"name,omitempty"` // of the server, by its own account
	Version string    `json:"version,omitempty"`
	Found   time.Time `json:"found"`
}

// with returns the knowledge after a connection has settled on an era; refusal says that the
// server first refused the other one. If the server reports a new name or version, earlier
// knowledge is discarded.
func (k spoken) with(now peer, refusal bool) spoken {
	if k.Name != "" && now.Name != "" && (k.Name != now.Name || k.Version != now.ServerVers) {
		k = spoken{}
	}
	if now.Name != "" {
		k.Name, k.Version = now.Name, now.ServerVers
	}
	mine, other := &k.Legacy, &k.Modern
	if now.Era == servers.EraModern {
		mine, other = other, mine
	}
	*mine = spoke
	if refusal {
		*other = refused
	}
	return k
}

// without returns the knowledge after a server has refused an era.
func (k spoken) without(era servers.Era) spoken {
	if era == servers.EraModern {
		k.Modern = refused
	} else {
		k.Legacy = refused
	}
	return k
}

// learn stores the era that a connection settled on, and whether the server refused the other
// one before.
func (p *Provider) learn(now peer, refusal bool) {
	p.mu.Lock()
	if now.Era == servers.EraModern {
		p.silent = time.Time{}
	}
	p.mu.Unlock()
	p.note(func(k spoken) spoken { return k.with(now, refusal) })
}

// note updates the knowledge about the server's eras and saves it.
func (p *Provider) note(change func(spoken) spoken) {
	p.mu.Lock()
	next := change(p.spoken)
	same := next == p.spoken
	if !same {
		next.Found = time.Now().UTC().Truncate(time.Second)
	}
	p.spoken = next
	p.mu.Unlock()
	if p.cfg.Eras != nil && !same {
		p.cfg.Eras.save(eraKey(p.cfg.Server), next)
	}
}

// eraKey identifies a server together with its command or address.
func eraKey(s servers.Server) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{s.Name, string(s.Transport), s.Command, s.URL}, s.Args...), "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Bounds of the stored knowledge about servers' eras.
const (
	erasFile = "eras.json"
	maxEras  = 512
	maxFile  = 1 << 20
	eraKept  = 7 * 24 * time.Hour
)

// Eras remembers across restarts which protocol eras servers speak, so that yaya does not
// request an era that the server refuses. It is a hint: servers correct it, and unreadable
// entries are discovered again. Its methods are safe for concurrent use.
type Eras struct {
	root *os.Root
	warn func(error)

	mu sync.Mutex
}

// NewEras keeps its file below root, which the caller closes. It calls warn if the file cannot
// be read or written.
func NewEras(root *os.Root, warn func(error)) *Eras { return &Eras{root: root, warn: warn} }

// load returns the stored knowledge about a server if it is fresh.
func (e *Eras) load(key string) spoken {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.read()[key]
}

// save replaces the stored knowledge about a server. The oldest entries make room.
func (e *Eras) save(key string, k spoken) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.read() // another process may have written it
	all[key] = k
	for len(all) > maxEras {
		delete(all, slices.MinFunc(slices.Collect(maps.Keys(all)), func(a, b string) int {
			return cmp.Or(all[a].Found.Compare(all[b].Found), strings.Compare(a, b))
		}))
	}
	data, err := json.Marshal(all)
	if err == nil {
		_, err = atomicfile.Write(e.root, erasFile, data)
	}
	if err != nil {
		e.warn(fmt.Errorf("save the protocol eras of servers: %w", err))
	}
}

// read returns the fresh entries of the file; the caller holds mu.
func (e *Eras) read() map[string]spoken {
	all := map[string]spoken{}
	info, err := e.root.Stat(erasFile)
	if errors.Is(err, fs.ErrNotExist) {
		return all
	}
	if err == nil && info.Size() > maxFile {
		err = errors.New("it is too large")
	}
	var data []byte
	if err == nil {
		data, err = e.root.ReadFile(erasFile)
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		e.warn(fmt.Errorf("cannot read the stored protocol eras of servers, which yaya now discovers again: %s: %w", erasFile, err))
		return map[string]spoken{}
	}
	if all == nil { // the file says null
		all = map[string]spoken{}
	}
	maps.DeleteFunc(all, func(_ string, k spoken) bool { age := time.Since(k.Found); return age > eraKept || age < -time.Hour })
	return all
}
