package members

import "testing"

// Of equally close names the one with fewer differing letters is meant.
func TestClosest(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		known      []string
	}{
		{"gpt-5-minni", "gpt-5-mini", []string{"gpt-5", "gpt-5-mini", "gpt-5-nano"}},
		{"gpt-5-minni", "gpt-5-mini", []string{"gpt-5-mini", "gpt-5"}},
		{"Tools", "tools", []string{"tool", "tools"}},
		{"Read", "read_file", []string{"edit", "read_file"}},
		{"Bash", "", []string{"shell", "read_file"}},
	} {
		if got := Closest(tt.name, tt.known); got != tt.want {
			t.Errorf("Closest(%q, %q) = %q, want %q", tt.name, tt.known, got, tt.want)
		}
	}
}
