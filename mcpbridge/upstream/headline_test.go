package upstream

import (
	"strings"
	"testing"
)

// USE-10: of what a program says before it ends, the line that says why comes first.
func TestHeadline(t *testing.T) {
	for _, tc := range []struct{ name, stderr, want string }{
		{"nothing", "", ""},
		{"blank lines", " \n\r\n", ""},
		{"one line", "no licence\n", "no licence"},
		{"npm, not found", `npm warn exec The following package was not found and will be installed: nope@1
npm error code E404
npm error 404 Not Found - GET https://packages.example/nope - Not found
npm error 404
npm error 404  'nope@*' is not in this registry.
npm error A complete log of this run can be found in: /home/u/.npm/_logs/x.log
`, "npm error 404 Not Found - GET https://packages.example/nope - Not found"},
		{"npm, no file", `npm ERR! code ENOENT
npm ERR! syscall open
npm ERR! path /x/package.json
npm ERR! errno -2
npm ERR! enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/x/package.json'
npm ERR! A complete log of this run can be found in: /x`, "npm ERR! enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/x/package.json'"},
		{"npm, only the log", "npm notice New version\nnpm error A complete log of this run can be found in: /x\n", "npm error A complete log of this run can be found in: /x"},
		{"uvx", `  × No solution found when resolving tool dependencies:
  ╰─▶ Because nope was not found in the package registry and you require nope, we can conclude that your requirements are unsatisfiable.
`, "× No solution found when resolving tool dependencies:"},
		{"uv, downloading first", "Downloading cpython-3.13 (30MiB)\nInstalled 30 packages in 1s\nerror: Failed to spawn: `nope`\n  Caused by: No such file or directory (os error 2)\n", "error: Failed to spawn: `nope`"},
		{"python", `Traceback (most recent call last):
  File "/x/error.py", line 1, in <module>
    import nope
ModuleNotFoundError: No module named 'nope'
`, "ModuleNotFoundError: No module named 'nope'"},
		{"node", `node:internal/modules/cjs/loader:1228
  throw err;
  ^

Error: Cannot find module '/x/y.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)
    at node:internal/main/run_main_module:36:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.1.0
`, "Error: Cannot find module '/x/y.js'"},
		{"docker", "Unable to find image 'nope:latest' locally\ndocker: Error response from daemon: pull access denied for nope.\nSee 'docker run --help'.\n", "docker: Error response from daemon: pull access denied for nope."},
		{"go", "starting\npanic: out of cheese\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:3 +0x1d\nexit status 2\n", "panic: out of cheese"},
		{"a usage", "Usage: server DIR\nplease give a directory\n", "please give a directory"},
		{"in colours", "\x1b[31merror\x1b[0m: no token\nbye\n", "error: no token"},
		{"a progress bar", "10%\r20%\rfailed: disk full\r\n", "failed: disk full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := headline(tc.stderr); got != tc.want {
				t.Errorf("headline = %q, want %q", got, tc.want)
			}
		})
	}
	if got, want := lastLine("a\n 10%\r 20%\r\n"), "20%"; got != want {
		t.Errorf("lastLine = %q, want %q", got, want)
	}
	long := strings.Repeat("first line\n", 100) + "last line\n"
	if got, want := lastLines(long, 20), "last line\n"; got != want {
		t.Errorf("lastLines = %q, want %q", got, want)
	}
}
