package catalog

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// maxRegistries bounds how many the settings may name: each is asked by each search.
const maxRegistries = 8

var registryName = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,31}$`)

// ParseRegistries reads the setting catalog.registries: a list of NAME=URL.
func ParseRegistries(list []string) ([]Registry, error) {
	if len(list) > maxRegistries {
		return nil, fmt.Errorf("%d registries, %d at most", len(list), maxRegistries)
	}
	var out []Registry
	for _, text := range list {
		name, address, _ := strings.Cut(text, "=")
		u, err := url.Parse(address)
		switch {
		case !registryName().MatchString(name) || name == Bundled:
			return nil, fmt.Errorf("%q does not begin with a name and =, such as official=https://registry.modelcontextprotocol.io", cut.Text(text, 100))
		case slices.ContainsFunc(out, func(r Registry) bool { return r.Name == name }):
			return nil, fmt.Errorf("the name %q is there twice", name)
		case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" || Odd(address):
			return nil, fmt.Errorf("registry %s: its address is not like https://registry.example.com", name)
		}
		out = append(out, Registry{Name: name, URL: address})
	}
	return out, nil
}
