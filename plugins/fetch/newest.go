package fetch

import (
	"slices"
	"strconv"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

var released = lazyregexp.New(`^v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})$`)

// Newest returns the tag with the highest version, such as v1.2.3, "" if there is none.
// Versions before a release (1.2.3-rc.1) do not count.
func Newest(tags []string) string {
	var best []int
	newest := ""
	for _, tag := range slices.Sorted(slices.Values(tags)) {
		part := released().FindStringSubmatch(tag)
		if part == nil {
			continue
		}
		number := make([]int, 0, 3)
		for _, p := range part[1:] {
			n, _ := strconv.Atoi(p) // nine digits
			number = append(number, n)
		}
		if newest == "" || slices.Compare(number, best) > 0 {
			best, newest = number, tag
		}
	}
	return newest
}

// Update returns the source to look at for a newer version: the newest one, or the named one.
// It reports false if only a named one makes sense, because the source is one commit.
func (s Source) Update(version string) (Source, bool, error) {
	moves := s.Kind == Git && s.Version != "" && !released().MatchString(s.Version)
	switch {
	case version == "" && moves && commitID().MatchString(s.Version):
		return s, false, nil
	case version == "" && moves: // a branch
		version = s.Version
	}
	next, err := s.At(version)
	return next, true, err
}
