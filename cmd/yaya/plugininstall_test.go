package main

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
)

// Y-104: a person sees all of what a plugin may do and what runs before agreeing, however long its
// texts are and whatever they consist of.
func TestShowPackageCutsNothing(t *testing.T) {
	t.Parallel()
	for _, filler := range []string{strings.Repeat("x", 5000), strings.Repeat("\u200b", 2000), strings.Repeat("\U000e0041", 2000), strings.Repeat("\xff", 2000)} {
		var out strings.Builder
		showPackage(&out, &admin.PluginPackage{
			Name: "x", Version: "1.0.0", Description: filler + "END of description", Runs: filler + "END of runs", Requires: []string{filler, "END of requires"}, Subscriptions: []string{filler, "END of events"},
			Permissions: []string{"reads /" + filler + "END of permissions"}, Changes: []string{"NEW PERMISSION: reads " + filler + "END of changes"},
		})
		for _, want := range []string{"END of runs", "END of requires", "END of events", "END of permissions", "END of changes"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("showPackage() prints\n%.300s…\nwithout %q, want all", out.String(), want)
			}
		}
		if strings.Contains(out.String(), "END of description") {
			t.Error("showPackage() prints a description of 5000 bytes, want it cut")
		}
	}
}
