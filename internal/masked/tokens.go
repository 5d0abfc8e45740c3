package masked

import "bytes"

// form describes a kind of token: a prefix, and a minimum number of
// characters.
type form struct {
	prefix string
	least  int
	wide   bool // - and _ may be in it
	alone  bool // the prefix may be the end of a word, and counts only at its beginning
	digit  bool // one has to be in it
}

// forms are those of tokens by the last byte of their prefixes.
var forms = func() (by [256][]form) {
	for _, f := range []form{
		{prefix: "ghp_", least: 16}, {prefix: "gho_", least: 16}, {prefix: "ghu_", least: 16}, {prefix: "ghs_", least: 16}, {prefix: "ghr_", least: 16},
		{prefix: "github_pat_", least: 20, wide: true},
		{prefix: "npm_", least: 20, digit: true},
		{prefix: "hf_", least: 20, alone: true},
		{prefix: "sk_live_", least: 10}, {prefix: "sk_test_", least: 10}, {prefix: "rk_live_", least: 10}, {prefix: "rk_test_", least: 10}, {prefix: "whsec_", least: 16},
		{prefix: "lin_api_", least: 20}, {prefix: "dop_v1_", least: 32}, {prefix: "shpat_", least: 32},
		{prefix: "yaya_", least: 59, alone: true},
		{prefix: "sk-", least: 16, wide: true, alone: true, digit: true},
		{prefix: "glpat-", least: 16, wide: true}, {prefix: "glrt-", least: 16, wide: true, alone: true}, {prefix: "gldt-", least: 16, wide: true, alone: true},
		{prefix: "xoxb-", least: 10, wide: true}, {prefix: "xoxa-", least: 10, wide: true}, {prefix: "xoxp-", least: 10, wide: true}, {prefix: "xoxe-", least: 10, wide: true},
		{prefix: "xoxr-", least: 10, wide: true}, {prefix: "xoxo-", least: 10, wide: true}, {prefix: "xoxs-", least: 10, wide: true}, {prefix: "xapp-", least: 10, wide: true},
		{prefix: "pypi-", least: 50, wide: true, alone: true},
		{prefix: "ya29.", least: 20, wide: true},
	} {
		last := f.prefix[len(f.prefix)-1]
		by[last] = append(by[last], f)
	}
	return by
}()

// token finds a token by its form; text[i] is in its prefix.
func token(text []byte, i int) (from, to int) {
	switch text[i] {
	case 'I': // AKIA, ASIA, AIza
		if from = i - 2; from >= 0 && i+1 < len(text) && text[i+1] == 'A' && text[from] == 'A' && (text[i-1] == 'K' || text[i-1] == 'S') && !inWord(text, from) {
			for to = i + 2; to < len(text) && (text[to] >= 'A' && text[to] <= 'Z' || text[to] >= '0' && text[to] <= '9'); to++ {
			}
			if to-from == 20 && (to == len(text) || !nameByte(text[to])) {
				return from, to
			}
		}
		if from = i - 1; from >= 0 && bytes.HasPrefix(text[from:], []byte("AIza")) && !inWord(text, from) {
			if to = run(text, from+4, true); to-from >= 34 {
				return from, to
			}
		}
		return 0, 0
	case 'J': // a JWT: two or three parts, of which the first two are JSON objects
		if from = i - 2; from < 0 || text[from] != 'e' || text[i-1] != 'y' || inWord(text, from) {
			return 0, 0
		}
		dot := run(text, i, true)
		if dot+4 >= len(text) || text[dot] != '.' || dot-from < 10 {
			return 0, 0
		}
		if to = run(text, dot+1, true); to-dot < 6 {
			return 0, 0
		}
		jws := bytes.HasPrefix(text[dot+1:], []byte("eyJ"))
		for n := 0; n < 3 && to < len(text) && text[to] == '.'; n++ { // of five parts if it is encrypted
			end := run(text, to+1, true)
			if end == to+1 && !jws {
				break
			}
			jws, to = true, end
		}
		if !jws {
			return 0, 0
		}
		return from, to
	case '.':
		if i >= 2 && text[i-1] == 'G' && text[i-2] == 'S' && !inWord(text, i-2) { // SendGrid
			dot := run(text, i+1, true)
			if dot-i > 16 && dot < len(text) && text[dot] == '.' {
				if to = run(text, dot+1, true); to-dot > 16 {
					return i - 2, to
				}
			}
		}
	}
	for _, f := range forms[text[i]] {
		from = i + 1 - len(f.prefix)
		if from < 0 || string(text[from:i+1]) != f.prefix || f.alone && inWord(text, from) {
			continue
		}
		to = run(text, i+1, f.wide)
		if to-i > f.least && (!f.digit || bytes.ContainsAny(text[i+1:to], "0123456789")) {
			return from, to
		}
	}
	return 0, 0
}

// run returns where the run of letters and digits ends that begins at text[i].
func run(text []byte, i int, wide bool) int {
	for i < len(text) && (alphanumeric(text[i]) || wide && (text[i] == '-' || text[i] == '_')) {
		i++
	}
	return i
}

// inWord reports whether a word continues at text[i]. An escape, as in \nAKIA, does
// not count.
func inWord(text []byte, i int) bool {
	if i == 0 || !nameByte(text[i-1]) {
		return false
	}
	c := text[i-1]
	return i == 1 || text[i-2] != '\\' || c != 'n' && c != 'r' && c != 't'
}

// privateKey finds what is between the first and the last line of a private key whose
// first line begins at text[i].
func privateKey(text []byte, i int) (from, to int) {
	const begin, end, dashes = "-----BEGIN ", "-----END ", "-----"
	if !bytes.HasPrefix(text[i:], []byte(begin)) {
		return 0, 0
	}
	rest := text[i+len(begin):]
	n := bytes.Index(rest[:min(len(rest), 64)], []byte(dashes))
	if n < 0 || !bytes.Contains(rest[:n], []byte("PRIVATE KEY")) {
		return 0, 0
	}
	from = i + len(begin) + n + len(dashes)
	if n = bytes.Index(text[from:], []byte(end)); n >= 0 {
		to = from + n
	} else {
		to = len(text)
	}
	if Is(string(text[from:to])) {
		return 0, 0
	}
	return from, to
}
