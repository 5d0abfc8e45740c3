package catalog

import (
	_ "embed" // the list
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Bundled is the name of the list that comes with yaya, and the beginning of the names in it.
const Bundled = "bundled"

//go:embed bundled.json
var bundledJSON []byte

// list is yaya's own list. README.md says how it was made.
type list struct {
	Date    string `json:"date"`
	Entries []struct {
		Server json.RawMessage `json:"server"`
		Hosts  []string        `json:"hosts"`
	} `json:"entries"`
	made []Entry
}

var own = sync.OnceValue(func() list {
	var l list
	if err := json.Unmarshal(bundledJSON, &l); err != nil {
		panic(fmt.Sprintf("bundled.json: %v", err)) // a test reads it, too
	}
	at, err := time.Parse(time.DateOnly, l.Date)
	if err != nil {
		panic(fmt.Sprintf("bundled.json: %v", err))
	}
	for _, x := range l.Entries {
		e := Entry{Registry: Bundled, Status: Active, Hosts: x.Hosts, Seen: at, Updated: at}
		err := json.Unmarshal(x.Server, &e.Server)
		if err == nil {
			err = e.Server.check()
		}
		if err != nil {
			panic(fmt.Sprintf("bundled.json: %s: %v", e.Server.Name, err))
		}
		l.made = append(l.made, e)
	}
	return l
})

// bundled returns the entries of yaya's own list.
func bundled() []Entry { return slices.Clone(own().made) }

// BundledDate returns the day on which the list was made, such as 2026-11-28.
func BundledDate() string { return own().Date }
