package remote

import (
	"strings"
	"testing"
)

// The line with the error is what counts, whatever a runtime prints after it.
func TestLastWords(t *testing.T) {
	for name, c := range map[string]struct{ stderr, want string }{
		"nothing":     {" \n\n", ""},
		"a line":      {"loading\nno license\n\n", "no license"},
		"a long line": {strings.Repeat("x", 2*maxSaid), strings.Repeat("x", maxSaid-1) + "…"},
		"Node": {"/p/main.js:1\nthrow new TypeError(\"no key\");\n^\n\nTypeError: no key\n    at f (/p/main.js:1:21)\n    at node:internal/main:28:49\n\nNode.js v20.20.2\n",
			"TypeError: no key"},
		"Node, a missing module": {"node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\nError: Cannot find module './x'\nRequire stack:\n- /p/main.js\n    at Module.load (node:internal) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/p/main.js' ]\n}\n\nNode.js v20.20.2\n",
			"Error: Cannot find module './x'"},
		"Node, a cause and a code":      {"Error [ERR_X]: outer\n    at f {\n  [cause]: Error: inner\n      at g\n}\n\nNode.js v22.1.0", "Error [ERR_X]: outer"},
		"Node, a rejection":             {"[UnhandledPromiseRejection: it was rejected with the reason \"x\".] {\n  code: 'X'\n}\n\nNode.js v22.1.0", "[UnhandledPromiseRejection: it was rejected with the reason \"x\".] {"},
		"Node, no error":                {"Uncaught:\n'no key'\n(Use `node --trace-uncaught ...`)\n\nNode.js v22.1.0", "(Use `node --trace-uncaught ...`)"},
		"Node alone":                    {"Node.js v22.1.0\n", "Node.js v22.1.0"},
		"Bun":                           {"1 | throw x\n      ^\nerror: no key\n      at /p/main.ts:1:7\n\nBun v1.2.3 (Linux x64)\n", "error: no key"},
		"Python":                        {"Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    import x\nModuleNotFoundError: No module named 'x'\n", "ModuleNotFoundError: No module named 'x'"},
		"Python, a message of lines":    {"Traceback (most recent call last):\n  File \"main.py\", line 1\nValidationError: 1 error for Settings\nkey\n  field required\n", "ValidationError: 1 error for Settings"},
		"Python, one after the other":   {"Traceback (most recent call last):\n  File \"a\"\nKeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"a\"\nOSError: no key\n", "OSError: no key"},
		"Python, the beginning is gone": {"    f()\nOSError: no key\n", "OSError: no key"},
		"Python, nothing after it":      {"Traceback (most recent call last):\n  File \"a\"\n", "File \"a\""},
		"Go":                            {"panic: no key\n\ngoroutine 1 [running]:\nmain.main()\n\t/p/main.go:4 +0x1\nexit status 2\n", "panic: no key"},
	} {
		if got := lastWords(c.stderr); got != c.want {
			t.Errorf("%s: lastWords() = %q, want %q", name, got, c.want)
		}
	}
}
