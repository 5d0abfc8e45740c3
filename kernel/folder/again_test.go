package folder_test

import (
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/kernel/folder"
)

// Trusting a folder as it is trusted keeps its record, and writes nothing to the audit.
func TestTrustedAgain(t *testing.T) {
	w := newWorld(t)
	var audited []string
	w.store.Audit(func(event, by string, _ folder.Record) error {
		audited = append(audited, event+" by "+by)
		return nil
	})
	trust := func(by string) folder.Record {
		t.Helper()
		st, err := w.store.Status(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.store.Trust(w.dir, st.Digest(), by)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	trust("ada")
	if r := trust("bob"); r.By != "ada" {
		t.Errorf("trusted again: the record is by %s, want ada", r.By)
	}
	w.items = append(w.items, folder.Item{Kind: folder.Check, Runs: "make lint"})
	if r := trust("bob"); r.By != "bob" || len(r.Items) != 2 {
		t.Errorf("trusted with another item: got %+v, want it by bob with 2 items", r)
	}
	if want := []string{"folder_trusted by ada", "folder_trusted by bob"}; !slices.Equal(audited, want) {
		t.Errorf("the audit has %q, want %q", audited, want)
	}
}
