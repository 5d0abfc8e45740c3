package toolsearch

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
)

//go:embed words.txt
var wordList string

const (
	maxWord   = 32 // bytes of a word; names and prose have no longer ones, hashes and keys do
	maxPhrase = 3  // words of a phrase
)

// vocabulary is words.txt with stems for words.
type vocabulary struct {
	ignored  map[string]bool     // words that are not stemmed
	phrases  map[string]bool     // of stems, joined with spaces
	endings  map[string]bool     // last stems of phrases
	synonyms map[string][]string // of stems and phrases
}

// words returns the vocabulary, which is read once.
var words = sync.OnceValue(func() *vocabulary { return readWords(wordList) })

func readWords(list string) *vocabulary {
	v := &vocabulary{ignored: map[string]bool{}, phrases: map[string]bool{}, endings: map[string]bool{}, synonyms: map[string][]string{}}
	st := stemmer{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		line, ignored := strings.CutPrefix(line, "- ")
		var group []string
		for entry := range strings.SplitSeq(line, ",") {
			entry = strings.TrimSpace(entry)
			if ignored {
				v.ignored[entry] = true
				continue
			}
			stems := strings.FieldsFunc(entry, func(r rune) bool { return !joins(r) })
			for i, w := range stems {
				stems[i] = st.stem(w)
			}
			term := strings.Join(stems, " ")
			if len(stems) > 1 {
				v.phrases[term] = true
				v.endings[stems[len(stems)-1]] = true
			}
			group = append(group, term)
		}
		for _, term := range group {
			for _, other := range group {
				if other != term && !slices.Contains(v.synonyms[term], other) {
					v.synonyms[term] = append(v.synonyms[term], other)
				}
			}
		}
	}
	return v
}

// stemmer remembers stems: the words of many tools are few.
type stemmer map[string]string

func (s stemmer) stem(word string) string {
	if stem, ok := s[word]; ok {
		return stem
	}
	stem := english.Stem(word, true)
	s[strings.Clone(word)] = stem
	return stem
}

// terms calls f for the terms of text, in their order: stems of words, except ignored ones, and
// phrases after their last word. It stops when f returns false.
func (v *vocabulary) terms(text string, st stemmer, f func(term string) bool) {
	var last [maxPhrase]string // the stems before, ignored ones too: "who am i" is a phrase
	more := true
	split(text, func(w string) {
		if !more {
			return
		}
		stem := st.stem(w)
		copy(last[:], last[1:])
		last[maxPhrase-1] = stem
		if !v.ignored[w] {
			more = f(stem)
		}
		if !v.endings[stem] {
			return
		}
		for n := 2; more && n <= maxPhrase && last[maxPhrase-n] != ""; n++ {
			if phrase := strings.Join(last[maxPhrase-n:], " "); v.phrases[phrase] {
				more = f(phrase)
			}
		}
	})
}

// split calls f for the words of text in lower case. A word ends at every character except
// letters and digits, between letters and digits, before a capital after a small letter, and
// before the last of several capitals (HTTPServer). Words of letters and digits (s3, k8s) come
// as a whole too. Characters of scripts without spaces are words of their own.
func split(text string, f func(word string)) {
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if !joins(r) {
			if unicode.In(r, unspaced...) {
				f(text[:n])
			}
			text = text[n:]
			continue
		}
		end, mixed := n, false
		for end < len(text) {
			next, n := utf8.DecodeRuneInString(text[end:])
			if !joins(next) {
				break
			}
			mixed = mixed || unicode.IsDigit(next) != unicode.IsDigit(r)
			end += n
		}
		run := text[:end]
		text = text[end:]
		if mixed {
			emit(run, f)
		}
		parts(run, f)
	}
}

// unspaced are the scripts that have no spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai}

// joins reports whether a character is part of a longer word.
func joins(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unicode.In(r, unspaced...)
}

// parts splits letters and digits where their kind changes.
func parts(run string, f func(word string)) {
	start := 0
	var before, last rune
	lastAt := 0
	for i, r := range run {
		switch {
		case i == 0:
		case unicode.IsDigit(r) != unicode.IsDigit(last), unicode.IsUpper(r) && unicode.IsLower(last):
			emit(run[start:i], f)
			start = i
		case unicode.IsLower(r) && unicode.IsUpper(last) && unicode.IsUpper(before) && lastAt > start:
			emit(run[start:lastAt], f)
			start = lastAt
		}
		before, last, lastAt = last, r, i
	}
	emit(run[start:], f)
}

func emit(word string, f func(string)) {
	if len(word) <= maxWord {
		f(strings.ToLower(word))
	}
}
