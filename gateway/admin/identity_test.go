package admin

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// The document of the API lists each kind of caller that GET /api/me answers with.
func TestKindsOfCallersAreDocumented(t *testing.T) {
	field, _ := reflect.TypeFor[Identity]().FieldByName("Kind")
	listed := strings.Split(field.Tag.Get("enum"), ",")
	var sent []string
	for k := auth.Anonymous; k <= auth.Server; k++ {
		if kind := kindOf(k); !slices.Contains(sent, kind) {
			sent = append(sent, kind)
		}
	}
	slices.Sort(listed)
	slices.Sort(sent)
	if !slices.Equal(listed, sent) {
		t.Errorf("the document lists %q, and %q are sent", listed, sent)
	}
}
