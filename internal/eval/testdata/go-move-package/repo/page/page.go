// Package page has the pages of a site.
package page

import "strings"

// Page is one page.
type Page struct{ Title string }

// Address returns the address of a page.
func (p Page) Address() string { return "/" + Slug(p.Title) + "/" }

// Slug returns a title as a part of an address.
func Slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'z' }), "-")
}
