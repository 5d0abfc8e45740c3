package chat

import "testing"

// A question that ended without an answer is described to a person, not by the event's word.
func TestWithdrawn(t *testing.T) {
	for _, tc := range []struct{ tool, reason, want string }{
		{"shell", "timeout", "shell: nobody answered in time, so the call was rejected"},
		{"shell", "shutdown", "shell: the question was withdrawn, because the turn was cancelled or yaya stopped"},
		{"", "timeout", "nobody answered in time, so the call was rejected"},
		{"shell", "x", "shell: the question was withdrawn: x"},
	} {
		if got := answered("approval_withdrawn", data{Tool: tc.tool, Reason: tc.reason}); got != tc.want {
			t.Errorf("answered(%q, %q) = %q, want %q", tc.tool, tc.reason, got, tc.want)
		}
	}
}
